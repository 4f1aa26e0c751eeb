"""Writes the tables of docs/memory.md from the runs in docs/results/{memory,outside}.csv.

python scripts/memory_table.py
"""

import csv
import runpy
import sys
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

from bara.reports.frontier import Frontier
from bara.reports.statistics import estimate, stratified
from bara.studies.suites import settings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "memory.md"
SUITE = runpy.run_path(str(Path(__file__).with_name("suite_table.py")))
shown, row, head = SUITE["shown"], SUITE["row"], SUITE["head"]
PLAIN, OURS = "even, memory=off", "planner, memory=extrapolated"


def runs(name):
    """Every run of the file, with the part of its setting's whole budget that it had."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    whole = {}
    for one in rows:
        whole[one["setting"]] = max(whole.get(one["setting"], 0.0), float(one["budget"]))
    return [
        SimpleNamespace(
            setting=one["setting"],
            allocator=one["allocator"],
            name=f"{one['allocator']}, {one['variant']}",
            measure="accuracy",
            seed=int(one["seed"]),
            budget=float(one["budget"]),
            share=float(one["budget"]) / whole[one["setting"]],
            accuracy_final=float(one["accuracy_final"]),
            accuracy_kept=float(one["accuracy_kept"]),
        )
        for one in rows
    ]


def accuracies(played, name, share, measure="accuracy_kept"):
    """By setting, and by seed."""
    found = {}
    for one in played:
        if (one.name, one.share) == (name, share):
            found.setdefault(one.setting, {})[one.seed] = getattr(one, measure)
    return found


def less(mine, theirs, only=None):
    """Differences paired by seed, a list for each setting."""
    names = [name for name in theirs if name in mine and (only is None or name in only)]
    return {
        name: [mine[name][seed] - theirs[name][seed] for seed in mine[name] if seed in theirs[name]]
        for name in names
    }


def everybody():
    """The final accuracy of everybody in every round, whatever that costs."""
    found = {}
    for run in SUITE["runs"]("unlimited"):
        found.setdefault(run.setting, {})[run.seed] = run.accuracy_final
    return found


def worth():
    """Setting by setting: even allocation with all of the money, and memory with parts of it."""
    played = runs("memory")
    plain = accuracies(played, PLAIN, 1.0, "accuracy_final")
    shares = [0.125, 0.25, 0.5, 1.0]
    ours = {share: accuracies(played, OURS, share) for share in shares}
    shares = [share for share in shares if ours[share]]
    skewed = {setting.name for setting in settings("report") if not setting.iid}
    yield head(
        "accuracy, %",
        "`even`, no memory, all",
        *(f"memory, {share:g}" for share in shares),
        "everybody",
    )
    for setting in plain:
        all_in = everybody()[setting]
        cells = [
            estimate(list(runs_of[setting].values()))
            for runs_of in (plain, *(ours[share] for share in shares))
        ]
        yield row(setting, *map(shown, cells), shown(estimate(list(all_in.values()))))
    gains = [less(ours[share], plain) for share in shares]
    yield row(
        "*difference from `even`*",
        "",
        *(shown(stratified(list(gain.values())), signed=True) for gain in gains),
        "",
    )
    ahead = [f"{sum(fmean(one) > 0 for one in gain.values())} of {len(gain)}" for gain in gains]
    yield row("*with a higher mean*", "", *ahead, "")
    errors = [
        fmean(
            fmean(one) / (1 - fmean(plain[name].values()))
            for name, one in gain.items()
            if name in skewed
        )
        for gain in gains
    ]
    yield row(
        "*of its error removed, not IID, %*", "", *(f"{100 * error:+.1f}" for error in errors), ""
    )
    over = [stratified(list(less(ours[share], everybody()).values())) for share in shares]
    yield row("*difference from everybody*", "", *(shown(one, signed=True) for one in over), "")


def frontier(name):
    """What was run at every part of the budget, over all settings."""
    played = runs(name)
    shares = {one.share for one in played}
    places = {(one.name, one.share) for one in played}
    whole = [one for one in played if all((one.name, share) in places for share in shares)]
    found = Frontier(whole)
    budgets = [f"{100 * share:g} % of the money" for share in found.shares]
    yield head("kept model, %", *budgets, f"money for {100 * found.goal:.1f} %")
    for way in found.names:
        needed = found.needed(way)
        edge = "at most " if needed.share == found.shares[0] else ""
        money = (
            f"{edge}{100 * needed.share:.0f} %"
            if needed.share <= found.shares[-1]
            else "more than all"
        )
        yield row(way, *(shown(found.accuracy(way, share)) for share in found.shares), money)


def rivals():
    """Every allocator with the same memory, over the report suite, and the planner beside each."""
    played = runs("memory")
    names = [
        name
        for name in dict.fromkeys(one.name for one in played)
        if name.endswith("memory=extrapolated")
    ]
    columns = [(share, f"{100 * share:g} % of the money") for share in (0.25, 1.0)]
    yield head(
        "kept model, %", *(cell for _, words in columns for cell in (words, "`planner` above it"))
    )
    for name in names:
        cells = []
        for share, _ in columns:
            found = accuracies(played, name, share)
            over = (
                list(less(accuracies(played, OURS, share), found).values()) if name != OURS else []
            )
            cells.append(
                f"{100 * fmean(fmean(one.values()) for one in found.values()):.1f}" if found else ""
            )
            cells.append(shown(stratified(over), signed=True) if over else "")
        yield row(f"`{name.split(',')[0]}`", *cells)


def two_phase():
    """The planner beside the best constant n and two-phase schedule, chosen in hindsight."""
    played = runs("two-phase")
    yield head(
        "kept model, %",
        "`even`, carry-over",
        "best constant n",
        "best two-phase schedule",
        "`planner`",
        "minus that schedule",
    )
    for setting in dict.fromkeys(one.setting for one in played):
        ways = {}
        for one in played:
            if one.setting == setting:
                ways.setdefault(one.allocator, {})[one.seed] = one.accuracy_kept
        constant, schedule = _best(ways, ("fixed",)), _best(ways, ("even", "finale", "overture"))
        means = {way: f"{100 * fmean(found.values()):.1f}" for way, found in ways.items()}
        over = estimate([ways["planner"][seed] - ways[schedule][seed] for seed in ways["planner"]])
        yield row(
            setting,
            means["even:carry_over=true"],
            f"{means[constant]} ({constant.removeprefix('fixed:')})",
            f"{means[schedule]} (`{schedule}`)",
            means["planner"],
            shown(over, signed=True),
        )


def mechanisms():
    """Mechanisms with a memory and without, on the datasets of the paper's tables."""
    played = runs("memory-mechanisms")
    ways = [
        (allocator, f"{allocator}, memory=off", f"{allocator}, memory=extrapolated")
        for allocator in ("even", "planner")
    ]
    yield head(
        "kept model, %",
        *(cell for way, _, _ in ways for cell in (f"`{way}`, no memory", "memory", "gain")),
    )
    for setting in dict.fromkeys(one.setting for one in played):
        cells = []
        for _, off, on in ways:
            without, with_it = (
                list(accuracies(played, name, 1.0).get(setting, {}).values()) for name in (off, on)
            )
            if not without:  # not played
                cells += [""] * 3
                continue
            gains = [mine - theirs for mine, theirs in zip(with_it, without, strict=True)]
            cells += [
                shown(estimate(without)),
                shown(estimate(with_it)),
                shown(estimate(gains), signed=True),
            ]
        yield row(setting, *cells)


def _best(by_way, kinds):
    """The allocator of these kinds that ended highest on average."""
    return max(
        (way for way in by_way if way.startswith(kinds)),
        key=lambda way: fmean(by_way[way].values()),
    )


TABLES = {
    "worth": worth,
    "rivals": rivals,
    "two-phase": two_phase,
    "outside": lambda: frontier("outside"),
    "mechanisms": mechanisms,
}


def page():
    """The page with its tables made anew."""
    return SUITE["filled"](PAGE, TABLES)


if __name__ == "__main__":
    PAGE.write_text(page())
    for lines in TABLES.values():
        sys.stdout.write("\n".join(lines()) + "\n\n")

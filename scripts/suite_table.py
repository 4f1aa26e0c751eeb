"""Writes the tables of docs/planner.md from the runs in docs/results.

python scripts/suite_table.py
"""

import csv
import sys
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

from bara.experiments.statistics import estimate
from bara.experiments.suites import Standings, settings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "planner.md"
NUMBERS = {"seed": int, "rounds": int} | dict.fromkeys(("accuracy_final", "accuracy_last10", "spent"), float)
EVERYBODY = "everybody"


def runs(name="suite-report"):
    """Every run of the file, its numbers as numbers."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            numbers = {name: kind(row[name]) for name, kind in NUMBERS.items()}
            yield SimpleNamespace(**row | numbers, name=row["allocator"])


def shown(value, *, signed=False):
    """Per cent, with half of the 95 % interval where there is one."""
    margin = "" if value.margin is None else f" ± {100 * value.margin:.1f}"
    return f"{100 * value.mean:{'+' if signed else ''}.1f}{margin}"


def row(*cells):
    """One row of a table."""
    return "| " + " | ".join(cells) + " |"


def head(*cells):
    """The head of a table."""
    return f"{row(*cells)}\n{'|---' * len(cells)}|"


def report():
    """Settings down, allocators across; then where each stands."""
    standings = Standings(settings("report"), list(runs()), "accuracy_final")
    names = standings.allocators
    yield head("", *(f"`{name}`" for name in names))
    for setting in standings.settings:
        finals = [estimate(list(standings.final(setting.name, name).values())) for name in names]
        best = max(final.mean for final in finals)
        yield row(setting.name, *(f"**{shown(one)}**" if one.mean == best else shown(one) for one in finals))
    every = [standings.of(name) for name in names]
    yield row("*mean*", *(f"{100 * one.final:.1f}" for one in every))
    yield row("*mean of the last ten rounds*", *(f"{100 * one.last10:.1f}" for one in every))
    yield row("*less `even`*", *(shown(one.gain, signed=True) for one in every))
    yield row("*of its error removed, not IID, %*", *(f"{100 * one.error_removed:+.1f}" for one in every))
    yield row("*less the best rival of each setting*", *(shown(one.over_rivals, signed=True) for one in every))
    yield row("*farthest behind that rival*", *(f"{one.worst[0]} {shown(one.worst[1], signed=True)}" for one in every))


def unlimited():
    """The planner beside everybody in every round, whatever that costs."""
    played = [run for run in runs() if run.allocator in {"even", "planner"}]
    everybody = list(runs("unlimited"))
    for run in everybody:
        run.allocator = run.name = EVERYBODY
    standings = Standings(settings("report"), played + everybody, "accuracy_final")
    yield head("final accuracy, %", EVERYBODY, "times the money", "less `planner`")
    for setting in standings.settings:
        final, planner = (standings.final(setting.name, name) for name in (EVERYBODY, "planner"))
        times = _spent(everybody, setting.name, EVERYBODY) / _spent(played, setting.name, "planner")
        less = shown(estimate([final[seed] - planner[seed] for seed in planner]), signed=True)
        yield row(setting.name, f"{100 * fmean(final.values()):.1f}", f"{times:.1f}", less)
    every = standings.of(EVERYBODY)
    less = every.final - standings.of("planner").final
    yield row("*mean*", f"{100 * every.final:.1f}", "", f"{100 * less:+.1f}")
    yield row("*of `even`'s error removed, not IID, %*", f"{100 * every.error_removed:+.1f}", "", "")


def _spent(played, setting, allocator):
    return fmean(run.spent for run in played if (run.setting, run.allocator) == (setting, allocator))


def fixed():
    """For each dataset the best constant n in hindsight, and the planner."""
    constant = list(runs("fixed"))
    datasets = list(dict.fromkeys(run.dataset for run in constant))
    names = list(dict.fromkeys(run.allocator for run in constant if run.allocator.startswith("fixed")))
    yield head("final accuracy, %", *(name.removeprefix("fixed:") for name in names), "`planner`", "less the best")
    for dataset in datasets:
        here = [run for run in constant if run.dataset == dataset]
        there = [run for run in runs() if run.setting == here[0].setting and run.dataset == dataset]
        finals = {name: _by_seed(here, name) for name in names}
        planner = _by_seed(here + there, "planner")
        best = max(finals.values(), key=lambda final: fmean(final.values()))
        cells = [f"{100 * fmean(one.values()):.1f}" for one in finals.values()]
        cells = [f"**{cell}**" if one is best else cell for cell, one in zip(cells, finals.values(), strict=True)]
        less = shown(estimate([planner[seed] - best[seed] for seed in planner]), signed=True)
        yield row(dataset, *cells, f"{100 * fmean(planner.values()):.1f}", less)


def _by_seed(played, allocator):
    return {run.seed: run.accuracy_final for run in played if run.allocator == allocator}


TABLES = {"report": report, "unlimited": unlimited, "fixed": fixed}


def page():
    """The page with its tables made anew."""
    return filled(PAGE, TABLES)


def filled(page, parts, kind="table"):
    """The text of a page, with the lines of each part between its marks."""
    text = page if isinstance(page, str) else page.read_text()
    for name, lines in parts.items():
        start, end = f"<!-- {kind}: {name} -->\n", f"\n<!-- end of {kind} -->"
        before, rest = text.split(start)
        _, after = rest.split(end, 1)
        text = f"{before}{start}\n" + "\n".join(lines()) + f"\n{end}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page())
    for lines in TABLES.values():
        sys.stdout.write("\n".join(lines()) + "\n\n")

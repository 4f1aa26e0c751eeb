"""Writes the tables of docs/planner.md from the runs in docs/results.

python scripts/suite_table.py
"""

import csv
import sys
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

from bara.reports.standings import Standings
from bara.reports.statistics import estimate
from bara.studies.suites import settings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "planner.md"
NUMBERS = {"seed": int, "rounds": int} | dict.fromkeys(
    ("accuracy_final", "accuracy_last10", "spent"), float
)
EVERYBODY = "everybody"
SHOWN = ("even", "finale", "planner")


def runs(name="suite-report"):
    """Every run of the file, its numbers as numbers."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            numbers = {name: kind(row[name]) for name, kind in NUMBERS.items()}
            named = {"name": row["allocator"], "measure": "accuracy"}
            yield SimpleNamespace(**row | numbers | named)


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
    """Settings down, the allocators that matter most across.

    The last column has everybody in every round, whatever that costs.
    """
    everybody = list(runs("unlimited"))
    for run in everybody:
        run.allocator = run.name = EVERYBODY
    played = [run for run in runs() if run.allocator in SHOWN] + everybody
    standings = Standings(settings("report"), played, "accuracy_final")
    yield head("final accuracy, %", *(f"`{name}`" for name in SHOWN), EVERYBODY, "times the money")
    for setting in standings.settings:
        finals = [
            estimate(list(standings.final(setting.name, name).values()))
            for name in (*SHOWN, EVERYBODY)
        ]
        times = _spent(played, setting.name, EVERYBODY) / _spent(played, setting.name, "planner")
        best = max(final.mean for final in finals[:-1])
        cells = [f"**{shown(one)}**" if one.mean == best else shown(one) for one in finals[:-1]]
        yield row(setting.name, *cells, shown(finals[-1]), f"{times:.1f}")
    all_money = standings.of(EVERYBODY)
    removed = f"{100 * all_money.error_removed:.1f} % of `even`'s error removed"
    yield row(
        "*mean*",
        *(f"{100 * standings.of(name).final:.1f}" for name in SHOWN),
        f"{100 * all_money.final:.1f}",
        removed,
    )


def _spent(played, setting, allocator):
    return fmean(
        run.spent for run in played if (run.setting, run.allocator) == (setting, allocator)
    )


def summary():
    """Where each allocator stands over all settings."""
    standings = Standings(settings("report"), list(runs()), "accuracy_final")
    yield head(
        "over all settings",
        "mean",
        "last ten rounds",
        "minus `even`",
        "error removed, not IID, %",
        "minus the best rival",
    )
    for name in standings.allocators:
        one = standings.of(name)
        gains = (
            shown(one.gain, signed=True),
            f"{100 * one.error_removed:+.1f}",
            shown(one.over_rivals, signed=True),
        )
        yield row(f"`{name}`", f"{100 * one.final:.1f}", f"{100 * one.last10:.1f}", *gains)


def fixed():
    """For each dataset the best constant n in hindsight, and the planner."""
    constant = list(runs("fixed"))
    datasets = list(dict.fromkeys(run.dataset for run in constant))
    names = list(
        dict.fromkeys(run.allocator for run in constant if run.allocator.startswith("fixed"))
    )
    yield head(
        "final accuracy, %",
        *(name.removeprefix("fixed:") for name in names),
        "`planner`",
        "minus the best",
    )
    for dataset in datasets:
        here = [run for run in constant if run.dataset == dataset]
        there = [run for run in runs() if run.setting == here[0].setting and run.dataset == dataset]
        finals = {name: _by_seed(here, name) for name in names}
        planner = _by_seed(here + there, "planner")
        best = max(finals.values(), key=lambda final: fmean(final.values()))
        cells = [f"{100 * fmean(one.values()):.1f}" for one in finals.values()]
        cells = [
            f"**{cell}**" if one is best else cell
            for cell, one in zip(cells, finals.values(), strict=True)
        ]
        less = shown(estimate([planner[seed] - best[seed] for seed in planner]), signed=True)
        yield row(dataset, *cells, f"{100 * fmean(planner.values()):.1f}", less)


def _by_seed(played, allocator):
    return {run.seed: run.accuracy_final for run in played if run.allocator == allocator}


TABLES = {"report": report, "summary": summary, "fixed": fixed}


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

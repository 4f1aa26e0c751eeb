"""Writes the suite's table into docs/planner.md from the runs in docs/results/suite-report.csv.

python scripts/suite_table.py
"""

import csv
import sys
from pathlib import Path
from types import SimpleNamespace

from bara.experiments.standings import Standings
from bara.experiments.statistics import estimate
from bara.experiments.suites import settings

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "docs" / "results" / "suite-report.csv"
PAGE = ROOT / "docs" / "planner.md"
START, END = "<!-- table: report -->\n", "<!-- end of table -->\n"
NUMBERS = {"seed": int, "rounds": int} | dict.fromkeys(("accuracy_final", "accuracy_last10", "spent"), float)


def runs():
    """Every run of the file, its numbers as numbers."""
    with RUNS.open(newline="") as file:
        for row in csv.DictReader(file):
            yield SimpleNamespace(**row | {name: kind(row[name]) for name, kind in NUMBERS.items()})


def shown(value, *, signed=False):
    """Per cent, with half of the 95 % interval where there is one."""
    margin = "" if value.margin is None else f" ± {100 * value.margin:.1f}"
    return f"{100 * value.mean:{'+' if signed else ''}.1f}{margin}"


def lines():
    """The table: settings down, allocators across; then where each stands."""
    standings = Standings(settings("report"), list(runs()))
    names = standings.allocators
    yield "| | " + " | ".join(f"`{name}`" for name in names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for setting in standings.settings:
        finals = [estimate(list(standings.final(setting.name, name).values())) for name in names]
        best = max(final.mean for final in finals)
        cells = (f"**{shown(final)}**" if final.mean == best else shown(final) for final in finals)
        yield f"| {setting.name} | " + " | ".join(cells) + " |"
    every = [standings.of(name) for name in names]
    yield "| *mean* | " + " | ".join(f"{100 * one.final:.1f}" for one in every) + " |"
    yield "| *mean of the last ten rounds* | " + " | ".join(f"{100 * one.last10:.1f}" for one in every) + " |"
    yield "| *less `even`* | " + " | ".join(shown(one.gain, signed=True) for one in every) + " |"
    yield (
        "| *of its error removed, not IID, %* | "
        + " | ".join(f"{100 * one.error_removed:+.1f}" for one in every)
        + " |"
    )
    yield (
        "| *less the best rival of each setting* | "
        + " | ".join(shown(one.over_rivals, signed=True) for one in every)
        + " |"
    )
    yield (
        "| *farthest behind that rival* | "
        + " | ".join(f"{one.worst[0]} {shown(one.worst[1], signed=True)}" for one in every)
        + " |"
    )


def page():
    """The page with its table made anew."""
    text = PAGE.read_text()
    before, rest = text.split(START)
    return before + START + "\n" + "\n".join(lines()) + "\n\n" + END + rest.split(END)[-1]


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write("\n".join(lines()) + "\n")

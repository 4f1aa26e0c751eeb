"""Writes README's table of results from the runs in docs/results/suite-report.csv.

python scripts/readme_table.py
"""

import runpy
import sys
from pathlib import Path

from bara.experiments.suites import Standings, settings

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "README.md"
START, END = "<!-- table: results -->\n", "<!-- end of table -->\n"
SUITE = runpy.run_path(str(Path(__file__).with_name("suite_table.py")))
runs, shown = SUITE["runs"], SUITE["shown"]


def lines():
    """One row an allocator, the best first."""
    suite, played = settings("report"), list(runs())
    standings = Standings(suite, played, "accuracy_final")
    baseline, seeds = standings.baseline, len({run.seed for run in played})
    yield f"| {len(standings.settings)} of {len(suite)} settings, {seeds} paired seeds | final accuracy, % "
    yield "| less `even` | of `even`'s error removed | less the best rival of each setting |\n|---|---|---|---|---|\n"
    for one in sorted(map(standings.of, standings.allocators), key=lambda one: -one.final):
        beside = ["", ""] if one.allocator == baseline else [shown(one.gain, signed=True), _percent(one.error_removed)]
        cells = [f"`{one.allocator}`", f"{100 * one.final:.1f}", *beside, shown(one.over_rivals, signed=True)]
        yield f"| {' | '.join(cells)} |\n"


def _percent(part):
    return f"{100 * part:.1f} %"


def page():
    """The page with its table made anew."""
    before, rest = PAGE.read_text().split(START)
    return before + START + "\n" + "".join(lines()) + "\n" + END + rest.split(END)[-1]


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write("".join(lines()))

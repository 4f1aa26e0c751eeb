"""Writes README's table of results from the runs in docs/results.

python scripts/readme_table.py
"""

import runpy
import sys
from pathlib import Path
from statistics import fmean

from bara.reports.statistics import stratified
from bara.studies.suites import settings

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "README.md"
START, END = "<!-- table: results -->\n", "<!-- end of table -->\n"
MEMORY = runpy.run_path(str(Path(__file__).with_name("memory_table.py")))
SUITE = MEMORY["SUITE"]
accuracies, less, shown, row, head = (
    MEMORY[name] for name in ("accuracies", "less", "shown", "row", "head")
)


def lines():
    """What even allocation reaches, a memory with parts of the money, and money alone."""
    played = MEMORY["runs"]("memory")
    plain = accuracies(played, MEMORY["PLAIN"], 1.0, "accuracy_final")
    planner = {}
    for run in SUITE["runs"]():
        if run.allocator == "planner":
            planner.setdefault(run.setting, {})[run.seed] = run.accuracy_final
    yield head(
        f"{len(plain)} settings, 5 paired seeds",
        "money",
        "accuracy, %",
        "above the first",
        "of its error removed",
    )
    yield row("`even`, no memory, last model", "all", _mean(plain), "", "")
    kept = accuracies(played, MEMORY["PLAIN"], 1.0)
    yield row("`even`, no memory, kept model", "all", *_beside(kept, plain))
    yield row("`planner`, no memory, last model", "all", *_beside(planner, plain))
    for name, share, words in (("even:carry_over=true", 0.25, "a quarter"), ("even", 1.0, "all")):
        remembers = accuracies(played, f"{name}, memory=extrapolated", share)
        yield row(f"`{name}`, memory, kept model", words, *_beside(remembers, plain))
    for share, words in ((0.125, "an eighth"), (0.25, "a quarter"), (1.0, "all")):
        yield row(
            "`planner`, memory, kept model",
            words,
            *_beside(accuracies(played, MEMORY["OURS"], share), plain),
        )
    yield row(
        "everybody in every round, no memory, last model",
        "1.1 to 14 times",
        *_beside(MEMORY["everybody"](), plain),
    )


def _beside(mine, plain):
    gain = less(mine, plain)
    skewed = [one.name for one in settings("report") if not one.iid]
    error = fmean(fmean(gain[name]) / (1 - fmean(plain[name].values())) for name in skewed)
    return _mean(mine), shown(stratified(list(gain.values())), signed=True), f"{100 * error:.1f} %"


def _mean(runs):
    return f"{100 * fmean(fmean(one.values()) for one in runs.values()):.1f}"


def page():
    """The page with its table made anew."""
    before, rest = PAGE.read_text().split(START)
    return before + START + "\n" + "\n".join(lines()) + "\n\n" + END + rest.split(END)[-1]


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write("\n".join(lines()) + "\n")

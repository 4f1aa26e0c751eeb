"""Writes the tables of docs/prices.md from the runs in docs/results/prices.csv.

python scripts/prices_table.py
"""

import csv
import runpy
from pathlib import Path
from statistics import fmean

from bara.reports.statistics import paired, stratified

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "prices.md"
SUITE = runpy.run_path(str(Path(__file__).with_name("suite_table.py")))
row, head = SUITE["row"], SUITE["head"]
START, END = "<!-- table: prices -->", "<!-- end -->"
SHARES = {"0.25": "a quarter", "1": "all"}
FIRST, TURNS = "bid-price-first", "turns"
KINDS = [("redrawn", FIRST), ("redrawn", TURNS), ("stable", FIRST), ("stable", TURNS)]


def runs():
    """The accuracies of the kept models in per cent: by setting, share, economy and mechanism."""
    found = {}
    with (ROOT / "docs" / "results" / "prices.csv").open(newline="") as file:
        for one in csv.DictReader(file):
            key = (one["setting"], one["share"], one["economy"], one["mechanism"])
            found.setdefault(key, {})[one["seed"]] = 100 * float(one["accuracy_kept"])
    return found


def table():
    """Setting by setting, and over all of them."""
    found = runs()
    settings = list(dict.fromkeys(key[0] for key in found))
    for share, words in SHARES.items():
        yield f"With {words} of the money:\n"
        yield head(
            "setting",
            "price first, redrawn",
            "`turns`",
            "price first, stable",
            "`turns`",
            "won back",
        )
        for setting in settings:
            cells = []
            for economy in ("redrawn", "stable"):
                first = found[setting, share, economy, FIRST]
                turns = found[setting, share, economy, TURNS]
                cells += [f"{fmean(first.values()):.1f}", shown(paired(turns, first))]
            means = [fmean(found[setting, share, *kind].values()) for kind in KINDS]
            yield row(setting, *cells, won_back(*means))
        yield row("*mean*", *over_all(found, settings, share)) + "\n"


def over_all(found, settings, share):
    """The means over all settings, differences with the interval over repetitions within them."""
    cells = []
    means = [fmean(fmean(found[one, share, *kind].values()) for one in settings) for kind in KINDS]
    for economy, mean in zip(("redrawn", "stable"), means[::2], strict=True):
        differences = []
        for setting in settings:
            first = found[setting, share, economy, FIRST]
            turns = found[setting, share, economy, TURNS]
            differences.append([turns[seed] - first[seed] for seed in turns])
        cells += [f"{mean:.1f}", shown(stratified(differences))]
    return [*cells, won_back(*means)]


def shown(difference):
    """A difference in points, with half of its 95 % interval."""
    return f"{difference.mean:+.1f} ± {difference.margin:.1f}"


def won_back(first_redrawn, _turns_redrawn, first_stable, turns_stable):
    """The part of what stable prices cost price first that turns wins back; "" for a small cost."""
    cost = first_redrawn - first_stable
    if cost < 2:
        return ""
    return f"{100 * (turns_stable - first_stable) / cost:.0f} %"


def page():
    """The page with its table made anew."""
    text = PAGE.read_text()
    before, rest = text.split(START)
    after = rest.split(END, 1)[1]
    return f"{before}{START}\n" + "\n".join(table()) + f"\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page())

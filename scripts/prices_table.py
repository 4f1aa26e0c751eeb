"""Writes the tables of docs/prices.md from the runs in docs/results/prices*.csv.

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
END = "<!-- end -->"
SHARES = {"0.25": "a quarter", "1": "all"}
FIRST, TURNS = "bid-price-first", "turns"
KINDS = [("redrawn", FIRST), ("redrawn", TURNS), ("stable", FIRST), ("stable", TURNS)]


def runs(name):
    """The accuracies of the kept models in per cent: by setting, share, economy and mechanism."""
    found = {}
    with (ROOT / "docs" / "results" / f"{name}.csv").open(newline="") as file:
        for one in csv.DictReader(file):
            key = (one["setting"], one["share"], one["economy"], one["mechanism"])
            found.setdefault(key, {})[one["seed"]] = 100 * float(one["accuracy_kept"])
    return found


def table():
    """Setting by setting, and over all of them."""
    found = runs("prices")
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


def others():
    """Other economies, each over all of its settings."""
    found = runs("prices-other")
    yield head("economy", "a quarter: price first", "`turns`", "all: price first", "`turns`")
    for economy in dict.fromkeys(key[2] for key in found):
        settings = list(dict.fromkeys(key[0] for key in found if key[2] == economy))
        cells = []
        for share in SHARES:
            cells += compared(found, settings, share, economy)
        yield row(f"{economy} ({len(settings)} settings)", *cells)


def over_all(found, settings, share):
    """The means over all settings, and what part is won back."""
    cells = [
        *compared(found, settings, share, "redrawn"),
        *compared(found, settings, share, "stable"),
    ]
    means = [fmean(fmean(found[one, share, *kind].values()) for one in settings) for kind in KINDS]
    return [*cells, won_back(*means)]


def compared(found, settings, share, economy):
    """Price first on average, and the difference of turns, by repetitions within the settings."""
    levels = []
    differences = []
    for setting in settings:
        first = found[setting, share, economy, FIRST]
        turns = found[setting, share, economy, TURNS]
        levels.append(fmean(first.values()))
        differences.append([turns[seed] - first[seed] for seed in turns])
    return [f"{fmean(levels):.1f}", shown(stratified(differences))]


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
    """The page with its tables made anew."""
    text = PAGE.read_text()
    for name, lines in (("prices", table()), ("others", others())):
        start = f"<!-- table: {name} -->"
        before, rest = text.split(start)
        after = rest.split(END, 1)[1]
        text = f"{before}{start}\n" + "\n".join(lines) + f"\n{END}{after}"
    return text


if __name__ == "__main__":
    PAGE.write_text(page())

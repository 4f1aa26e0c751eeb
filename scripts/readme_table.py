"""Writes README's table of results from the runs in docs/results/verdict.csv.

python scripts/readme_table.py
"""

import runpy
from pathlib import Path
from statistics import fmean

from bara.reports.statistics import stratified

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "README.md"
START, END = "<!-- table: results -->\n", "<!-- end of table -->\n"
VERDICT = runpy.run_path(str(Path(__file__).with_name("verdict_page.py")))
accuracies, less, mean, removed = (
    VERDICT[name] for name in ("accuracies", "less", "mean", "removed")
)
row, head, shown = VERDICT["row"], VERDICT["head"], VERDICT["shown"]
PLAIN, DEFAULT, NAMES = VERDICT["PLAIN"], VERDICT["DEFAULT"], VERDICT["NAMES"]
COLUMNS = [(prices, share) for prices in VERDICT["PRICES"] for share in VERDICT["SHARES"]]
OURS = (DEFAULT, "even", "turns")


def lines():
    """The default beside plain aggregation and the best rival, for each economy and budget."""
    titles = [f"{prices}, {VERDICT['SHARES'][share]}" for prices, share in COLUMNS]
    yield head("kept model, %", *(f"prices {title}" for title in titles))
    plain = [accuracies(PLAIN, *column) for column in COLUMNS]
    ours = [accuracies(DEFAULT, *column) for column in COLUMNS]
    pairs = list(zip(ours, plain, strict=True))
    yield row("`even`, price first, no memory", *map(mean, plain))
    yield row("**the default**: `planner`, `turns`, memory", *(f"**{mean(one)}**" for one in ours))
    gains = [stratified(list(less(mine, theirs).values())) for mine, theirs in pairs]
    yield row("minus `even`, equal money", *(shown(gain, signed=True) for gain in gains))
    parts = [f"{100 * removed(mine, theirs):.0f} %" for mine, theirs in pairs]
    yield row("of its error removed", *parts)
    above = []
    for place, (prices, share) in enumerate(COLUMNS):
        whole = accuracies(PLAIN, prices, "1")
        gain = stratified(list(less(ours[place], whole).values()))
        above.append("" if share == "1" else shown(gain, signed=True))
    yield row("a quarter minus `even` with all", *above)
    even = [accuracies("even", *column) for column in COLUMNS]
    yield row("`even`, `turns`, memory", *(mean(one) if one else "" for one in even))
    yield row("best of the rivals", *(best_rival(*column) for column in COLUMNS))


def best_rival(prices, share):
    """The rival with the highest mean, and that mean."""
    means = {}
    for name in VERDICT["contestants"](prices, share):
        found = accuracies(name, prices, share)
        if name not in (PLAIN, *OURS) and found:
            means[name] = fmean(fmean(one.values()) for one in found.values())
    if not means:
        return ""
    best = max(means, key=means.get)
    return f"{100 * means[best]:.1f} ({NAMES[best]})"


def page():
    """The page with its table made anew."""
    before, rest = PAGE.read_text().split(START)
    return before + START + "\n" + "\n".join(lines()) + "\n\n" + END + rest.split(END)[-1]


if __name__ == "__main__":
    PAGE.write_text(page())

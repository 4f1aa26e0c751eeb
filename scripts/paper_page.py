"""Writes the numbers of docs/results.md from docs/results/paper, which `bara paper` made.

python scripts/paper_page.py             # the numbers between <!-- NAME --> and <!-- end -->
python scripts/paper_page.py --figures   # the figures, too
"""

import hashlib
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.csv

from bara.paper.analysis import BASELINE, LESS, described, grouped
from bara.paper.exhibits import BORDER, DATASETS, EXHIBITS, TITLES, Scale
from bara.paper.pages import draw_exhibit, tabled
from bara.reports.publication import Origin

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "results" / "paper"
PAGE = ROOT / "docs" / "results.md"
DRAWN = DATA / "drawn.json"
END = "<!-- end -->"


def exhibits():
    """Every exhibit whose data is there, at the size at which it was run."""
    scale = json.loads((DATA / "scale.json").read_text())
    for name, exhibit in EXHIBITS.items():
        if (path := DATA / f"{name}.csv").exists():
            rows, size = pyarrow.csv.read_csv(path).to_pylist(), scale[name].pop("size")
            yield replace(described(exhibit, rows, _places(rows), Scale(**scale[name])), size=size)


def _places(rows):
    found = {row["dataset"] for row in rows}
    return [name for name in (*DATASETS, *BORDER) if name in found]


def numbers(shown):
    """What stands between an exhibit's marks, and the size of the exhibit.

    A line for each dataset, or what was found in words.
    """
    found = _table(shown) if tabled(shown) else shown.measured
    return f"{found}\n\nSize: {shown.size}\n"


def _table(shown):
    """EA's accuracy, and how far the others are from it.

    That is the mean of paired differences and half of its interval.
    """
    methods = list(dict.fromkeys(row["method"] for row in shown.rows if row["method"] != BASELINE))
    head = ["", BASELINE, *(["in the paper"] if shown.exhibit.reported else []), *methods, "seeds"]
    lines = [head, ["---"] * len(head)]
    for (dataset,), rows in grouped(shown.rows, "dataset"):
        by_method = {row["method"]: row for row in rows}
        base = by_method[BASELINE]
        line = [TITLES[dataset], _points(base, "final")]
        line += [f"{base['paper']:.1f}"] if shown.exhibit.reported else []
        line += [
            _points(by_method[method], LESS, "+") if method in by_method else ""
            for method in methods
        ]
        lines.append([*line, str(base["seeds"])])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _points(row, key, sign=""):
    margin = row[f"{key}_margin"]
    return f"{100 * row[key]:{sign}.1f}" + ("" if margin is None else f" ± {100 * margin:.1f}")


def page():
    """The page with its numbers made anew."""
    text = PAGE.read_text()
    for shown in exhibits():
        mark = f"<!-- {shown.exhibit.name} -->\n"
        if mark in text:
            before, rest = text.split(mark)
            text = before + mark + numbers(shown) + END + rest.split(END, 1)[1]
    return text


def digest(name):
    """Of the data behind a figure, by which a test knows that the figure shows it."""
    return hashlib.sha256((DATA / f"{name}.csv").read_bytes()).hexdigest()


def draw_figures():
    """Draw what the page shows, as PNG alone, and note of which data."""
    shown = {one.exhibit.name: one for one in exhibits()}
    drawn = {}
    for name in re.findall(r"results/paper/(\w+)\.png", PAGE.read_text()):
        with TemporaryDirectory() as folder:
            draw_exhibit(shown[name], Path(folder) / name, Origin("bara paper"))
            shutil.copy(Path(folder) / f"{name}.png", DATA)
        drawn[name] = digest(name)
    DRAWN.write_text(json.dumps(drawn, indent=1) + "\n")


if __name__ == "__main__":
    if "--figures" in sys.argv:
        draw_figures()
    PAGE.write_text(page())

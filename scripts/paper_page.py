"""Writes the exhibits of docs/results.md from the data in docs/results/paper, which `bara paper` made.

python scripts/paper_page.py
"""

import json
from pathlib import Path

import pyarrow.csv

from bara.experiments.paper.analysis import described
from bara.experiments.paper.exhibits import DATASETS, EXHIBITS, Scale
from bara.reports.paper import markdown

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "results" / "paper"
PAGE = ROOT / "docs" / "results.md"
START, END = "<!-- exhibits -->\n", "<!-- end of exhibits -->\n"


def exhibits():
    """Every exhibit whose data is there."""
    scale = json.loads((DATA / "scale.json").read_text())
    for name, exhibit in EXHIBITS.items():
        if (path := DATA / f"{name}.csv").exists():
            rows = pyarrow.csv.read_csv(path).to_pylist()
            yield described(exhibit, rows, _datasets(rows), Scale(**scale[name]))


def _datasets(rows):
    found = {row["dataset"] for row in rows}
    return [name for name in DATASETS if name in found]


def page():
    """The page with its exhibits made anew."""
    before, rest = PAGE.read_text().split(START)
    made = "\n".join(markdown(one, "results/paper/") for one in exhibits())
    return before + START + "\n" + made + "\n" + END + rest.split(END)[-1]


if __name__ == "__main__":
    PAGE.write_text(page())

"""The tables in the documentation are those of the runs beside them, the picture of the rooms that of the code."""

import csv
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("script", ["suite_table", "memory_table", "readme_table", "paper_page", "rooms"])
def test_a_page_shows_what_its_runs_came_to(script):
    made = runpy.run_path(str(ROOT / "scripts" / f"{script}.py"))
    assert made["PAGE"].read_text() == made["page"](), f"run python scripts/{script}.py"


def measured():
    """Every difference from EA in the committed data, as prose writes it: +7.8 ± 4.1."""
    for path in (ROOT / "docs" / "results" / "paper").glob("*.csv"):
        with path.open() as file:
            for row in csv.DictReader(file):
                if row.get("less_EA_margin"):
                    yield f"{100 * float(row['less_EA']):+.1f} ± {100 * float(row['less_EA_margin']):.1f}"


def test_every_difference_that_the_prose_on_results_quotes_is_in_the_data():
    prose = (ROOT / "docs" / "results.md").read_text().split("<!-- end of exhibits -->")[1]
    prose = re.sub(
        r"- \*\*The best n in hindsight.*?(?=\n- \*\*)", "", prose, flags=re.DOTALL
    )  # against another baseline
    quoted = re.findall(r"[-+]\d+\.\d ± \d+\.\d\b", re.sub(r"\s+", " ", prose))
    assert len(quoted) > 10
    assert set(quoted) <= set(measured())

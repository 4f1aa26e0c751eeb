"""The tables in the documentation are those of the runs beside them, the picture of the rooms that of the code."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("script", ["suite_table", "memory_table", "readme_table", "paper_page", "rooms"])
def test_a_page_shows_what_its_runs_came_to(script):
    made = runpy.run_path(str(ROOT / "scripts" / f"{script}.py"))
    assert made["PAGE"].read_text() == made["page"](), f"run python scripts/{script}.py"

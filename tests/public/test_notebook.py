"""The notebook in examples/, and with it the ten lines of docs/python.md, in a real kernel."""

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
TEN = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)[1]


def test_ten_lines_lead_from_an_import_to_a_plot():
    lines = [line for line in TEN.splitlines() if line.strip() and '"""' not in line]
    assert lines[0] == "import bara"
    assert ".plot(" in lines[-1]
    assert "class " in TEN
    assert len(lines) <= 10


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # zmq's and asyncio's, in the client
def test_the_notebook_runs_shows_progress_tables_and_figures(tmp_path):
    notebook = nbformat.read(ROOT / "examples" / "compare.ipynb", 4)
    sources = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert sources.startswith(TEN.strip())
    assert not [cell for cell in notebook.cells if cell.get("outputs")], (
        "it is kept without outputs"
    )
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = [output.get("data", {}) for output in shown]
    assert sum("image/png" in data for data in kinds) == 2
    assert sum("<progress" in data.get("text/html", "") for data in kinds) >= 1
    table = next(data for data in kinds if "Comparison" in data.get("text/plain", ""))
    assert "<b>" in table["text/html"]
    assert "Halves" in table["text/html"]
    assert any("tabular" in output.get("text", "") for output in shown)
    assert not [output for output in shown if output.get("name") == "stderr"]
    assert (tmp_path / "runs" / "notebook" / "ledger.db").exists()

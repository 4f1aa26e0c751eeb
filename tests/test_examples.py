"""The examples run as they stand, and their list is whole.

The notebook is run by tests/public/test_notebook.py.
"""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SAID = {
    "own_allocator.py": "| LateBloomer |",
    "own_mechanism.py": "truthful-in-price: client-",
    "own_table.py": "Turku: paid ",
    "own_model.py": "worst digit",
    "own_loop.py": "round 10: ",
}


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs_in_an_empty_folder_and_says_what_it_is_about(
    name, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert SAID[name] in capsys.readouterr().out


def test_the_list_names_every_example_and_each_is_run():
    listed = set(re.findall(r"\]\(([\w.]+)\)", (EXAMPLES / "README.md").read_text()))
    assert listed == {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}}
    assert listed == {*SAID, "compare.ipynb"}

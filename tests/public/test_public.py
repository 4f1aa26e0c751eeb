"""What bara offers in Python: small, typed, documented, on one page, and light to import."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bara

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
BESIDE = ("allocators", "mechanisms", "datasets", "testing", "flower", "errors")


@pytest.mark.parametrize("name", bara.__all__)
def test_everything_public_is_on_the_page_typed_and_documented(name):
    listed = PAGE.partition("## All public names")[2]
    assert re.search(rf"`{name}`", listed), f"docs/python.md does not list bara.{name}"
    thing = getattr(bara, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert signature.return_annotation is not signature.empty
        untyped = [one.name for one in signature.parameters.values() if one.annotation is one.empty]
        assert not untyped


def test_the_page_lists_nothing_that_is_not_there():
    rows = PAGE.partition("## All public names")[2].partition("Beside them")[0]
    named = re.findall(r"`(\w+)`", rows)
    assert sorted(named) == sorted(bara.__all__)
    assert all(f"`bara.{room}`" in PAGE for room in BESIDE)


def test_importing_bara_and_a_first_run_load_nothing_heavy():
    heavy = ("torch", "pandas", "matplotlib", "pyarrow", "flwr", "scipy.special", "scipy.stats")
    code = "import sys, bara; first = set(sys.modules); "
    code += "bara.run(federation='synthetic', budget=20, allocator='even'); "
    code += "print(*[name for name in ('numpy', 'pydantic', 'rich') if name in first]); "
    code += f"print(*[name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n\n"

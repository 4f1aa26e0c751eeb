"""Who may import whom, beyond what import-linter's contracts in pyproject.toml say."""

import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PRIVATE = re.compile(r"(?P<owner>[\w.]+?)\._(?!_)")
"""A module with a part of its name that begins with one underscore.

It belongs to the package before that.
"""


@pytest.fixture
def graph():
    return grimp.build_graph("bara", cache_dir=None)


def trespasses(graph):
    """Each import of a private module from outside the package it belongs to."""
    for module in sorted(graph.modules):
        if belongs := PRIVATE.match(module):
            for importer in sorted(graph.find_modules_that_directly_import(module)):
                if not f"{importer}.".startswith(f"{belongs['owner']}."):
                    yield f"{importer} imports {module}"


def test_nobody_outside_a_package_imports_its_private_modules(graph):
    assert not list(trespasses(graph))


def test_an_import_of_a_private_module_from_outside_is_noticed(graph):
    graph.add_module("bara.ledger._yet_to_come._deep")
    for importer in ("bara.ledger", "bara.ledger.books", "bara.market", "bara.ledger_of_others"):
        graph.add_module(importer)
        graph.add_import(importer=importer, imported="bara.ledger._yet_to_come._deep")
    assert list(trespasses(graph)) == [
        "bara.ledger_of_others imports bara.ledger._yet_to_come._deep",
        "bara.market imports bara.ledger._yet_to_come._deep",
    ]


@pytest.mark.parametrize("folder", ["docs", "examples", "scripts"])
def test_nor_does_anything_that_users_are_shown(folder):
    files = [ROOT / "README.md", *(ROOT / folder).glob("**/*.md"), *(ROOT / folder).glob("**/*.py")]
    said = {
        file.name: re.findall(r"(?:from|import) (bara[\w.]*\._(?!_)\w+)", file.read_text())
        for file in files
    }
    assert not {name: found for name, found in said.items() if found}

"""What bara uses of Flower beyond its public interface: all of it stands on the page, with why."""

import ast
from pathlib import Path

import pytest

from .test_strategy_contract import PAGE

SOURCE = Path(__file__).parents[2] / "src" / "bara"
MODULES = [*(SOURCE / "flower").glob("*.py"), *(SOURCE / "templates" / "flower-app").rglob("*.py")]
PUBLIC = {"app", "clientapp", "clientapp.mod", "serverapp", "serverapp.strategy"}
TABLE = PAGE.partition("## Which private parts of Flower it uses")[2].partition("\n## ")[0]


def imports(tree):
    """The modules of Flower that this code imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)


def private_names(tree):
    """The private attributes that this code reads or sets of objects that are not its own."""
    for node in ast.walk(tree):
        own = isinstance(node, ast.Attribute) and ast.unparse(node.value).startswith("self")
        if isinstance(node, ast.Attribute) and not own and node.attr.startswith("_"):
            yield node.attr
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if is_call and node.func.id in ("getattr", "hasattr", "setattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and name.value.startswith("_"):
                yield name.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_only_public_modules_of_flower_are_imported(path):
    for module in imports(ast.parse(path.read_text())):
        package, _, inside = module.partition(".")
        assert package != "flwr" or inside in PUBLIC


def test_every_private_attribute_stands_on_the_page():
    found = set()
    for path in MODULES:
        found |= {name for name in private_names(ast.parse(path.read_text())) if name[:2] != "__"}
    assert found == {"_mods", "_pending_events"}
    assert all(name in TABLE for name in found)


@pytest.mark.parametrize("fact", ["InMemoryGrid", "Strategy.start", "Error.code"])
def test_what_is_not_promised_by_flower_stands_on_the_page(fact):
    assert fact in TABLE

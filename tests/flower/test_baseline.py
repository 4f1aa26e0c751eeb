"""The baseline in Flower's layout: Flower builds it; it learns as its README says."""

import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from flwr.cli.build import build_fab_from_disk
from flwr.common.config import flatten_dict

from bara.runs.folder import RunFolder

from .conftest import LocalGrid

BASELINE = Path(__file__).parents[2] / "baselines" / "bara"


def play(**changes):
    """The baseline on twenty clients in this process."""
    tree = tomllib.loads((BASELINE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    config = {**flatten_dict(tree), **changes}
    client, server = (
        import_module("bara_baseline.client_app"),
        import_module("bara_baseline.server_app"),
    )
    grid = LocalGrid(client.app, 20)
    for context in grid.contexts.values():
        context.run_config = config
    server.app(grid, Context(1, 0, {}, RecordDict(), config))


@pytest.fixture
def importable(monkeypatch):
    monkeypatch.syspath_prepend(BASELINE)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "bara_baseline"]:
        del sys.modules[name]


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern")  # Flower's own, on today's pathspec
def test_it_has_flowers_layout():
    assert b"bara_baseline/client_app.py" in build_fab_from_disk(BASELINE)
    front = (BASELINE / "README.md").read_text().split("---\n")[1]
    assert [line.partition(":")[0] for line in front.splitlines()] == [
        "title",
        "url",
        "labels",
        "dataset",
    ]


@pytest.mark.usefixtures("importable")
def test_finale_saves_for_the_last_rounds_and_even_allocation_does_not(tmp_path):
    paid = {}
    for name in ("even", "finale"):
        keys = {"bara.allocator.name": name, "bara.budget.total": 40.0, "bara.budget.max-rounds": 8}
        play(**keys, **{"bara.folder": str(tmp_path / name)})
        with RunFolder.find(tmp_path / name) as found:
            rounds = list(found.open_books().history())
        assert rounds[-1].evaluation.reported_loss < rounds[0].evaluation.reported_loss
        paid[name] = [record.paid for record in rounds[1:]]
        assert sum(paid[name]) <= 40_000_000
    assert max(paid["even"]) <= 5_000_000
    assert paid["finale"][-1] > 2 * max(paid["even"])

"""Runs on disk, and a visitor who asks for their pages."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bara.dashboard.server import Address, RunIndex, make_app
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

SMALL = [
    "budget.total=40",
    "budget.max_rounds=12",
    "clients.count=6",
    "federation.engine=synthetic",
]


@pytest.fixture
def make_run(tmp_path, monkeypatch):
    """Plays a small run into a folder below `runs`."""
    monkeypatch.syspath_prepend(Path(__file__).parent)

    def make(name="one", *changes):
        config = Config.load(None, [*SMALL, "allocator.name=even", *changes])
        with RunFolder.new(tmp_path / "runs" / name, config) as folder:
            result = play_run(config, folder=folder)
            folder.finish(result, "")
        return tmp_path / "runs" / name

    return make


@pytest.fixture
def visit(tmp_path):
    """A visitor of the runs below a folder."""

    def make(rules=None, folder=None, host="localhost"):
        index = RunIndex(folder or tmp_path / "runs")
        app = make_app(index, rules or Address().rules(), interval=0.05)
        return TestClient(app, base_url=f"http://{host}", follow_redirects=False)

    return make

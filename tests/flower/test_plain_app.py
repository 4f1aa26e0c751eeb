"""An existing Flower app comes under a budget with fewer than fifteen changed lines, as the
documentation shows.
"""

import importlib
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from flwr.common.config import flatten_dict

from bara.runs.folder import RunFolder

from .conftest import LocalGrid

ROOT = Path(__file__).parents[2]
DIFF = re.search(r"```diff\n(.*?)```", (ROOT / "docs" / "flower.md").read_text(), re.DOTALL)[1]


@pytest.fixture
def plain(tmp_path, monkeypatch):
    """The app as its author has it, in a folder of its own."""
    shutil.copytree(Path(__file__).parent / "plain_app", tmp_path / "app")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "app")
    yield tmp_path / "app"
    for name in ("task", "client_app", "server_app"):
        sys.modules.pop(name, None)


def patch(folder, diff):
    """Apply a unified diff; every hunk must fit exactly one place."""
    for part in diff.split("--- a/")[1:]:
        name, _, hunks = part.partition("\n")
        path = folder / name
        text = path.read_text()
        for hunk in re.split(r"^@@.*\n", hunks, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines()
            old = "\n".join(line[1:] for line in lines if line[:1] != "+")
            new = "\n".join(line[1:] for line in lines if line[:1] != "-")
            assert text.count(old) == 1, f"{name}: {old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        path.write_text(text)


def run(app):
    """The app on five clients."""
    config = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    client, server = importlib.import_module("client_app"), importlib.import_module("server_app")
    server.app(LocalGrid(client.app, 5), Context(1, 0, {}, RecordDict(), flatten_dict(config)))


def test_the_app_runs_without_bara(plain, capsys):
    run(plain)
    assert float(capsys.readouterr().out.split()[-1]) > 0.9


def test_with_the_documented_diff_it_runs_under_a_budget(plain, capsys):
    patch(plain, DIFF)
    run(plain)
    assert float(capsys.readouterr().out.split()[-1]) > 0.9
    with RunFolder.find(plain.parent / "runs" / "plain-app") as found:
        rounds = list(found.open_books().history())
    assert len(rounds) == 4
    assert 0 < rounds[-1].purse_after.spent <= rounds[-1].purse_after.total


def test_the_diff_changes_fewer_than_fifteen_lines():
    changed = [line for line in DIFF.splitlines() if re.match(r"[+-](?![+-])", line)]
    assert 0 < len(changed) < 15

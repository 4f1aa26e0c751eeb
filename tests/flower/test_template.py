"""The app to begin with: Flower builds it for its Hub, takes every documented key, and silos bring
their own data.
"""

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from flwr.cli.build import build_fab_from_disk
from flwr.common.config import flatten_dict, fuse_dicts, parse_config_args
from flwr.serverapp.strategy import FedAvg
from refusals import refused

from bara.errors import ConfigError
from bara.flower import start
from bara.runs.folder import RunFolder
from bara.templates import create

from .conftest import LocalGrid, how_far, start_model, walking_app

PAGE = (Path(__file__).parents[2] / "docs" / "flower.md").read_text()


@pytest.fixture
def app(tmp_path, monkeypatch):
    folder = create("flower-app", "night-shift", tmp_path)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "night_shift"]:
        del sys.modules[name]


def config_of(app):
    return flatten_dict(
        tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    )


def run(app, nodes, *changes):
    config = fuse_dicts(config_of(app), parse_config_args([*changes]))
    client, server = (
        import_module("night_shift.client_app"),
        import_module("night_shift.server_app"),
    )
    grid = LocalGrid(client.app, nodes)
    for context in grid.contexts.values():
        context.run_config = config
    return grid, lambda: server.app(grid, Context(1, 0, {}, RecordDict(), config))


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern")  # Flower's own, on today's pathspec
def test_flower_builds_it_for_its_hub(app):
    built = build_fab_from_disk(app)
    assert b"LICENSE" in built
    assert b"night_shift/server_app.py" in built


def documented():
    rows = re.findall(r"^\| (`bara\..*?) \|", PAGE, re.MULTILINE)
    for row in rows:
        first, *others = re.findall(r"`([\w.*-]+)`", row)
        for key in (
            first,
            *(first.rpartition(".")[0] + other if other[0] == "." else other for other in others),
        ):
            if not key.endswith("*"):
                yield key


@pytest.mark.parametrize("key", list(documented()))
def test_every_documented_key_may_be_given_to_flwr_run(app, key):
    assert key in config_of(app)


@pytest.mark.parametrize("program", ["flower-superlink", "flower-supernode", "ssh-keygen"])
def test_the_page_tells_an_operator_to_start_what_the_deployment_test_starts(app, program):
    commands = re.findall(rf"(?:\$ +){program} ((?:.*\\\n)*.*)\n", PAGE)
    told = {
        option
        for command in commands
        for option in re.findall(r"(?<!\S)--?[a-zA-Z][a-z-]*", command)
    }
    script = (app / "deploy.py").read_text()
    assert told
    assert {option for option in told if f'"{option}"' not in script} == set()


def opened_with(declared, words):
    """The configuration of a run of one round, below runs/, whose app is given these words."""
    config = fuse_dicts(declared, parse_config_args([f"bara.clients.count=3 {words}"]))
    strategy = FedAvg(fraction_evaluate=0.0)
    where = Context(1, 0, {}, RecordDict(), config)
    before = {*Path("runs").glob("*")}
    start(strategy, where, LocalGrid(walking_app(), 3), start_model(), 1, evaluate_fn=how_far)
    (folder,) = {*Path("runs").glob("*")} - before
    with RunFolder.find(folder) as found:
        return found.config


def test_keys_that_are_empty_are_not_set_and_others_are_set_by_one(app):
    declared = config_of(app)
    plain = opened_with(declared, "")
    assert plain.mechanism.options == {"reserve": 3.0}
    assert plain.allocator.options == {}
    words = 'bara.allocator.name="bara" bara.mechanism.name="quality"'
    words += ' bara.set="allocator.exploration_rounds=5; mechanism.quality=samples"'
    changed = opened_with(declared, words)
    assert (changed.allocator.name, changed.allocator.options) == (
        "bara",
        {"exploration_rounds": 5},
    )
    assert changed.mechanism.name == "quality"
    assert changed.mechanism.options == {"reserve": 3.0, "quality": "samples"}
    with refused(ConfigError, "'allocator.window'", "KEY=VALUE"):
        opened_with(declared, 'bara.set="allocator.window"')


def test_silos_may_hold_their_data_in_files_of_their_own(app, tmp_path):
    grid, go = run(app, 3, 'num-server-rounds=3 bara.folder="run" price-per-sample=0.01')
    draw = np.random.default_rng(0)
    for number, context in enumerate(grid.contexts.values()):
        held = {
            "x": draw.random((20 + number, 8, 8), np.float32),
            "y": draw.integers(0, 10, 20 + number),
        }
        np.savez(tmp_path / f"{number}.npz", **held)
        context.node_config.clear()
        context.node_config.update(
            {"data-path": str(tmp_path / f"{number}.npz"), "name": f"silo-{number}"}
        )
    go()
    with RunFolder.find(tmp_path / "run") as found:
        rounds = list(found.open_books().history())[1:]
    evidence = {
        client.rpartition("-")[0]: one.samples
        for client, one in rounds[0].delivery.delivered.items()
    }
    assert evidence == {"silo-0": 20, "silo-1": 21, "silo-2": 22}
    assert len(rounds) == 3

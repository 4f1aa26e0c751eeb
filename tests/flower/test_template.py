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

from bara.flower import start
from bara.flower._options import AppOptions
from bara.runs.config import Config
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


SECTIONS = {
    "federation": AppOptions.__dataclass_fields__,
    "allocator": {"name"},
    "mechanism": {"name", "reserve"},
    "limits": {"samples", "epsilon", "num_examples"},
}


@pytest.mark.parametrize("key", list(documented()))
def test_every_documented_key_is_one_of_baras(key):
    section, _, name = key.removeprefix("bara.").replace("-", "_").rpartition(".")
    known = {"folder", "names", *Config.model_fields}
    if section:
        known = SECTIONS.get(section) or Config.model_fields[section].annotation.model_fields
    assert name in known


def test_the_template_declares_documented_keys_with_values_of_their_types(app):
    declared = {key: one for key, one in config_of(app).items() if key.startswith("bara.")}
    assert declared.keys() <= set(documented())
    empty = {key for key, one in declared.items() if one == ""}
    assert empty == {"bara.folder", "bara.names", "bara.budget.currency"}  # texts, "" for none


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


def test_keys_that_are_empty_are_not_set_and_more_can_be_declared(app):
    declared = config_of(app)
    plain = opened_with(declared, "")
    assert plain.mechanism.name == "turns"
    assert plain.mechanism.options == {"reserve": 3.0}
    assert plain.training.memory == "extrapolated"
    assert plain.budget.currency is None
    more = {"bara.allocator.exploration-rounds": 5, "bara.ledger.approve-above": 20.0}
    words = 'bara.allocator.name="bara" bara.allocator.exploration-rounds=4'
    changed = opened_with({**declared, **more}, words)
    assert (changed.allocator.name, changed.allocator.options) == (
        "bara",
        {"exploration_rounds": 4},
    )
    assert changed.ledger.approve_above == 20.0


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

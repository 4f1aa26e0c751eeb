"""Flower's simulation engine, for real: on ray, killed and resumed, as the simulator comes to."""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from waiting import until

pytestmark = pytest.mark.xdist_group("flower")  # ray and Flower's processes share the machine badly

FLOWER = "ray_engine:simulated"
ENGINES = Path(__file__).parents[1] / "flower"
EXAMPLE = Path(__file__).parents[2] / "src" / "bara" / "templates" / "flower-app"
CHANGES = [
    "clients.count=5",
    "data.train_samples=300",
    "budget.max_rounds=4",
    "budget.total=40",
    "allocator.name=even",
    "training.learning_rate=0.5",
    "training.memory=extrapolated",  # an engine by import path has no memory unless it is set
]


def bara(*arguments, fault=""):
    """The program, as a process of its own, which finds the engine for tests."""
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ENGINES)])
    environment = {**os.environ, "BARA_FAULT": fault, "PYTHONPATH": path}
    command = [sys.executable, "-m", "bara.cli", *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=600
    )


def load_example():
    """The example's script."""
    spec = importlib.util.spec_from_file_location("deploy", EXAMPLE / "deploy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def settings(engine):
    return [
        word for change in [*CHANGES, f"federation.engine={engine}"] for word in ("--set", change)
    ]


def result(folder):
    told = json.loads((folder / "result.json").read_text())
    return {key: told[key] for key in ("payments", "spent", "rounds", "ended", "history")}


def left_behind(marker):
    """The ids of processes that have this in their environment and outlived the run.

    The test's own is none.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"MARKER={marker}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


@pytest.fixture
def marked(tmp_path, monkeypatch):
    """Marks what the test starts; whatever is left of it in the end is ended, by id."""
    monkeypatch.setenv("MARKER", str(tmp_path))
    yield tmp_path
    for process in left_behind(tmp_path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def test_five_clients_on_ray_killed_in_a_round_come_to_what_the_simulator_comes_to(
    tmp_path, marked
):
    expected = bara("run", "--out", tmp_path / "simulator", *settings("simulator"))
    assert expected.returncode == 0, expected.stderr
    killed = bara("run", "--out", tmp_path / "flower", *settings(FLOWER), fault="state saved@2")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "flower" / "result.json").exists()
    for agent in left_behind(marked):  # ray's own outlive a killed driver
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent, signal.SIGKILL)
    resumed = bara("resume", tmp_path / "flower")
    assert resumed.returncode == 0, resumed.stderr
    flower, simulator = result(tmp_path / "flower"), result(tmp_path / "simulator")
    for one, two in zip(flower.pop("history"), simulator.pop("history"), strict=True):
        assert (one["n"], one["cost"]) == (two["n"], two["cost"])
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-4)
    assert flower == simulator
    verified = bara("ledger", tmp_path / "flower", "verify")
    assert verified.returncode == 0, verified.stderr
    assert until(lambda: not left_behind(marked))


def test_the_example_runs_with_flwr_run_in_simulation(marked):
    deploy = load_example()
    with deploy.Deployment(marked) as deployment:
        deployment.start_simulation_superlink()
        words = (
            f'num-server-rounds=3 bara.folder="{marked / "run"}" bara.federation.bid-seconds=600.0'
        )
        nodes = ["--federation-config", "num-supernodes=5 client-resources-num-cpus=1"]
        deployment.flwr(
            "run", str(EXAMPLE), "loopback", "--stream", *nodes, "--run-config", words, timeout=900
        )
    told = result(marked / "run")
    assert told["rounds"] == 3
    assert set(told["payments"]) <= {f"client-{i}" for i in range(5)}
    assert told["history"][-1]["accuracy"] > told["history"][0]["accuracy"] + 0.2
    assert told["spent"] == pytest.approx(sum(told["payments"].values()))
    app = tomllib.loads((marked / "run" / "config.toml").read_text())["app"]
    assert (app["name"], app["strategy"], app["run_config"]["num-server-rounds"]) == (
        "your-name/bara-digits",
        "FedAvg",
        3,
    )
    assert app["fab_hash"]
    assert int(app["run_id"])

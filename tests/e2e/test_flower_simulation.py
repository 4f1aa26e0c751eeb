"""Flower's simulation engine, for real: five clients on ray, the same result as the simulator, killed and resumed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("flower")  # ray and Flower's processes share the machine badly

CHANGES = [
    "clients.count=5",
    "data.train_samples=300",
    "budget.max_rounds=4",
    "budget.total=40",
    "allocator.name=even",
    "training.learning_rate=0.5",
]


def bara(*arguments, fault=""):
    """The program, as a process of its own."""
    environment = {**os.environ, "BARA_FAULT": fault}
    command = [sys.executable, "-m", "bara.cli", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=240)


def settings(engine):
    return [word for change in [*CHANGES, f"federation.engine={engine}"] for word in ("--set", change)]


def result(folder):
    told = json.loads((folder / "result.json").read_text())
    return {key: told[key] for key in ("payments", "spent", "rounds", "ended", "history")}


def orphans(marker: Path):
    """Processes of ray's that outlived the run which had this in its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"MARKER={marker}".encode() in (process / "environ").read_bytes():
                found.append((int(process.name), (process / "cmdline").read_text()[:80]))
        except OSError:
            continue
    return found


def test_five_clients_on_ray_killed_in_a_round_come_to_what_the_simulator_comes_to(tmp_path, monkeypatch):
    monkeypatch.setenv("MARKER", str(tmp_path))
    expected = bara("run", "--out", tmp_path / "simulator", *settings("simulator"))
    assert expected.returncode == 0, expected.stderr
    killed = bara("run", "--out", tmp_path / "flower", *settings("flower"), fault="state saved@2")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "flower" / "result.json").exists()
    resumed = bara("resume", tmp_path / "flower")
    assert resumed.returncode == 0, resumed.stderr
    flower, simulator = result(tmp_path / "flower"), result(tmp_path / "simulator")
    for one, two in zip(flower.pop("history"), simulator.pop("history"), strict=True):
        assert (one["n"], one["cost"]) == (two["n"], two["cost"])
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-4)
    assert flower == simulator
    verified = bara("ledger", tmp_path / "flower", "verify")
    assert verified.returncode == 0, verified.output
    monkeypatch.delenv("MARKER")
    assert not [one for one in orphans(tmp_path) if one[0] != os.getpid()]

"""Runs that are killed with SIGKILL end as if they had not been. The long version: kill_many.py --kills 500."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("engine", "retention", "kills"), [("synthetic", "keep", 8), ("synthetic", "drop", 4), ("simulator", "keep", 4)]
)
def test_a_run_killed_again_and_again_ends_as_the_undisturbed_one(engine, retention, kills):
    options = ["--kills", str(kills), "--engine", engine, "--retention", retention, "--seed", "1"]
    script = Path(__file__).parent / "kill_many.py"
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert f"{kills} kills" in done.stdout

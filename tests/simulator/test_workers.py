"""Worker processes when things go wrong: no hang, nothing left behind."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from waiting import LONG, until

from bara.errors import TrainingError

pytestmark = pytest.mark.path

SLOW = """
import time
from torch import nn
class Slow(nn.Linear):
    def __init__(self, shape, classes):
        super().__init__(64, classes)
    def forward(self, x):
        if self.training:
            open(FLAG, "a").close()
            time.sleep(600)
        return super().forward(x.flatten(1))
class Broken(Slow):
    def forward(self, x):
        if self.training:
            raise RuntimeError("my own mistake")
        return super().forward(x)
class Random(nn.Sequential):
    def __init__(self, shape, classes):
        super().__init__(nn.Flatten(), nn.Linear(64, 32), nn.Dropout(0.5), nn.Linear(32, classes))
"""

SCRIPT = """
import sys
sys.path[:0] = [{tests!r}, {models!r}]
import numpy as np
from conftest import tiny_data, training
from bara.simulator import Engine
engine = Engine("slow_models:Slow", training(), tiny_data(), seed=0, workers=2)
print("started", flush=True)
with engine:
    engine.train(engine.start(), 1, [0, 1, 2, 3])
"""


@pytest.fixture
def models(tmp_path, monkeypatch):
    flag = tmp_path / "training"
    (tmp_path / "slow_models.py").write_text(SLOW.replace("FLAG", repr(str(flag))))
    monkeypatch.syspath_prepend(tmp_path)
    return flag


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    """The processes that this one has started and that have not been waited for."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(word) for one in lists for word in one.read_text().split()}


def test_a_killed_worker_gives_a_clear_error_and_takes_the_others_with_it(make_engine):
    others = children(os.getpid())
    engine = make_engine(workers=2)
    victims = sorted(children(os.getpid()) - others)
    assert len(victims) == 2
    for pid in victims:  # the data are mapped once in each, and it is the same memory
        assert Path(f"/proc/{pid}/maps").read_text().count("memfd:bara") == 1
    os.kill(victims[0], signal.SIGKILL)
    with refused(TrainingError, f"process {victims[0]}", "SIGKILL", "round=1"):
        engine.train(engine.start(), 1, [0, 1, 2, 3])
    assert not any(alive(pid) for pid in victims)
    with refused(TrainingError, "engine", "closed"):
        engine.train(engine.start(), 1, [0])
    engine.close()


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_users_module_raises_is_told_with_the_task(make_engine, workers):
    engine = make_engine("slow_models:Broken", workers=workers)
    with refused(TrainingError, "round=9", "my own mistake"):
        engine.train(engine.start(), 9, [0])


@pytest.mark.usefixtures("models")
def test_a_module_that_draws_numbers_draws_the_same_in_any_worker(make_engine):
    one, two = (make_engine("slow_models:Random", workers=workers) for workers in (1, 2))
    first, second = (
        engine.train(engine.start(), 1, [0, 1, 2]).states.copy() for engine in (one, two)
    )
    assert np.array_equal(first, second)
    assert not np.array_equal(first, one.train(one.start(), 2, [0, 1, 2]).states)


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_even_in_the_middle_of_a_task(tmp_path, models, ending):
    script = tmp_path / "script.py"  # no `if __name__ == "__main__"`: a plain script must do
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), models=str(tmp_path)))
    parent = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # A shell that starts these tests in the background has them ignore Ctrl-C; their children
        # must not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    try:
        assert parent.stdout.readline() == b"started\n"
        pids = children(parent.pid)
        assert until(models.exists)
        assert len(pids) == 2
        assert all(map(alive, pids))
        if ending == signal.SIGINT:
            os.killpg(parent.pid, ending)  # as a terminal does: everybody in the group gets it
        else:
            parent.send_signal(ending)
        _, told = parent.communicate(timeout=LONG)
        assert until(lambda: not any(map(alive, pids)))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.communicate()
    assert b"resource_tracker" not in told
    assert told.count(b"Traceback") == (1 if ending == signal.SIGINT else 0)

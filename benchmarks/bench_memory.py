"""What memory costs a round of the reference workload, and its checkpoints.

python benchmarks/bench_memory.py

Training, memory and checkpoints take turns, so that all of them see the same machine. The workload
is that of bench_simulator.py, one epoch of an MLP over 3,000 pictures a client; 8 of 20 clients
win, or 8 of 1,000.
"""

import itertools
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("BARA_BENCH_WORKLOAD", "mlp,20,3000")

import numpy as np
from workload import Workload, training

from bara.records import Evaluation
from bara.server.memory import Fresh
from bara.server.state import Keeping, ServerState
from bara.simulator import Data, Engine, aggregate

WINNERS, ROUNDS = 8, 15
GOOD = Evaluation(0.5, 1.0, 0.5, 1.0)


def timed(seconds, call, *arguments):
    """What it answers; how long it took goes to the list."""
    before = time.perf_counter()
    answer = call(*arguments)
    seconds.append(time.perf_counter() - before)
    return answer


def played(clients, folder, memory):
    """A round at a time: seconds of training, of memory and of the checkpoint."""
    workload = Workload.here()
    x, y = workload.pictures()
    held = {"validation": np.arange(1000)}
    parts = np.split(np.arange(len(x)), workload.clients)
    kept = ServerState(Keeping(memory=memory, folder=folder), durable=False)
    trained, remembered, saved = [], [], []
    with Engine(
        workload.model, training("fedavg"), Data(x, y, x, y, 10, held, parts), seed=0, workers=2
    ) as engine:
        state = engine.start()
        if kept.memory is not None:  # everybody has been there once
            update = np.full_like(state, 1e-3)
            kept.memory.tell(0, {f"client-{i}": Fresh(update, 1.0) for i in range(clients)})
            kept.save(0, {"state": state})
        for number in itertools.count(1):
            here = [(number * WINNERS + i) % workload.clients for i in range(WINNERS)]
            updates = timed(trained, engine.train, state, number, here)
            mean = timed(trained, aggregate, updates, updates.samples)
            trained[-2:] = [sum(trained[-2:])]
            if kept.memory is None:
                state = mean
            else:
                fresh = {
                    f"client-{i}": Fresh(row - state, 3000.0)
                    for i, row in zip(here, updates.states, strict=True)
                }
                step = timed(remembered, kept.memory.tell, number, fresh)
                state = state + step * np.float32(0.1)
            kept.tell(number, {"state": state}, GOOD)
            timed(saved, kept.save, number, {"state": state})
            yield [statistics.median(one) if one else 0.0 for one in (trained, remembered, saved)]


def main():
    """Three ways side by side."""
    ways = {
        "off, 20 clients": (20, "off"),
        "extrapolated, 20": (20, "extrapolated"),
        "of 1,000": (1000, "extrapolated"),
    }
    with tempfile.TemporaryDirectory() as scratch:
        runs = {
            name: played(n, Path(scratch) / str(i), way)
            for i, (name, (n, way)) in enumerate(ways.items())
        }
        found = {}
        for _ in range(ROUNDS):
            found = {name: next(run) for name, run in runs.items()}
    print("\nA round of 8 winners, milliseconds (medians of 15 rounds, taking turns)\n")
    print(
        "| memory | training | memory | of training | checkpoint | round beside `off` |\n"
        "|---|---|---|---|---|---|"
    )
    plain = sum(found["off, 20 clients"])
    for name, (trained, remembered, saved) in found.items():
        row = (
            f"{1e3 * trained:.0f}",
            f"{1e3 * remembered:.1f}",
            f"{remembered / trained:.1%}",
            f"{1e3 * saved:.1f}",
        )
        print(f"| {name} | {' | '.join(row)} | {(trained + remembered + saved) / plain:.2f} |")


main()

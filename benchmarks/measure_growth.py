"""How much 1,000 rounds grow the process and its workers."""

from pathlib import Path

import numpy as np
from workload import training

from bara.simulator import Data, Engine, aggregate


def megabytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def main():
    random = np.random.default_rng(0)
    x, y = random.integers(0, 256, (1000, 28, 28), dtype=np.uint8), random.integers(0, 10, 1000)
    data = Data(x, y, x, y, 10, {"test": np.arange(1000)}, np.split(np.arange(1000), 20))
    with Engine("mlp", training("fedavg"), data, seed=0, workers=2) as engine:
        pids = ["self", *(worker.process.pid for worker in engine._pool._workers)]  # noqa: SLF001
        state, before = engine.start(), []
        for number in range(1050):
            if number == 50:
                before = [megabytes(pid) for pid in pids]
            updates = engine.train(state, number, range(20), evidence=True)
            state = aggregate(updates, updates.samples)
            engine.evaluate(state)
        grown = [megabytes(pid) - was for pid, was in zip(pids, before, strict=True)]
    print(
        "\nGrowth over 1,000 rounds of 20 clients, MB: "
        "parent {:.1f}, workers {:.1f} and {:.1f}".format(*grown)
    )


main()

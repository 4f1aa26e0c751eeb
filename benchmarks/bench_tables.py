"""How fast a round on tables is beside plain torch.

python benchmarks/bench_tables.py       (make bench)

20 clients x 1,000 rows x 30 features, two labels by one logit; FedAvg's epoch in batches of 50, and
FedSGD's one step. Both on one thread in this process, round by round in turns, so that the ratios
hold where the seconds do not. It fails where we are slower.
"""

import argparse
import copy
import statistics
import sys
import time

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from bara.simulator import Data, Engine, Training, aggregate
from bara.simulator.models import build

CLIENTS, ROWS, FEATURES, BATCH, RATE = 20, 1000, 30, 50, 0.05


def table():
    random = np.random.default_rng(0)
    x = random.normal(size=(CLIENTS * ROWS, FEATURES)).astype(np.float32)
    return x, (x[:, :3].sum(axis=1) > 0).astype(np.int64)


def ours(model, algorithm, x, y):
    """A round of the engine in this process."""
    plain = {
        "local_epochs": 1,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "proximal": 0.0,
        "privacy": None,
    }
    training = Training(algorithm=algorithm, learning_rate=RATE, batch_size=BATCH, **plain)
    parts = np.split(np.arange(len(y)), CLIENTS)
    data = Data(x, y, x[:10], y[:10], 2, {"test": np.arange(10)}, parts, "binary")
    engine = Engine(model, training, data, seed=0, workers=1)
    state, number = engine.start(), 0

    def play():
        nonlocal state, number
        number += 1
        updates = engine.train(state, number, range(CLIENTS))
        state = aggregate(updates, updates.samples)

    return play


def torchs(model, algorithm, x, y):
    """The loop anybody would write."""
    samples, labels = torch.from_numpy(x), torch.from_numpy(y).float()
    module = build(model, (FEATURES,), 1, 0)

    def play():
        start = copy.deepcopy(module.state_dict())
        total = {name: torch.zeros_like(value) for name, value in start.items()}
        for client in range(CLIENTS):
            module.load_state_dict(start)
            optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
            order = torch.randperm(ROWS) + client * ROWS
            for batch in order.split(BATCH if algorithm == "fedavg" else ROWS):
                optimizer.zero_grad()
                binary_cross_entropy_with_logits(
                    module(samples[batch])[:, 0], labels[batch]
                ).backward()
                optimizer.step()
            for name, value in module.state_dict().items():
                total[name] += value / CLIENTS
        module.load_state_dict(total)

    return play


def seconds(play):
    began = time.perf_counter()
    play()
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    x, y = table()
    slow = 0
    print(f"{'':24}{'bara, ms':>10}{'torch, ms':>11}{'ours is x times as fast':>25}")
    for model in ("linear", "mlp"):
        for algorithm in ("fedavg", "fedsgd"):
            contestants = [ours(model, algorithm, x, y), torchs(model, algorithm, x, y)]
            for play in contestants:
                play()
            times = [[seconds(play) for play in contestants] for _ in range(asked.rounds)]
            mine, theirs = (statistics.median(column) for column in zip(*times, strict=True))
            slow += mine > theirs
            print(
                f"{model + ', ' + algorithm:24}{1e3 * mine:10.1f}{1e3 * theirs:11.1f}"
                f"{theirs / mine:25.2f}",
                flush=True,
            )
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()

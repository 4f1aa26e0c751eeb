"""What bfloat16 does to accuracy: the same run in both precisions, on real data when $BARA_DATA has them."""

import os
from pathlib import Path

import numpy as np

from bara.federations.simulator import Data, Engine, Training, aggregate

CLIENTS, SAMPLES, ROUNDS = 10, 600, 5


def load(name):
    path = Path(os.environ.get("BARA_DATA", ".")) / f"{name}.npz"
    if not path.exists():
        return None
    with np.load(path) as file:
        return Data(file["x_train"], file["y_train"].astype(int), file["x_test"], file["y_test"].astype(int), 10)


def accuracy(data, precision, seed):
    parts = np.split(np.random.default_rng(seed).permutation(len(data.y_train))[: CLIENTS * SAMPLES], CLIENTS)
    training = Training(precision=precision, learning_rate=0.05)
    with Engine("mlp", training, data, parts, seed=seed, workers=2) as engine:
        state = engine.start()
        for number in range(ROUNDS):
            updates = engine.train(state, number, range(CLIENTS))
            state = aggregate(updates, updates.samples)
        return engine.evaluate(state).accuracy


def main():
    print(f"\nAccuracy after {ROUNDS} FedAvg rounds of {CLIENTS} x {SAMPLES} samples, MLP, seeds 0 to 2")
    for name in ("mnist", "fashion-mnist"):
        data = load(name)
        if data is None:
            print(f"{name}: not in $BARA_DATA, left out")
            continue
        for precision in ("float32", "bfloat16"):
            got = [accuracy(data, precision, seed) for seed in range(3)]
            print(f"{name:15}{precision:10}" + "".join(f"{one:9.2%}" for one in got) + f"   mean {np.mean(got):.2%}")


main()

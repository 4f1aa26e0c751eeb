"""Contestant: bara's engine on two workers. Argument: the algorithm."""

import sys

import numpy as np
from gate import Gate
from workload import CLASSES, Workload, training

from bara.simulator import Data, Engine, aggregate


def main():
    load = Workload.here()
    x, y = load.pictures()
    parts = np.split(np.arange(len(y)), load.clients)
    data = Data(x, y, x[:10], y[:10], CLASSES, {"test": np.arange(10)}, parts)
    gate = Gate()
    with Engine(load.model, training(sys.argv[1]), data, seed=0, workers=2) as engine:
        state, number = engine.start(), 0

        def play():
            nonlocal state, number
            number += 1
            updates = engine.train(state, number, range(load.clients))
            state = aggregate(updates, updates.samples)

        gate.serve(play)


main()

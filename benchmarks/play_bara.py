"""Contestant: bara's engine on two workers. Argument: the algorithm."""

import sys

import numpy as np
from gate import Gate
from workload import BATCH, CLASSES, RATE, Workload

from bara.federations.simulator import Data, Engine, Training, aggregate


def main():
    load = Workload.here()
    x, y = load.pictures()
    data = Data(x, y, x[:10], y[:10], CLASSES)
    training = Training(algorithm=sys.argv[1], learning_rate=RATE, batch_size=BATCH)
    parts = np.split(np.arange(len(y)), load.clients)
    gate = Gate()
    with Engine(load.model, training, data, parts, seed=0, workers=2) as engine:
        state, number = engine.start(), 0

        def play():
            nonlocal state, number
            number += 1
            updates = engine.train(state, number, range(load.clients))
            state = aggregate(updates, updates.samples)

        gate.serve(play)


main()

"""What allocator and market add to a round of real training (target: less than 1 %)."""

import time

import numpy as np
from workload import training

from bara import ALLOCATORS, MECHANISMS, Delivery, Evaluation, Purse, Session
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.simulator import Data, Engine, aggregate

CLIENTS, SAMPLES, ROUNDS = 20, 3000, 200


class Instant:
    """A federation whose training takes no time."""

    def __init__(self):
        self._bidders = Bidders(CLIENTS, Distribution.parse("uniform(0.5, 1.5)"), 0)

    def evaluate(self):
        return Evaluation(0.1)

    def bids(self, round_number):
        return self._bidders.bids(round_number)

    def train(self, round_number, award):
        return Delivery.complete(award, Evaluation(min(0.1 + 0.004 * round_number, 1.0)))


def market_seconds(allocator, options):
    session = Session(
        ALLOCATORS.build(allocator, options, clients=CLIENTS, seed=0),
        MECHANISMS.build("bid-price-first"),
        Instant(),
    )
    start = time.perf_counter()
    rounds = sum(1 for _ in session.rounds(Purse.of(1500, ROUNDS))) / 2
    return (time.perf_counter() - start) / rounds


def training_seconds():
    rng = np.random.default_rng(0)
    count = CLIENTS * SAMPLES
    x = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
    y = rng.integers(0, 10, count)
    parts = np.array_split(np.arange(count), CLIENTS)
    data = Data(x, y, x[:1000], y[:1000], 10, {"test": np.arange(1000)}, parts)
    with Engine("mlp", training("fedsgd"), data, seed=0, workers=2) as engine:
        state, times = engine.start(), []
        for t in range(1, 8):
            start = time.perf_counter()
            updates = engine.train(state, t, list(range(8)))
            state = aggregate(updates, updates.samples)
            times.append(time.perf_counter() - start)
    return float(np.median(times[2:]))


def main():
    training = training_seconds()
    print(
        f"a FedSGD round of 8 clients x {SAMPLES} samples on the MLP, no evaluation: "
        f"{1e3 * training:.1f} ms"
    )
    for name, options in (
        ("even", {}),
        ("bara", {}),
        ("bara", {"preset": "paper"}),
        ("planner", {}),
    ):
        market = market_seconds(name, options)
        print(
            f"{name} {options or ''}: {1e3 * market:.3f} ms a round, "
            f"{100 * market / training:.2f} % of it"
        )


if __name__ == "__main__":
    main()

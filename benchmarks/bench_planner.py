"""One decision of the planner (tell and ask) at several sizes, beside `even`, which has none."""

import time

import numpy as np

from bara import ALLOCATORS, AwardedRound, Bids, Delivery, Evaluation, Offer, Purse, RoundRecord
from bara.mechanisms import bid_price_first


def records(clients, rounds):
    """Round 0 and so many more, of a run with a hundred still to come."""
    rng = np.random.default_rng(0)
    names = tuple(f"client-{i:04d}" for i in range(clients))
    purse = Purse.of(75 * clients, rounds + 100)
    yield RoundRecord.initial(purse, Evaluation(0.1))
    for t in range(1, rounds + 1):
        bids = Bids(names, rng.integers(500_000, 1_500_000, clients))
        here = Purse(purse.total, purse.max_rounds, purse.total * t // (2 * rounds + 200), t)
        awarded = AwardedRound.of(here, Offer.recruit(clients // 3), bid_price_first().menu(bids))
        yield awarded.settle(Delivery.complete(awarded.award, Evaluation(0.8 - 0.7 / (1 + t / 20))))


def milliseconds(name, clients, rounds):
    allocator = ALLOCATORS.build(name, {}, clients=clients, seed=0)
    times = []
    for record in records(clients, rounds):
        start = time.perf_counter()
        allocator.tell(record)
        allocator.ask(record.purse_after)
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times[-30:]))


def main():
    print(f"{'clients':>8} {'rounds':>8} {'planner':>12} {'even':>12}")
    for clients, rounds in ((20, 50), (20, 1_000), (20, 10_000), (100, 50), (1_000, 50)):
        print(
            f"{clients:>8,} {rounds:>8,} {milliseconds('planner', clients, rounds):>10.2f}ms",
            end=" ",
        )
        print(f"{milliseconds('even', clients, rounds):>10.4f}ms")


if __name__ == "__main__":
    main()

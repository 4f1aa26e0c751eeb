"""Every mechanism's menu for 100,000 bidders beside numpy's argsort of the same prices.

The target is a few times the argsort.
"""

import time
from functools import partial

import numpy as np

from bara import Award, Bids, Delivery, Evaluation, Evidence, Offer, Purse
from bara.mechanisms import MECHANISMS
from bara.mechanisms.audit import audit
from bara.mechanisms.properties import random_case
from bara.records import AwardedRound

COUNT = 10**5
TRIALS = 100
VARIANTS = {
    "quality": [{"quality": "samples"}],
    "fl-market": [{}, {"auction": "all-in"}, {"auction": "dm-regretnet"}],
    "fmore": [{}, {"columns": ["samples", "epsilon"], "form": "cobb-douglas"}],
    "proportional-share": [{}, {"quality": "samples"}],
    "posted-price": [{"price": 1}],
    "tariff": [{"per_round": 1}],
}
LEARNERS = ("turns", "fair", "rrafl", "a-fl")


def best(function, repeats=15):
    """The least of several times, in processor time: the machine may be busy."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def main():
    rng = np.random.default_rng(0)
    names = tuple(f"client-{i:07d}" for i in range(COUNT))
    columns = {
        "samples": rng.integers(100, 1000, COUNT).astype(float),
        "epsilon": rng.uniform(0.1, 1, COUNT),
    }
    bids = Bids(names, rng.integers(500_000, 1_500_000, COUNT), columns)
    sort = best(lambda: np.argsort(bids.prices))
    print(f"{COUNT:,} bids; argsort {1e3 * sort:.2f} ms")
    print(f"{'mechanism':<65} {'menu':>10} {'ratio':>6} {'award of 1,000':>15}")
    for name in MECHANISMS.names():
        for options in VARIANTS.get(name, [{}]):
            mechanism = MECHANISMS.build(name, options)
            menu = best(lambda mechanism=mechanism: mechanism.menu(bids))
            ready = mechanism.menu(bids)
            purse = Purse.of(10**6, 1)
            award = best(
                lambda ready=ready, purse=purse: ready.award(Offer.recruit(1000), purse), repeats=3
            )
            label = name + (str(options) if options else "")
            print(f"{label:<65} {1e3 * menu:>8.2f}ms {menu / sort:>6.1f} {1e3 * award:>13.2f}ms")
    print(
        f"{'having learned of everybody':<65} {'menu':>10} {'ratio':>6} {'tell':>10} {'ratio':>6}"
    )
    for name in LEARNERS:
        mechanism, round_of_all = MECHANISMS.build(name), everyone_delivers(bids, rng)
        tell = best(
            lambda mechanism=mechanism, record=round_of_all: mechanism.tell(record), repeats=1
        )
        menu = best(lambda mechanism=mechanism: mechanism.menu(bids), repeats=5)
        print(
            f"{name:<65} {1e3 * menu:>8.2f}ms {menu / sort:>6.1f} {1e3 * tell:>8.2f}ms "
            f"{tell / sort:>6.1f}"
        )
    drawn = best(lambda: [random_case(rng) for _ in range(TRIALS)], repeats=5)
    print(f"{'audit':<65} {'trial':>10} {'ratio to drawing its round':>28}")
    for name in MECHANISMS.names():
        make = partial(MECHANISMS.build, name, VARIANTS.get(name, [{}])[0])
        spent = best(lambda make=make: list(audit(make, TRIALS)), repeats=3)
        print(f"{name:<65} {1e3 * spent / TRIALS:>8.2f}ms {spent / drawn:>28.1f}")


def everyone_delivers(bids, rng):
    """A settled round in which all were recruited and lowered their loss."""
    award = Award(bids.clients, (1,) * len(bids))
    awarded = AwardedRound(Purse.of(10**6, 1), Offer.recruit(len(bids)), bids, bids.prices, award)
    left = rng.uniform(0.2, 0.9, len(bids)).tolist()
    evidence = {
        client: Evidence(10, 1.0, loss) for client, loss in zip(bids.clients, left, strict=True)
    }
    return awarded.settle(Delivery(Evaluation(0.5), evidence))


if __name__ == "__main__":
    main()

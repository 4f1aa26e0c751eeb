"""Every mechanism's menu for 100,000 bidders beside numpy's argsort of the same prices (target: a few times it)."""

import time

import numpy as np

from bara import Bids, Offer, Purse
from bara.mechanisms import MECHANISMS

COUNT = 10**5
VARIANTS = {
    "quality": [{"quality": "samples"}],
    "fl-market": [{}, {"auction": "all-in"}],
    "fmore": [{}, {"columns": ["samples", "epsilon"], "form": "cobb-douglas"}],
    "proportional-share": [{}, {"quality": "samples"}],
}


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
    columns = {"samples": rng.integers(100, 1000, COUNT).astype(float), "epsilon": rng.uniform(0.1, 1, COUNT)}
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
            award = best(lambda ready=ready, purse=purse: ready.award(Offer.recruit(1000), purse), repeats=3)
            label = name + (str(options) if options else "")
            print(f"{label:<65} {1e3 * menu:>8.2f}ms {menu / sort:>6.1f} {1e3 * award:>13.2f}ms")


if __name__ == "__main__":
    main()

"""The auction's menu beside numpy's own argsort of the same prices (target: at most 3 times it)."""

import time

import numpy as np

from bara import Bids
from bara.mechanisms import critical_menu


def best(function, repeats=7):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    rng = np.random.default_rng(0)
    print(
        f"{'bids':>10} {'argsort':>10} {'menu':>10} {'ratio':>6}   {'menu with quality':>18} "
        f"{'ratio':>6}"
    )
    for count in (10**4, 10**5, 10**6):
        names = tuple(f"client-{i:07d}" for i in range(count))
        prices = rng.integers(500_000, 1_500_000, count)
        quality = rng.uniform(100, 1000, count)
        bids = Bids(names, prices)
        sort = best(lambda prices=prices: np.argsort(prices))
        menu = best(lambda bids=bids: critical_menu(bids))
        scored = best(lambda bids=bids, quality=quality: critical_menu(bids, quality))
        print(
            f"{count:>10,} {1e3 * sort:>8.2f}ms {1e3 * menu:>8.2f}ms {menu / sort:>6.2f}   "
            f"{1e3 * scored:>16.2f}ms {scored / sort:>6.2f}"
        )


if __name__ == "__main__":
    main()

"""A mechanism of your own: the cheapest win, and each is paid what it asks.

The audit tells what lying gains.
"""

import numpy as np

import bara
from bara.mechanisms.audit import audit


class PayAsBid:
    """The n cheapest clients, each at its own price."""

    claims = frozenset({"individually-rational", "budget-feasible"})

    def menu(self, bids):
        """Who wins and what that costs, for every number of winners."""
        order = np.argsort(bids.prices, kind="stable")
        prices = bids.prices[order]
        return bara.Menu(bids, order, np.cumsum(prices), pay=lambda n, _cap: prices[:n])

    def tell(self, record):
        """Learns nothing."""


for mechanism in ("bid-price-first", PayAsBid()):
    print(bara.run(federation="synthetic", budget=200, allocator="even", mechanism=mechanism))
for finding in audit(PayAsBid, trials=50, unit=10_000):
    print(f"{finding.name}: {finding.counter_example or 'holds'}")

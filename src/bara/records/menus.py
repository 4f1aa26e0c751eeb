"""What each number of clients costs this round, and the award that an offer buys from it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bara.errors import InvalidOfferError
from bara.records.bids import Bids, IntArray
from bara.records.offers import Award, Offer, Purse

Pay = Callable[[int, int], IntArray]
"""(n, cap) -> what each of the first n clients is paid when cap is the most the round may cost."""

Weigh = Callable[[int], tuple[float, ...]]
"""n -> the aggregation weights of the first n clients."""


@dataclass(frozen=True, eq=False)
class Menu:
    """The cost of every n that can be served, and how the first n are paid.

    Attributes:
        bids: What the menu was made from.
        order: Positions in `bids`, best client first.
        costs: `costs[n - 1]` is what n clients cost: exactly, or as an upper bound (see `exact`).
        pay: The exact payments for n clients under a cap.
        exact: Whether `costs` is exact. Otherwise it lies above `cost(n)` by less than the bids'
            unit and a micro-unit for each client (more only where a round costs many millions of
            units and float64 ends).
        weigh: The aggregation weights the mechanism wants, or None.
    """

    bids: Bids
    order: IntArray
    costs: IntArray
    pay: Pay
    exact: bool = True
    weigh: Weigh | None = None

    def __len__(self) -> int:
        """The largest n on the menu."""
        return len(self.costs)

    def cost(self, n: int) -> int:
        """What recruiting n clients costs, to the micro-unit."""
        if not 1 <= n <= len(self):
            raise InvalidOfferError(f"n must be from 1 to {len(self)} on this menu, got {n}")
        return (
            int(self.costs[n - 1]) if self.exact else int(self.pay(n, int(self.costs[n - 1])).sum())
        )

    def award(self, offer: Offer, purse: Purse) -> Award:
        """The largest n whose cost is within its cap and within the purse."""
        award = self.unweighed(offer, purse)
        return (
            replace(award, weights=self.weigh(award.n))
            if self.weigh is not None and award.n
            else award
        )

    def unweighed(self, offer: Offer, purse: Purse) -> Award:
        """The same award without its weights, which may take long to find."""
        caps, left = offer.vector(len(self)), purse.left
        n = wanted = self._largest(caps)
        if wanted and int(self.costs[wanted - 1]) > left:
            n = self._largest(np.minimum(caps, left))
        fell_short = wanted > n
        if n == 0 or (fell_short and offer.shortfall == "stop"):
            return Award(fell_short=fell_short)
        return Award(
            clients=tuple([self.bids.clients[i] for i in self.order[:n].tolist()]),
            payments=tuple(self.pay(n, min(int(caps[n - 1]), left)).tolist()),
            fell_short=fell_short,
        )

    def _largest(self, caps: IntArray) -> int:
        within = (self.costs <= caps).nonzero()[0]
        sure = int(within[-1]) + 1 if len(within) else 0
        if self.exact or sure == len(self):
            return sure
        n, costs, caps = np.arange(sure + 1, len(self) + 1), self.costs[sure:], caps[sure:]
        least = (
            costs
            - (self.bids.unit + 1) * n
            - np.ceil(costs * ((n + 4) * 2.0**-48)).astype(np.int64)
        )
        for place in (least <= caps).nonzero()[0][::-1]:
            if self.cost(int(n[place])) <= caps[place]:
                return int(n[place])
        return sure

"""The menu of a round: what each number of clients costs, and the award that an offer buys."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from bara.errors import InvalidOfferError
from bara.records.bids import Bids, IntArray
from bara.records.offers import Award, Offer, Purse

Pay = Callable[[int, int], IntArray]
"""(n, cap) -> the payment of each of the first n clients when the round may cost at most `cap`."""

Weigh = Callable[[int], tuple[float, ...]]
"""(n) -> the aggregation weights of the first n clients."""


@dataclass(frozen=True, eq=False)
class Menu:
    """The cost of every number of clients that a mechanism can recruit, and how they are paid.

    Attributes:
        bids: The bids that the menu was made from.
        order: Positions in `bids`, the best client first; n clients are the first n of them.
        costs: `costs[n - 1]` is what n clients cost: exactly, or as an upper bound (see `exact`).
        pay: Returns the exact payments for n clients under a cap.
        exact: Whether `costs` is exact. Otherwise it exceeds `cost(n)` by less than the bids' unit
            plus one micro-unit, for each client (by more only where a round costs so many millions
            of units that float64 is too coarse).
        weigh: Returns the aggregation weights that the mechanism wants; None for no wish.
        left_out: Why the mechanism left clients out of `bids` altogether, by client.
    """

    bids: Bids
    order: IntArray
    costs: IntArray
    pay: Pay
    exact: bool = True
    weigh: Weigh | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the largest number of clients on the menu."""
        return len(self.costs)

    def cost(self, n: int) -> int:
        """Return what recruiting n clients costs, exact to the micro-unit."""
        if not 1 <= n <= len(self):
            raise InvalidOfferError(f"n must be from 1 to {len(self)} on this menu, got {n}")
        cost = int(self.costs[n - 1])
        if self.exact:
            return cost
        return int(self.pay(n, cost).sum())

    def award(self, offer: Offer, purse: Purse) -> Award:
        """Award the largest n whose cost is within the offer's cap for n and within the purse."""
        award = self.unweighed(offer, purse)
        if self.weigh is None or not award.n:
            return award
        return replace(award, weights=self.weigh(award.n))

    def unweighed(self, offer: Offer, purse: Purse) -> Award:
        """Return the same award without its weights, which may take long to compute."""
        n, cap, fell_short = self._recruited(offer, purse)
        if n == 0:
            return Award(fell_short=fell_short)
        return Award(
            clients=tuple([self.bids.clients[i] for i in self.order[:n].tolist()]),
            payments=tuple(self.pay(n, cap).tolist()),
            fell_short=fell_short,
        )

    def payment_of(self, client: str, offer: Offer, purse: Purse) -> int:
        """Return what one client is paid by the award, 0 if it loses; the award is not checked."""
        n, cap, _ = self._recruited(offer, purse)
        if n == 0:
            return 0
        winners = self.order[:n].tolist()
        place = self.bids.clients.index(client)
        if place not in winners:
            return 0
        return int(self.pay(n, cap)[winners.index(place)])

    def _recruited(self, offer: Offer, purse: Purse) -> tuple[int, int, bool]:
        """Return how many clients are recruited, what they may cost, and if the purse is short."""
        caps = offer.vector(len(self))
        left = purse.left
        wanted = self._largest(caps)
        n = wanted
        if wanted and int(self.costs[wanted - 1]) > left:
            n = self._largest(np.minimum(caps, left))
        fell_short = wanted > n
        if n == 0 or (fell_short and offer.shortfall == "stop"):
            return 0, 0, fell_short
        return n, min(int(caps[n - 1]), left), fell_short

    def _largest(self, caps: IntArray) -> int:
        """Return the largest n whose exact cost is at most `caps[n - 1]`; 0 if there is none."""
        within = (self.costs <= caps).nonzero()[0]
        sure = int(within[-1]) + 1 if within.size else 0
        if self.exact or sure == len(self):
            return sure
        # Above `sure`, only the upper bounds exceed the caps: the exact costs may still fit. They
        # are slow to compute, so a lower bound first rules out most of the larger n.
        n = np.arange(sure + 1, len(self) + 1)
        costs = self.costs[sure:]
        caps = caps[sure:]
        rounding = np.ceil(costs * ((n + 4) * 2.0**-48)).astype(np.int64)
        least = costs - (self.bids.unit + 1) * n - rounding
        for place in (least <= caps).nonzero()[0][::-1]:
            if self.cost(int(n[place])) <= caps[place]:
                return int(n[place])
        return sure

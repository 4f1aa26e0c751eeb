"""Dual pacing: a price per client that rises while too little is spent and falls while too much is.

Notation:
    p       the most a client may cost on average, the inverse of the multiplier on money
    r       what a round may cost if the money is to last: left / rounds left
    eta     the step, 1 / sqrt(T_max)

    n clients are recruited if they cost at most n p;     log p <- log p + eta (r - spent) / r

(Balseiro and Gur 2019, adaptive pacing in repeated auctions with a budget; every update counts the
same.) So rounds in which clients are cheap recruit more of them. The first round, before any price
is known, may cost r.
"""

import math

from bara.allocators._arms import check_clients
from bara.records import MAX_MONEY, Offer, Purse, RoundRecord


class Pacing:
    """A price per client, learned from the money spent: whoever is cheap enough is recruited.

    Args:
        clients: N, the largest number of clients there may be.
    """

    def __init__(self, clients: int) -> None:
        check_clients("pacing", clients)
        self._clients = clients
        self._price: float | None = None

    def ask(self, purse: Purse) -> Offer:
        """Offer at most n p for n clients."""
        if not purse.rounds_left:
            return Offer.stop()
        if self._price is None:
            return Offer.spend(purse.left // purse.rounds_left)
        many = range(1, self._clients + 1)
        return Offer.caps([min(int(n * self._price), MAX_MONEY) for n in many])

    def tell(self, record: RoundRecord) -> None:
        """Correct the price by the money that the round cost."""
        purse = record.awarded.purse
        if record.round == 0 or not purse.left:
            return
        target = purse.left / purse.rounds_left
        award = record.awarded.award
        if self._price is None:
            self._price = award.cost / award.n if award.n else target
        step = (target - award.cost) / target / math.sqrt(purse.max_rounds)
        self._price *= math.exp(max(min(step, 1.0), -1.0))

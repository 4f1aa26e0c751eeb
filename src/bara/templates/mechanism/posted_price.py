"""A mechanism to begin with: change who wins and what they are paid."""

import numpy as np

from bara import Bids, Menu, RoundRecord, money
from bara.mechanisms.properties import CRITICAL_PAYMENTS


class PostedPrice:
    """Offers everybody the same price; those who ask no more are recruited in the order of their names.

    Args:
        price: What is offered, in the unit of the budget.
    """

    claims = CRITICAL_PAYMENTS
    """What it promises: rational, within budget, truthful, monotone, exact. `bara audit` holds it to that."""

    def __init__(self, price: float | str = "1.00") -> None:
        self._price = money(price)

    def menu(self, bids: Bids) -> Menu:
        """Who wins and what that costs, for every number of winners."""
        willing = np.flatnonzero(bids.prices <= self._price)
        willing = willing[np.argsort([bids.clients[i] for i in willing], kind="stable")]
        costs = self._price * np.arange(1, len(willing) + 1)
        return Menu(bids, willing, costs, pay=lambda n, _cap: np.full(n, self._price))

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round; this one learns nothing."""

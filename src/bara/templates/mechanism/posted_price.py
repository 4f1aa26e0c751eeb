"""A mechanism to start from: change who wins and what the winners are paid."""

import numpy as np

from bara import Bids, Menu, RoundRecord, money
from bara.mechanisms.properties import CRITICAL_PAYMENTS


class PostedPrice:
    """A mechanism that offers everybody one price and recruits those who accept it, by name.

    Args:
        price: What each winner is paid, in the unit of the budget.
    """

    claims = CRITICAL_PAYMENTS
    """The promises: rational, within budget, truthful, monotone, exact. `bara audit` tests them."""

    def __init__(self, price: float | str = "1.00") -> None:
        self._price = money(price)

    def menu(self, bids: Bids) -> Menu:
        """Return who wins and what that costs, for every number of winners."""
        willing = np.flatnonzero(bids.prices <= self._price)
        names = [bids.clients[i] for i in willing]
        willing = willing[np.argsort(names, kind="stable")]
        costs = self._price * np.arange(1, len(willing) + 1)
        return Menu(bids, willing, costs, pay=lambda n, _cap: np.full(n, self._price))

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round; this one learns nothing."""

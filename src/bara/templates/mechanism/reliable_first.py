"""A mechanism to start from: change the quality by which clients are ranked and paid."""

from bara import Bids, Menu, RoundRecord
from bara.mechanisms import CRITICAL_PAYMENTS, by_client, critical_menu, reserve_price, sizes


class ReliableFirst:
    """An auction by quality per price; quality is a client's data size times its reliability.

    The auction sorts by quality per price, the first n win, and each is paid the highest price at
    which it would still have won. So nobody gains by asking more than its cost, whatever the
    quality is, as long as no price of this round has a part in it.

    Args:
        reserve: The most that is paid for a unit of quality, in the unit of the budget; None for no
            limit.
    """

    claims = CRITICAL_PAYMENTS
    """The promises: rational, within budget, truthful, monotone, exact. `bara audit` tests them."""

    def __init__(self, reserve: float | str | None = None) -> None:
        self._reserve = reserve_price(reserve)
        self._won: dict[str, int] = {}
        self._delivered: dict[str, int] = {}

    def menu(self, bids: Bids) -> Menu:
        """Return who wins and what that costs, for every number of winners."""
        reliability = {}
        for client, won in self._won.items():
            reliability[client] = (1 + self._delivered.get(client, 0)) / (2 + won)
        quality = sizes(bids) * by_client(bids, reliability, 0.5)
        return critical_menu(bids, quality, self._reserve)

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round who delivered and who failed."""
        for client in [*record.delivery.delivered, *record.delivery.failed]:
            self._won[client] = self._won.get(client, 0) + 1
        for client in record.delivery.delivered:
            self._delivered[client] = self._delivered.get(client, 0) + 1

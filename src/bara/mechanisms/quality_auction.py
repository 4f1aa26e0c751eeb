"""The paper's own mechanism: quality per price, critical payments; *bid price first* where all are equal."""

from dataclasses import dataclass, field

from bara.mechanisms._critical import critical_menu, reserve_price
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.protocols import LearnsNothing
from bara.records import Bids, Menu


@dataclass(frozen=True)
class QualityAuction(LearnsNothing):
    """Recruits by quality per price and pays each winner the price at which it would just have lost.

    Args:
        quality: The column of the bids that the server takes as quality (`samples`, say); None for
            equal quality.
        reserve: The most that is paid for a unit of quality, in units of the budget; None for no
            limit.

    >>> auction = QualityAuction()
    >>> menu = auction.menu(Bids.of({"ann": 1, "bob": 2, "cat": 4}))
    >>> menu.cost(1), menu.cost(2)
    (2000000, 8000000)
    """

    quality: str | None = None
    reserve: float | str | None = None
    claims: frozenset[str] = field(default=CRITICAL_PAYMENTS, init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a reserve price that is no price."""
        reserve_price(self.reserve)

    def menu(self, bids: Bids) -> Menu:
        """The critical-payment menu over the chosen column."""
        return critical_menu(
            bids,
            quality=None if self.quality is None else bids.column(self.quality),
            reserve=reserve_price(self.reserve),
        )


def bid_price_first(reserve: float | str | None = None) -> QualityAuction:
    """The quality auction where all clients count alike: the cheapest win (the paper's experiments).

    Args:
        reserve: The most that a winner is paid, in units of the budget; None for no limit.

    >>> bids = Bids.of({"ann": 1, "bob": 2, "cat": 4})
    >>> bid_price_first(reserve=5).menu(bids).cost(3)  # without a reserve price, three have no loser to set theirs
    15000000
    """
    return QualityAuction(reserve=reserve)

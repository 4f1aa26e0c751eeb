"""The paper's own mechanism: an auction by quality per price, with critical payments."""

from dataclasses import dataclass, field

from bara.mechanisms._critical import critical_menu, reserve_price
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.protocols import LearnsNothing, Requirements
from bara.records import Bids, Menu


@dataclass(frozen=True)
class QualityAuction(LearnsNothing):
    """An auction by quality per price that pays winners the price at which they would have lost.

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
        """Refuse a reserve price that is not a positive amount."""
        reserve_price(self.reserve)

    @property
    def requirements(self) -> Requirements:
        """Bids with the column of qualities, if there is one."""
        return Requirements(columns=() if self.quality is None else (self.quality,))

    def menu(self, bids: Bids) -> Menu:
        """Return the critical-payment menu over the chosen column."""
        quality = None if self.quality is None else bids.column(self.quality)
        return critical_menu(bids, quality, reserve_price(self.reserve))


def bid_price_first(reserve: float | str | None = None) -> QualityAuction:
    """Return the auction of the paper's experiments: quality is equal, so the cheapest win.

    Args:
        reserve: The most that a winner is paid, in units of the budget; None for no limit.

    >>> bids = Bids.of({"ann": 1, "bob": 2, "cat": 4})
    >>> bid_price_first(reserve=5).menu(bids).cost(3)  # without a reserve, no loser sets a price
    15000000
    """
    return QualityAuction(reserve=reserve)

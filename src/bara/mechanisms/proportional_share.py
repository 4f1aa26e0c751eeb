"""Singer's proportional share, the classic budget-feasible mechanism."""

from dataclasses import dataclass

import numpy as np

from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.mechanisms.sharing import sharing_menu
from bara.records import Bids, Menu, RoundRecord


@dataclass(frozen=True)
class ProportionalShare:
    """Recruits by quality per price as long as the budget, shared by quality, pays the last one what it asks.

    Singer 2010 ("Budget feasible mechanisms", recalled, not re-read): by u_i = b_i / q_i ascending, the largest k with
    b_k <= B q_k / Q(k) wins, and winner i is paid q_i min(B / Q(k), u_(k+1)). The cost of n on the menu is the least
    budget that admits n, u_n Q(n); a larger cap pays more, up to the first loser's unit price.

    Our choices: n = N is not served, because without a loser an offer that names no budget would be spent whole; and
    with unequal quality, rounding payments down leaves less than a micro-unit a winner of the menu's cost unpaid, so
    exact sums are not claimed.

    Args:
        quality: The column of the bids that the server takes as quality; None for equal quality.

    >>> from bara.records import Offer, Purse
    >>> menu = ProportionalShare().menu(Bids.of({"ann": 1, "bob": 2, "cat": 4}))
    >>> menu.award(Offer.spend(5_000_000), Purse.of(100, 1)).payments
    (2500000, 2500000)
    """

    quality: str | None = None

    @property
    def claims(self) -> frozenset[str]:
        """All that critical payments promise; exact sums where quality is equal."""
        return CRITICAL_PAYMENTS if self.quality is None else CRITICAL_PAYMENTS - {"exact-sum"}

    def menu(self, bids: Bids) -> Menu:
        """The least budget that admits each n."""
        quality = np.ones(len(bids)) if self.quality is None else bids.column(self.quality)
        return sharing_menu(bids, quality, up_to_next=True)

    def tell(self, record: RoundRecord) -> None:
        """It learns nothing."""

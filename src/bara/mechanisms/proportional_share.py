"""Singer's proportional share, the classic budget-feasible mechanism, and menus of shared budgets.

Notation:
    b_i     price asked, in micro-units
    q_i     quality
    u_i     unit price b_i / q_i, ascending
    Q(n)    q_1 + ... + q_n
    B       the cap of n

n clients can share B when B / Q(n), the payment for a unit of quality, is at least u_n: the menu's
cost of n is the least such budget, u_n Q(n). The actual payments depend on B itself, which reaches
`Menu.pay` as the cap.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bara.mechanisms._critical import (
    by_unit_price,
    floor_products,
    unit_price,
    upper_bounds,
)
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.protocols import LearnsNothing, Requirements
from bara.records import Bids, FloatArray, IntArray, Menu
from bara.records.bids import checked_column


@dataclass(frozen=True)
class ProportionalShare(LearnsNothing):
    """An auction by quality per price: as many win as a budget shared by quality can pay.

    Singer 2010 ("Budget feasible mechanisms", recalled, not re-read): by u_i = b_i / q_i ascending,
    the largest k with b_k <= B q_k / Q(k) wins, and winner i is paid q_i min(B / Q(k), u_(k+1)).
    The cost of n on the menu is the least budget that admits n, u_n Q(n); a larger cap pays more,
    up to the first loser's unit price.

    Our choices: n = N is not served, because without a loser an offer that names no budget would be
    spent whole; and with unequal quality, rounding payments down leaves less than a micro-unit per
    winner of the menu's cost unpaid, so exact sums are not claimed. Not implemented: Singer
    compares these winners with the single client of the highest quality that the budget pays, and
    takes the better, which bounds the loss where one client is worth more than all the others. A
    menu has one order of clients; with equal quality the single client is never better.

    Args:
        quality: The column of the bids that the server takes as quality; None for equal quality.

    >>> from bara.records import Offer, Purse
    >>> menu = ProportionalShare().menu(Bids.of({"ann": 1, "bob": 2, "cat": 4}))
    >>> menu.award(Offer.spend(5_000_000), Purse.of(100, 1)).payments
    (2500000, 2500000)
    """

    quality: str | None = None

    @property
    def requirements(self) -> Requirements:
        """Bids with the column of qualities, if there is one."""
        return Requirements(columns=() if self.quality is None else (self.quality,))

    @property
    def claims(self) -> frozenset[str]:
        """The claims of critical payments; exact sums only where quality is equal."""
        return CRITICAL_PAYMENTS if self.quality is None else CRITICAL_PAYMENTS - {"exact-sum"}

    def menu(self, bids: Bids) -> Menu:
        """Return the menu of the least budget that admits each n."""
        quality = np.ones(len(bids)) if self.quality is None else bids.column(self.quality)
        return sharing_menu(bids, quality, up_to_next=True)


def sharing_menu(bids: Bids, quality: FloatArray, *, up_to_next: bool) -> Menu:
    """Return the menu of a shared budget; ties go to the client that the bids prefer.

    Args:
        bids: The opened bids.
        quality: The server's score of each client, in the order of `bids`.
        up_to_next: Pay a unit of quality no more than the first loser asks for it, for 1 <= n < N
            (Singer); otherwise the whole cap is shared out, for 1 <= n <= N (All-in).
    """
    quality = checked_column("quality", quality, bids.clients)
    order = by_unit_price(bids, quality)
    prices = bids.prices[order]
    scores = quality[order]
    costs = _least_budgets(prices, scores)

    def pay(n: int, cap: int) -> IntArray:
        ratios = [score.as_integer_ratio() for score in scores[:n].tolist()]
        # Denominators of floats are powers of two, so the largest is a multiple of all of them.
        largest = max(denominator for _, denominator in ratios)
        total = sum(numerator * (largest // denominator) for numerator, denominator in ratios)
        unit = Fraction(cap * largest, total)
        if up_to_next:
            unit = min(unit, unit_price(prices, scores, n))
        return floor_products(scores[:n], unit, bids.unit)

    if up_to_next:
        costs = costs[: max(len(bids) - 1, 0)]
    return Menu(bids, order, costs, pay)


def _least_budgets(prices: IntArray, scores: FloatArray) -> IntArray:
    """Return u_n Q(n) for every n, rounded up far enough that no share falls below a price.

    For whole qualities the result is exact. It ends before the first n that no purse pays.
    """
    totals = scores.cumsum()
    whole = len(prices) and (scores == np.rint(scores)).all()
    if whole and float(prices.max()) * totals[-1] < 2**53:
        return np.asarray(-(-prices * totals.astype(np.int64) // scores.astype(np.int64)))
    return np.maximum.accumulate(upper_bounds(prices / scores * totals))

"""Menus whose winners share a budget in proportion to quality: Singer's proportional share, and FL-Market's All-in.

Notation:
    b_i     price asked, in micro-units
    q_i     quality
    u_i     unit price b_i / q_i, ascending
    Q(n)    q_1 + ... + q_n
    B       the cap of n

n clients can share B when B / Q(n), what each unit of quality gets, is at least u_n: the menu's cost of n is the
least such budget, u_n Q(n). What is really paid depends on B itself and reaches `Menu.pay` as the cap.
"""

from fractions import Fraction

import numpy as np

from bara.mechanisms._critical import check_range, exact_order, floor_products, unit_price
from bara.records import Bids, FloatArray, IntArray, Menu
from bara.records.bids import checked_column

_ERROR = 4 * np.finfo(np.float64).eps


def sharing_menu(bids: Bids, quality: FloatArray, *, up_to_next: bool) -> Menu:
    """The menu of a shared budget; ties go to the client whose name sorts first.

    Args:
        bids: The opened bids.
        quality: The server's score of each, in the order of `bids`.
        up_to_next: Pay a unit of quality no more than the first loser asks for it, for 1 <= n < N (Singer); otherwise
            the whole cap is shared out, for 1 <= n <= N (All-in).
    """
    quality = checked_column("quality", quality, bids.clients)
    if len(bids):
        check_range(bids, quality)
    order = exact_order(bids.prices, quality)
    prices, scores = bids.prices[order], quality[order]
    costs = _least_budgets(prices, scores)

    def pay(n: int, cap: int) -> IntArray:
        ratios = [score.as_integer_ratio() for score in scores[:n].tolist()]
        whole = max(denominator for _, denominator in ratios)  # powers of two, so all the others divide it
        share = Fraction(cap * whole, sum(numerator * (whole // denominator) for numerator, denominator in ratios))
        return floor_products(scores[:n], min(share, unit_price(prices, scores, n)) if up_to_next else share)

    return Menu(bids, order, costs[:-1] if up_to_next else costs, pay)


def _least_budgets(prices: IntArray, scores: FloatArray) -> IntArray:
    """u_n Q(n) for every n, rounded up: exact for whole qualities, else so far that no share rounds below a price."""
    totals = np.cumsum(scores)
    if len(prices) and (scores == np.rint(scores)).all() and float(prices.max()) * totals[-1] < 2**53:
        return np.asarray(-(-prices * totals.astype(np.int64) // scores.astype(np.int64)))
    n = np.arange(1, len(prices) + 1)
    bounds = prices / scores * totals * (1 + (n + 4) * _ERROR)
    return np.maximum.accumulate(np.ceil(bounds).astype(np.int64))

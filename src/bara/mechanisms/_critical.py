"""The critical-payment auction over quality per price, on which several mechanisms are built.

Yang et al. 2023, Preliminaries: sort by q_i / b_i descending; the first n win; each is paid
r_i = q_i * b_{n+1} / q_{n+1}, the price at which it would just have lost; B(n) is the sum of these,
for 1 <= n < N.

Notation:
    b_i     price asked, a whole number of micro-units
    q_i     quality, a float64, taken as the exact binary fraction that it is
    u_i     unit price b_i / q_i; u_(n+1) is that of the first loser

A menu ends before the first n that costs 2^62 micro-units or more, which no purse pays: so one
client with an absurd price or quality costs the others nothing but that n.

Every comparison and every payment is exact: floats find the candidates, and the few that lie within
their error are decided with integers. A payment is rounded down to a multiple of the smallest
amount that can be paid (`Bids.unit`: a micro-unit, or a cent). The winner's own price is such a
multiple, so the payment stays at or above it, and is the highest price at which the winner would
still have won.
"""

from bisect import bisect_right
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bara.errors import ConfigError, InvalidMoneyError
from bara.records import MAX_MONEY, Bids, FloatArray, IntArray, Menu, money, show_money
from bara.records.bids import checked_column

_ERROR = 4 * np.finfo(np.float64).eps
"""A relative error; that of two rounded operations is less than half of this."""


def price_of(value: float | str, what: str) -> int:
    """Return the price that an option sets, in micro-units."""
    try:
        price = money(value, what=what)
    except InvalidMoneyError as error:
        raise ConfigError(str(error)) from None
    if price <= 0:
        raise ConfigError(f"{what} must be positive, got {value}")
    return price


def reserve_price(reserve: float | str | None) -> int | None:
    """Return the reserve price that an option sets, in micro-units; None for no limit."""
    if reserve is None:
        return None
    return price_of(reserve, "the reserve price")


def critical_menu(
    bids: Bids,
    quality: FloatArray | None = None,
    reserve: int | None = None,
    admitted: NDArray[np.bool_] | None = None,
) -> Menu:
    """Return the menu of the critical-payment auction.

    Ties go to the client that the bids prefer (`Bids.preference`), by default the one whose name
    sorts first.

    Args:
        bids: The opened bids.
        quality: The server's own score of each client, in the order of `bids`; None when all are
            equal.
        reserve: The most that is paid for a unit of quality: a virtual last bid. It allows all N to
            be recruited and a lone bidder to be paid; clients above it are left out.
        admitted: True for each client that takes part, whose quality must be positive; the others'
            bids stay in the menu's record. None to admit everyone.
    """
    if quality is None:
        return equal_menu(bids, reserve, admitted)
    if admitted is not None and admitted.all():
        admitted = None
    if admitted is not None:  # any valid quality will do for the others
        quality = np.where(admitted, quality, 1.0)
    quality = checked_column("quality", quality, bids.clients)
    if reserve is not None:
        check_reserve(reserve, len(bids))
    return _quality_menu(bids, quality, reserve, admitted)


def equal_menu(
    bids: Bids, reserve: int | None = None, admitted: NDArray[np.bool_] | None = None
) -> Menu:
    """Return the menu of the critical-payment auction for equal qualities, in whole numbers.

    Args:
        bids: The opened bids.
        reserve: The most that is paid to a client.
        admitted: True for each client that takes part; the others' bids stay in the menu's record.
            None to admit everyone.
    """
    if reserve is not None:
        check_reserve(reserve, len(bids))
    preferred = bids.preference
    prices = bids.prices
    if preferred is not None:
        prices = prices[preferred]
        admitted = None if admitted is None else admitted[preferred]
    # Price and position share one 63-bit key, so that a plain sort settles ties by position; `Bids`
    # leaves room for it.
    bits = len(bids).bit_length()
    keys = prices << bits
    keys |= np.arange(len(keys))
    if admitted is not None:
        keys = keys[admitted]
    keys.sort()
    order = keys & ((1 << bits) - 1)
    if preferred is not None:
        order = preferred[order]
    prices = keys >> bits
    if reserve is None:
        thresholds = prices[1:]
    else:
        reserve -= reserve % bids.unit
        prices = prices[: np.searchsorted(prices, reserve, side="right")]
        thresholds = np.append(prices, reserve)[1:]
    costs = thresholds * np.arange(1, len(thresholds) + 1)
    return Menu(bids, order, costs, pay=lambda n, _cap: thresholds[n - 1 : n].repeat(n))


def capped_menu(
    bids: Bids, quality: FloatArray, most: int, admitted: NDArray[np.bool_] | None = None
) -> Menu:
    """Return the menu of the critical-payment auction in which no winner is paid more than `most`.

    Clients that ask more are left out. All others can be recruited together: the last is paid
    `most`.

    Args:
        bids: The opened bids.
        quality: The server's own score of each client, in the order of `bids`.
        most: The most that a winner is paid, in micro-units.
        admitted: True for each client that takes part, whose quality must be positive; None to
            admit everyone.
    """
    most -= most % bids.unit
    affordable = bids.prices <= most
    if admitted is not None:
        affordable &= admitted
    if not affordable.any():
        return equal_menu(bids, admitted=affordable)  # of nobody
    quality = checked_column("quality", np.where(affordable, quality, 1.0), bids.clients)
    # The virtual last bid: against it the client of the least quality would win at `most`.
    least = float(quality[affordable].min())
    order, prices, scores = _ranked(bids, quality, (most, least), affordable)
    units = prices[1:] / scores[1:]
    # Who is paid `most` once n are recruited is paid that for any larger n: unit prices rise.
    places = np.arange(len(order))
    capped_from = np.maximum(np.searchsorted(units, most / scores[:-1]), places)
    capped = np.bincount(capped_from, minlength=len(order) + 1)[:-1].cumsum()
    capped_scores = np.bincount(capped_from, scores[:-1], len(order) + 1)[:-1].cumsum()
    every_score = scores[:-1].cumsum()
    lost_in_difference = every_score * (places + 4) * _ERROR
    uncapped = np.maximum(every_score - capped_scores, 0.0) + lost_in_difference
    uncapped[capped > places] = 0.0
    costs = upper_bounds(units * uncapped + float(most) * capped)

    def pay(n: int, _cap: int) -> IntArray:
        payments = floor_products(scores[:n], unit_price(prices, scores, n), bids.unit)
        return np.minimum(payments, most)

    return Menu(bids, order, costs, pay, exact=False)


def _quality_menu(
    bids: Bids, quality: FloatArray, reserve: int | None, admitted: NDArray[np.bool_] | None
) -> Menu:
    virtual = None if reserve is None else (reserve, 1.0)
    order, prices, scores = _ranked(bids, quality, virtual, admitted)
    costs = upper_bounds(prices[1:] / scores[1:] * scores.cumsum()[:-1])

    def pay(n: int, _cap: int) -> IntArray:
        return floor_products(scores[:n], unit_price(prices, scores, n), bids.unit)

    return Menu(bids, order, costs, pay, exact=False)


def _ranked(
    bids: Bids,
    quality: FloatArray,
    reserve: tuple[int, float] | None,
    admitted: NDArray[np.bool_] | None,
) -> tuple[NDArray[np.int64], IntArray, FloatArray]:
    """Return the order of the bids by unit price, and their prices and qualities in that order.

    Args:
        bids: The opened bids.
        quality: The quality of each client, in the order of `bids`.
        reserve: The price and the quality of a virtual last bid, which stands in prices and
            qualities in place of all bids of higher unit prices; None for none.
        admitted: True for each client that takes part; None to admit everyone.
    """
    order = by_unit_price(bids, quality)
    if admitted is not None:
        order = order[admitted[order]]
    prices = bids.prices[order]
    scores = quality[order]
    if reserve is None:
        return order, prices, scores
    price, score = reserve
    highest = Fraction(price) / Fraction(score)
    count = bisect_right(range(len(prices)), highest, key=lambda k: unit_price(prices, scores, k))
    return order, np.append(prices[:count], price), np.append(scores[:count], score)


def by_unit_price(bids: Bids, quality: FloatArray) -> NDArray[np.int64]:
    """Return the positions of the bids by unit price, ties as the bids prefer."""
    preferred = bids.preference
    if preferred is None:
        return exact_order(bids.prices, quality)
    return preferred[exact_order(bids.prices[preferred], quality[preferred])]


def exact_order(prices: IntArray, quality: FloatArray) -> NDArray[np.int64]:
    """Return the positions by exact unit price, then by position."""
    units = prices / quality
    order = np.argsort(units)
    close = _close(units[order])
    if not close.any():
        return order
    tied = np.zeros(len(order), bool)
    tied[1:] = close
    tied[:-1] |= close
    order[tied] = _by_position(order[tied], units)
    asked = prices[order]
    scores = quality[order]
    differ = (asked[1:] != asked[:-1]) | (scores[1:] != scores[:-1])
    # Runs without a difference are true ties, which are in order of position already.
    for first, last in _runs(close, close & differ):
        run = order[first:last].tolist()
        order[first:last] = sorted(run, key=lambda i: (unit_price(prices, quality, i), i))
    return order


def _by_position(order: NDArray[np.int64], units: FloatArray) -> NDArray[np.int64]:
    """Return positions that are in order of their units, those of equal units by position."""
    values = units[order]
    start_of_group = np.zeros(len(order), np.int64)
    start_of_group[1:] = (values[1:] != values[:-1]).cumsum() * len(units)
    return np.sort(start_of_group + order) - start_of_group


def upper_bounds(sums: FloatArray) -> IntArray:
    """Return whole numbers at or above u Q(n) for n = 1, 2, ..., while they are below 2^62.

    Args:
        sums: u Q(n) as floats, whose error grows with n.
    """
    n = np.arange(1, len(sums) + 1)
    bounds = np.ceil(sums * (1 + (n + 4) * _ERROR))
    too_large = ~(bounds < 2**62)  # or no number at all
    if too_large.any():
        bounds = bounds[: int(too_large.argmax())]
    return bounds.astype(np.int64)


def _close(ranked: FloatArray) -> NDArray[np.bool_]:
    """Return True for each value that floats cannot tell from the next."""
    return np.asarray(ranked[1:] - ranked[:-1] <= ranked[1:] * _ERROR)


def unit_price(prices: IntArray, quality: FloatArray, i: int) -> Fraction:
    """Return u_i, exactly."""
    numerator, denominator = float(quality[i]).as_integer_ratio()
    return Fraction(int(prices[i]) * denominator, numerator)


def _runs(flags: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return half-open ranges of items joined by consecutive flags, at least one of them wanted."""
    places = wanted.nonzero()[0]
    if not len(places):
        return []
    padded = np.zeros(len(flags) + 2, bool)
    padded[1:-1] = flags
    edges = (padded[1:] != padded[:-1]).nonzero()[0].reshape(-1, 2)
    runs = sorted(set((edges[:, 0].searchsorted(places, side="right") - 1).tolist()))
    return [(first, last + 1) for first, last in edges[runs].tolist()]


def floor_products(scores: FloatArray, unit: Fraction, step: int = 1) -> IntArray:
    """Return q_i u for each q_i, rounded down exactly to a whole number of steps; 2^62 at most."""
    if step > 1:
        return np.minimum(floor_products(scores, unit / step), 2**62 // step) * step
    products = np.minimum(scores * float(unit), 2.0**62)
    payments = np.floor(products).astype(np.int64)
    near = (np.abs(products - np.rint(products)) <= products * _ERROR).nonzero()[0]
    close = scores[near].tolist()
    exact = {score: _floor_product(score, unit) for score in set(close)}  # once per quality
    payments[near] = [exact[score] for score in close]
    return payments


def _floor_product(score: float, unit: Fraction) -> int:
    numerator, denominator = score.as_integer_ratio()
    return min(numerator * unit.numerator // (denominator * unit.denominator), 2**62)


def check_reserve(reserve: int, clients: int) -> None:
    """Refuse a reserve price that does not fit in 63 bits if it is paid to everyone."""
    if reserve * clients > MAX_MONEY:
        raise ConfigError(
            f"the reserve price is {show_money(reserve)}; paid to all {clients} clients, it must "
            "fit in 63 bits"
        )

"""The critical-payment auction over quality per price, from which several mechanisms are made.

Yang et al. 2023, Preliminaries: sort by q_i / b_i descending; the first n win; each is paid r_i =
q_i * b_{n+1} / q_{n+1}, the price at which it would just have lost; B(n) is their sum, for 1 <= n <
N.

Notation:
    b_i     price asked, a whole number of micro-units
    q_i     quality, a float64, taken as the exact binary fraction that it is
    u_i     unit price b_i / q_i; u_(n+1) is that of the first loser

Every comparison and every payment is exact: floats find the candidates, and the few that lie within
their error are decided with integers. A payment is rounded down to the smallest amount that can be
paid (`Bids.unit`: a micro-unit, or a cent), which leaves it at or above the winner's own price
because that is a whole number of them: it is the highest price of that kind at which the winner
would still have won.
"""

from bisect import bisect_right
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bara.errors import ConfigError, InvalidBidError, InvalidMoneyError
from bara.records import MAX_MONEY, Bids, FloatArray, IntArray, Menu, money, show_money
from bara.records.bids import checked_column

_ERROR = (
    4 * np.finfo(np.float64).eps
)  # relative; two rounded operations err by less than half of this


def price_of(value: float | str, what: str) -> int:
    """An option's price in micro-units."""
    try:
        price = money(value, what=what)
    except InvalidMoneyError as error:
        raise ConfigError(str(error)) from None
    if price <= 0:
        raise ConfigError(f"{what} must be positive, got {value}")
    return price


def reserve_price(reserve: float | str | None) -> int | None:
    """An option's reserve price in micro-units; None for none."""
    return None if reserve is None else price_of(reserve, "the reserve price")


def critical_menu(
    bids: Bids,
    quality: FloatArray | None = None,
    reserve: int | None = None,
    admitted: NDArray[np.bool_] | None = None,
) -> Menu:
    """The menu of the critical-payment auction.

    Ties go to the client that the bids prefer (`Bids.preference`): the one whose name sorts first,
    unless they say so.

    Args:
        bids: The opened bids.
        quality: The server's own score of each client, in the order of `bids`; None when all are
            equal.
        reserve: The most that is paid for a unit of quality: a virtual last bid. With it all N can
            be recruited and a lone bidder can be paid; clients above it are left out.
        admitted: Who takes part, and of whom quality must be positive; the others' bids stay in the
            menu's record. None for everyone.
    """
    if quality is None:
        return equal_menu(bids, reserve, admitted)
    if admitted is not None and admitted.all():
        admitted = None
    if admitted is not None:  # what the others' is does not matter
        quality = np.where(admitted, quality, quality[admitted].max() if admitted.any() else 1.0)
    quality = checked_column("quality", quality, bids.clients)
    if len(bids):
        check_range(bids, quality, reserve or 0)
    return _quality_menu(bids, quality, reserve, admitted)


def equal_menu(
    bids: Bids, reserve: int | None = None, admitted: NDArray[np.bool_] | None = None
) -> Menu:
    """The same where all q are equal: u_i = b_i, and everything is whole.

    Args:
        bids: The opened bids.
        reserve: The most that is paid to a client.
        admitted: Who takes part; the others' bids stay in the menu's record. None for everyone.
    """
    if reserve is not None and reserve * len(bids) > MAX_MONEY:
        raise _reserve_too_large(reserve, len(bids))
    # Price and position share one 63-bit key, so that a plain sort settles ties by position; Bids
    # keeps room for it.
    reserve = None if reserve is None else reserve - reserve % bids.unit
    bits = len(bids).bit_length()
    preferred = bids.preference
    keys = ((bids.prices if preferred is None else bids.prices[preferred]) << bits) | np.arange(
        len(bids)
    )
    if admitted is not None:
        keys = keys[admitted if preferred is None else admitted[preferred]]
    keys.sort()
    order, prices = keys & ((1 << bits) - 1), keys >> bits
    order = order if preferred is None else preferred[order]
    if reserve is None:
        thresholds = prices[1:]
    else:
        prices = prices[: np.searchsorted(prices, reserve, side="right")]
        thresholds = np.append(prices, reserve)[1:]
    costs = thresholds * np.arange(1, len(thresholds) + 1)
    return Menu(bids, order, costs, pay=lambda n, _cap: thresholds[n - 1 : n].repeat(n))


def _quality_menu(
    bids: Bids, quality: FloatArray, reserve: int | None, admitted: NDArray[np.bool_] | None
) -> Menu:
    order = by_unit_price(bids, quality)
    order = order if admitted is None else order[admitted[order]]
    prices, scores = bids.prices[order], quality[order]
    if reserve is not None:
        count = bisect_right(
            range(len(prices)), Fraction(reserve), key=lambda k: unit_price(prices, scores, k)
        )
        prices, scores = np.append(prices[:count], reserve), np.append(scores[:count], 1.0)
    costs = upper_bounds(prices[1:] / scores[1:] * scores.cumsum()[:-1])

    def pay(n: int, _cap: int) -> IntArray:
        return floor_products(scores[:n], unit_price(prices, scores, n), bids.unit)

    return Menu(bids, order, costs, pay, exact=False)


def by_unit_price(bids: Bids, quality: FloatArray) -> NDArray[np.int64]:
    """Positions by unit price; equals in the order in which ties are settled."""
    if (preferred := bids.preference) is None:
        return exact_order(bids.prices, quality)
    return preferred[exact_order(bids.prices[preferred], quality[preferred])]


def exact_order(prices: IntArray, quality: FloatArray) -> NDArray[np.int64]:
    """Positions by unit price, then by position; exact where floats cannot tell two unit prices apart."""
    units = prices / quality
    order = np.argsort(units)
    if (close := _close(units[order])).any():
        tied = np.zeros(len(order), bool)
        tied[1:] = close
        tied[:-1] |= close
        ties = order[tied]
        order[tied] = ties[np.lexsort((ties, units[ties]))]
        asked, scores = prices[order], quality[order]
        differ = (asked[1:] != asked[:-1]) | (scores[1:] != scores[:-1])
        for first, last in _runs(
            close, close & differ
        ):  # the others are true ties, which stand by position already
            run = order[first:last].tolist()
            order[first:last] = sorted(run, key=lambda i: (unit_price(prices, quality, i), i))
    return order


def upper_bounds(sums: FloatArray) -> IntArray:
    """Whole numbers at or above u Q(n) for n = 1, 2, ..., which floats sum up with an error that grows with n."""
    n = np.arange(1, len(sums) + 1)
    return np.ceil(sums * (1 + (n + 4) * _ERROR)).astype(np.int64)


def _close(ranked: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(ranked[1:] - ranked[:-1] <= ranked[1:] * _ERROR)


def unit_price(prices: IntArray, quality: FloatArray, i: int) -> Fraction:
    """u_i, exactly."""
    numerator, denominator = float(quality[i]).as_integer_ratio()
    return Fraction(int(prices[i]) * denominator, numerator)


def _runs(flags: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Half-open ranges of items joined by consecutive flags, of which at least one is wanted."""
    places = wanted.nonzero()[0]
    if not len(places):
        return []
    padded = np.zeros(len(flags) + 2, bool)
    padded[1:-1] = flags
    edges = (padded[1:] != padded[:-1]).nonzero()[0].reshape(-1, 2)
    runs = sorted(set((edges[:, 0].searchsorted(places, side="right") - 1).tolist()))
    return [(first, last + 1) for first, last in edges[runs].tolist()]


def floor_products(scores: FloatArray, unit: Fraction, step: int = 1) -> IntArray:
    """q_i u for each q_i, rounded down to a whole number of steps, exactly."""
    if step > 1:
        return floor_products(scores, unit / step) * step
    products = scores * float(unit)
    payments = np.floor(products).astype(np.int64)
    near = (np.abs(products - np.rint(products)) <= products * _ERROR).nonzero()[0]
    close = scores[near].tolist()
    exact = {
        score: _floor_product(score, unit) for score in set(close)
    }  # equal qualities are decided once
    payments[near] = [exact[score] for score in close]
    return payments


def _floor_product(score: float, unit: Fraction) -> int:
    numerator, denominator = score.as_integer_ratio()
    return numerator * unit.numerator // (denominator * unit.denominator)


def _reserve_too_large(reserve: int, clients: int) -> ConfigError:
    return ConfigError(
        f"the reserve price is {show_money(reserve)}; paid to all {clients} clients, it must fit in 63 bits"
    )


def check_range(bids: Bids, quality: FloatArray, reserve: int = 0) -> None:
    """The dearest payment there could be, for everyone, must fit in 63 bits."""
    best, worst = int(quality.argmax()), int(quality.argmin())
    dearest, most = float(bids.prices[bids.prices.argmax()]), float(quality[best])
    if max(dearest / float(quality[worst]), reserve) * most * len(bids) < 2**61:
        return  # by far, however floats were rounded
    ratio = Fraction(float(quality[best])) / Fraction(float(quality[worst]))
    if Fraction(reserve) * Fraction(float(quality[best])) * len(bids) >= 2**62:
        raise _reserve_too_large(reserve, len(bids))
    if int(bids.prices.max()) * ratio * len(bids) >= 2**62:
        raise InvalidBidError(
            f"clients {bids.clients[best]!r} and {bids.clients[worst]!r} have qualities {quality[best]} and "
            f"{quality[worst]}, too far apart; the highest payment, paid to all {len(bids)}, must fit in 63 bits"
        )

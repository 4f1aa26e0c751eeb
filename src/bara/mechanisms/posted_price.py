"""Prices that are known before anybody bids: one for all, or a tariff that reflects what taking part costs.

A client's bid says only whether it takes what it is offered: who asks more sits the round out. What
it is paid, and whose turn it is, does not depend on what anybody asks this round, so asking one's
cost is the best one can do by construction. What is paid is rounded down to the smallest amount
that can be (`Bids.unit`).
"""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import final

import numpy as np

from bara.errors import ConfigError, InvalidBidError
from bara.mechanisms._critical import price_of
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.protocols import Requirements
from bara.records import MAX_MONEY, MICRO, Bids, IntArray, Menu, RoundRecord


@final
class Turns:
    """Who was recruited least goes first, whatever anybody asks; among equals the one that the bids prefer."""

    def __init__(self) -> None:
        self._recruited: Counter[str] = Counter()

    def tell(self, record: RoundRecord) -> None:
        """Count who was recruited."""
        self._recruited.update(record.awarded.award.clients)

    def order(self, bids: Bids, willing: IntArray) -> IntArray:
        """The willing in turn, as positions in the bids."""
        preferred = bids.preference
        places = np.arange(len(bids)) if preferred is None else np.argsort(preferred)
        taken = np.array([self._recruited[bids.clients[i]] for i in willing], np.int64)
        return willing[np.lexsort((places[willing], taken))]


@final
class PostedPrice:
    """Offers everybody the same price, take it or leave it; those who were recruited least go first.

    Args:
        price: What each who delivers is paid, in units of the budget.

    >>> menu = PostedPrice(price=2).menu(Bids.of({"ann": 1, "bob": 3, "cat": 2}))
    >>> [menu.bids.clients[i] for i in menu.order], menu.cost(2)
    (['ann', 'cat'], 4000000)
    """

    claims = CRITICAL_PAYMENTS

    def __init__(self, price: float | str = 1.0) -> None:
        self._price = price_of(price, "price")
        self._turns = Turns()

    def menu(self, bids: Bids) -> Menu:
        """The price times n, for those who ask no more."""
        return _menu(bids, np.full(len(bids), self._price - self._price % bids.unit), self._turns)

    def tell(self, record: RoundRecord) -> None:
        """Learn whose turn it is."""
        self._turns.tell(record)


@final
class Tariff:
    """Pays each by a tariff: so much per round, plus so much per sample it trains on; for fees that reflect costs.

    How many samples a client has must be what the server knows, not what the client says. Those who
    were recruited least go first.

    Args:
        per_round: What everybody is paid, in units of the budget.
        per_sample: What is paid on top for each sample, in units of the budget; it may be far below
            a cent.
        samples: The column of the bids that says how many samples a client trains on.

    >>> bids = Bids.of({"ann": 1, "bob": 9}, samples={"ann": 250, "bob": 1000})
    >>> menu = Tariff(per_round=1, per_sample="0.002").menu(bids)
    >>> [menu.bids.clients[i] for i in menu.order], menu.cost(1)
    (['ann'], 1500000)
    """

    claims = CRITICAL_PAYMENTS

    def __init__(
        self, per_round: float | str = 1.0, per_sample: float | str = 0.0, samples: str = "samples"
    ) -> None:
        self._per_round, self._per_sample = (
            _exact("per_round", per_round),
            _exact("per_sample", per_sample),
        )
        if not self._per_round + self._per_sample:
            raise ConfigError("per_round and per_sample are both 0; one of them must be more")
        self._samples = samples
        self._turns = Turns()

    @property
    def requirements(self) -> Requirements:
        """Bids with data sizes, where they are paid for."""
        return Requirements(columns=(self._samples,) if self._per_sample else ())

    def menu(self, bids: Bids) -> Menu:
        """The sum of the fees of those who ask no more than theirs."""
        return _menu(bids, self.fees(bids), self._turns)

    def fees(self, bids: Bids) -> IntArray:
        """What each would be paid, in the order of the bids."""
        samples = bids.column(self._samples).tolist() if self._per_sample else [0.0] * len(bids)
        exact = {
            count: self._per_round + self._per_sample * Fraction(count) for count in set(samples)
        }
        if any(fee * max(len(bids), 1) >= MAX_MONEY for fee in exact.values()):
            raise InvalidBidError(
                f"a fee by {self._samples} is too large; the sum of all must fit in 63 bits"
            )
        return np.array([int(exact[count] // bids.unit) * bids.unit for count in samples], np.int64)

    def tell(self, record: RoundRecord) -> None:
        """Learn whose turn it is."""
        self._turns.tell(record)


def _menu(bids: Bids, fees: IntArray, turns: Turns) -> Menu:
    order = turns.order(bids, np.flatnonzero((bids.prices <= fees) & (fees > 0)))
    paid = fees[order]
    return Menu(bids, order, np.cumsum(paid), pay=lambda n, _cap: paid[:n])


def _exact(name: str, value: float | str) -> Fraction:
    """An amount in micro-units, with as many decimals as it is written with."""
    try:
        exact = Fraction(Decimal(str(value))) * MICRO
    except (ArithmeticError, ValueError):
        raise ConfigError(f"{name} is {value!r}; it must be a decimal number") from None
    if exact < 0:
        raise ConfigError(f"{name} is {value}; it must not be negative")
    return exact

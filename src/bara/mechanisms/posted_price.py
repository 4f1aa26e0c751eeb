"""Prices known before anybody bids: the same for all, or a tariff that reflects costs.

A client's bid says only whether it accepts the price it is offered: a client that asks more sits
the round out. Neither payments nor turns depend on what anybody asks this round, so asking its cost
is the best a client can do, by construction. Payments are rounded down to a multiple of the
smallest amount that can be paid (`Bids.unit`).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import final

import numpy as np

from bara.errors import ConfigError
from bara.mechanisms._critical import price_of
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.protocols import Requirements
from bara.records import MAX_MONEY, MICRO, Bids, IntArray, Menu, RoundRecord


@final
class Rotation:
    """A rotation: who was recruited least often goes first, of equals whom the bids prefer."""

    def __init__(self) -> None:
        self._recruited: Counter[str] = Counter()

    def tell(self, record: RoundRecord) -> None:
        """Count the clients that were recruited."""
        self._recruited.update(record.awarded.award.clients)

    def order(self, bids: Bids, willing: IntArray) -> IntArray:
        """Return the positions of the willing clients in the bids, in turn."""
        preferred = bids.preference
        places = np.arange(len(bids)) if preferred is None else np.argsort(preferred)
        taken = np.array([self._recruited[bids.clients[i]] for i in willing], np.int64)
        return willing[np.lexsort((places[willing], taken))]


@final
class PostedPrice:
    """A price for everybody, to take or leave; clients recruited least often go first.

    Args:
        price: The payment of each client that delivers, in units of the budget.

    >>> menu = PostedPrice(price=2).menu(Bids.of({"ann": 1, "bob": 3, "cat": 2}))
    >>> [menu.bids.clients[i] for i in menu.order], menu.cost(2)
    (['ann', 'cat'], 4000000)
    """

    claims = CRITICAL_PAYMENTS

    def __init__(self, price: float | str) -> None:
        self._price = price_of(price, "price")
        self._rotation = Rotation()

    def menu(self, bids: Bids) -> Menu:
        """Return the menu of the clients that ask no more than the price; n cost n times that."""
        payable = self._price - self._price % bids.unit
        return _menu(bids, np.full(len(bids), payable), self._rotation)

    def tell(self, record: RoundRecord) -> None:
        """Learn whose turn is next."""
        self._rotation.tell(record)


@final
class Tariff:
    """A tariff: a fee per round, a fee per sample, and fees agreed with each client, added up.

    The number of a client's samples must come from the server, not from the client. Clients
    recruited least often go first.

    Args:
        per_round: The fee that everybody is paid, in units of the budget.
        per_sample: The fee for each sample, in units of the budget; it may be far below a cent.
        samples: The column of the bids that says how many samples a client trains on.
        fees: The fee agreed with each client, by name, in units of the budget; in a configuration
            also a CSV file (client, fee). A client without one is left out.

    >>> bids = Bids.of({"ann": 1, "bob": 9}, samples={"ann": 250, "bob": 1000})
    >>> menu = Tariff(per_round=1, per_sample="0.002").menu(bids)
    >>> [menu.bids.clients[i] for i in menu.order], menu.cost(1)
    (['ann'], 1500000)
    >>> Tariff(fees={"ann": "2.50", "bob": 10}).menu(bids).cost(2)
    12500000
    """

    claims = CRITICAL_PAYMENTS

    def __init__(
        self,
        per_round: float | str = 0.0,
        per_sample: float | str = 0.0,
        samples: str = "samples",
        fees: Mapping[str, float | str] | None = None,
    ) -> None:
        self._per_round = _exact("per_round", per_round)
        self._per_sample = _exact("per_sample", per_sample)
        self._agreed: dict[str, Fraction] | None = None
        if fees is not None:
            if not isinstance(fees, Mapping):
                raise ConfigError(f"fees must be a table by client, got {fees!r}")
            self._agreed = {}
            for client, fee in fees.items():
                self._agreed[client] = _exact(f"the fee of {client!r}", fee)
        if not self._per_round + self._per_sample and not self._agreed:
            raise ConfigError("a tariff must have per_round, per_sample or fees; all are missing")
        self._samples = samples
        self._rotation = Rotation()

    @property
    def requirements(self) -> Requirements:
        """Bids with data sizes, where samples are paid for."""
        return Requirements(columns=(self._samples,) if self._per_sample else ())

    def menu(self, bids: Bids) -> Menu:
        """Return the menu of the clients that ask no more than the tariff pays them."""
        left_out = {}
        fees = []
        for client, fee in zip(bids.clients, self._exact_fees(bids), strict=True):
            if fee is None:
                left_out[client] = "mechanism.fees has no fee for it; agree on one"
            elif fee * len(bids) >= MAX_MONEY:
                left_out[client] = "its fee is too large; paid to everybody, it must fit in 63 bits"
            else:
                fees.append(int(fee // bids.unit) * bids.unit)
        menu = _menu(bids.without(left_out), np.array(fees, np.int64), self._rotation)
        return replace(menu, left_out=left_out)

    def _exact_fees(self, bids: Bids) -> list[Fraction | None]:
        """Return each client's fee before it is rounded; None for a client without one."""
        samples = [0.0] * len(bids)
        if self._per_sample:
            samples = bids.column(self._samples).tolist()
        by_size = {}
        for count in set(samples):
            by_size[count] = self._per_round + self._per_sample * Fraction(count)
        if self._agreed is None:
            return [by_size[count] for count in samples]
        fees: list[Fraction | None] = []
        for client, count in zip(bids.clients, samples, strict=True):
            agreed = self._agreed.get(client)
            fees.append(None if agreed is None else by_size[count] + agreed)
        return fees

    def tell(self, record: RoundRecord) -> None:
        """Learn whose turn is next."""
        self._rotation.tell(record)


def _menu(bids: Bids, fees: IntArray, rotation: Rotation) -> Menu:
    """Return the menu of the clients that ask no more than their fee, in turn."""
    order = rotation.order(bids, np.flatnonzero((bids.prices <= fees) & (fees > 0)))
    paid = fees[order]
    return Menu(bids, order, np.cumsum(paid), pay=lambda n, _cap: paid[:n])


def _exact(name: str, value: float | str) -> Fraction:
    """Return an amount in micro-units, exactly as it is written."""
    try:
        exact = Fraction(Decimal(str(value))) * MICRO
    except (ArithmeticError, ValueError):
        raise ConfigError(f"{name} is {value!r}; it must be a decimal number") from None
    if exact < 0:
        raise ConfigError(f"{name} is {value}; it must not be negative")
    return exact

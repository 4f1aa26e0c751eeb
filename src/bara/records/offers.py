"""Purses, offers and awards: the money there is, what an allocator would pay, and the promises."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from bara.errors import BaraError, InvalidOfferError, InvalidRecordError, OverspentError
from bara.records.bids import IntArray, check_names
from bara.records.money import MAX_MONEY, money, show_money, smallest_unit

Shortfall = Literal["shrink", "stop"]
"""What to do when the purse cannot pay what an offer allows: recruit fewer, or end the run."""


def _whole(name: str, value: Any, error: type[BaraError]) -> int:
    """Return a whole number as an `int`; refuse everything else, True and False included."""
    if isinstance(value, bool):
        raise _not_whole(name, value, error)
    try:
        return operator.index(value)
    except TypeError:
        raise _not_whole(name, value, error) from None


def _not_whole(name: str, value: object, error: type[BaraError]) -> BaraError:
    return error(f"{name} must be a whole number, got {value!r}")


@dataclass(frozen=True)
class Purse:
    """The budget and the deadline of a run, as they stand before a round.

    Attributes:
        total: The whole reward budget, in micro-units.
        max_rounds: The deadline: the last round that may be played.
        spent: What earlier rounds paid, in micro-units.
        round: The round about to be played; 0 is the evaluation of the initial model.
        currency: The budget's currency, as a code of ISO 4217; every amount is then a whole number
            of its smallest unit. None for a budget without a currency, paid down to a millionth.
    """

    total: int
    max_rounds: int
    spent: int = 0
    round: int = 1
    currency: str | None = None

    def __post_init__(self) -> None:
        """Refuse a budget, deadline or balance that is impossible."""
        for name in ("total", "max_rounds", "spent", "round"):
            object.__setattr__(self, name, _whole(name, getattr(self, name), InvalidRecordError))
        if self.total > MAX_MONEY:
            raise InvalidRecordError(
                f"budget.total must be at most {MAX_MONEY} micro-units, got {self.total}"
            )
        if self.total <= 0:
            raise InvalidRecordError(f"budget.total must be positive, got {show_money(self.total)}")
        if self.total % smallest_unit(self.currency):
            raise InvalidRecordError(
                f"budget.total must be a whole multiple of {self.show(self.unit)}, "
                f"got {self.show(self.total)}"
            )
        if not 1 <= self.max_rounds < 2**31:  # a database stores rounds in 32 bits
            raise InvalidRecordError(
                f"budget.max_rounds must be from 1 to {2**31 - 1}, got {self.max_rounds}"
            )
        if not 0 <= self.spent <= self.total:
            raise OverspentError(
                f"spent must be from zero to the budget of {self.show(self.total)}, "
                f"got {self.show(self.spent)}"
            )

    @classmethod
    def of(cls, total: float | str, max_rounds: int, currency: str | None = None) -> Self:
        """Make a full purse.

        Args:
            total: The budget, in units of the currency.
            max_rounds: The last round that may be played.
            currency: A code of ISO 4217; None for no currency.

        >>> Purse.of(1500, 200).left
        1500000000
        """
        return cls(money(total, what="budget.total"), max_rounds, currency=currency)

    @property
    def unit(self) -> int:
        """The smallest amount that can be paid, in micro-units."""
        return smallest_unit(self.currency)

    def show(self, micros: int) -> str:
        """Format an amount in this purse's currency."""
        return show_money(micros, self.currency)

    @property
    def left(self) -> int:
        """The money not yet spent, in micro-units."""
        return self.total - self.spent

    @property
    def rounds_left(self) -> int:
        """The number of rounds that may still be played, this one included."""
        return max(self.max_rounds - self.round + 1, 0)

    def after(self, paid: int) -> "Purse":
        """Return the purse for the next round, once this round has paid that amount."""
        return replace(self, spent=self.spent + paid, round=self.round + 1)


@dataclass(frozen=True)
class Offer:
    """The most that an allocator would pay for each number n of clients, fixed before bids open.

    The mechanism recruits the largest n whose cost is within its cap. Make offers with the named
    constructors: `recruit`, `spend`, `caps`, `skip` and `stop`.

    Attributes:
        limit: The largest n that is wanted.
        budget: The cap for every n up to the limit, in micro-units; ignored if there is a `table`.
        table: A cap for each n = 1, 2, ..., in micro-units, or None.
        shortfall: What to do when the purse cannot pay what the caps allow: recruit fewer clients
            (`shrink`) or end the run (`stop`).
        stopped: Whether the allocator ends the run here.
        reason: Why the allocator ends the run, in words.
        asks: Why an award that follows from this offer must wait for an operator's approval; None
            if it need not wait.
    """

    limit: int
    budget: int = MAX_MONEY
    table: tuple[int, ...] | None = None
    shortfall: Shortfall = "shrink"
    stopped: bool = False
    reason: str | None = None
    asks: str | None = None

    def __post_init__(self) -> None:
        """Refuse caps that are not amounts; cut caps larger than any amount to "no limit"."""
        for name in ("limit", "budget"):
            object.__setattr__(self, name, _capped(name, getattr(self, name)))
        lowest = self.budget
        if self.table is not None:
            table = tuple(_capped("cap", cap) for cap in self.table)
            object.__setattr__(self, "table", table)
            lowest = min((lowest, *table))
        if self.limit < 0:
            raise InvalidOfferError(f"an offer must be for zero or more clients, got {self.limit}")
        if lowest < 0:
            raise InvalidOfferError(
                f"an offer's caps must be zero or more, got {show_money(lowest)}"
            )
        if self.shortfall not in ("shrink", "stop"):
            raise InvalidOfferError(
                f"an offer's shortfall must be 'shrink' or 'stop', got {self.shortfall!r}"
            )

    @classmethod
    def recruit(cls, n: int, *, shortfall: Shortfall = "shrink") -> Self:
        """Offer to recruit n clients, whatever they cost."""
        return cls(limit=n, shortfall=shortfall)

    @classmethod
    def spend(cls, budget: int, *, shortfall: Shortfall = "shrink") -> Self:
        """Offer to recruit as many clients as this budget, in micro-units, pays for."""
        return cls(limit=MAX_MONEY, budget=budget, shortfall=shortfall)

    @classmethod
    def caps(cls, caps: Sequence[int] | IntArray, *, shortfall: Shortfall = "shrink") -> Self:
        """Offer to recruit the largest n whose cost is at most caps[n - 1], in micro-units."""
        return cls(limit=len(caps), table=tuple(caps), shortfall=shortfall)

    @classmethod
    def skip(cls) -> Self:
        """Offer nothing: the round passes, and the run goes on."""
        return cls(limit=0)

    @classmethod
    def stop(cls, reason: str | None = None) -> Self:
        """End the run; its books and its summary give the reason."""
        return cls(limit=0, stopped=True, reason=reason)

    def cap(self, n: int) -> int:
        """Return the most that this offer pays for n clients, in micro-units."""
        return int(self.vector(n)[-1]) if n else 0

    def vector(self, most: int) -> IntArray:
        """Return the caps for n = 1 .. most, in micro-units."""
        if self.table is None and self.limit >= most:
            return np.full(most, self.budget, np.int64)
        caps = np.zeros(most, np.int64)
        wanted = min(self.limit, most)
        caps[:wanted] = self.budget if self.table is None else self.table[:wanted]
        return caps


def _capped(name: str, value: object) -> int:
    """Return a cap as an `int` that is no larger than any amount can be."""
    try:
        return min(_whole(name, value, InvalidOfferError), MAX_MONEY)
    except InvalidOfferError as error:
        raise InvalidOfferError(
            f"an offer's {error}; divide with //, or round to int; amounts are in micro-units, "
            "which bara.money(1.5) makes"
        ) from None


@dataclass(frozen=True)
class Award:
    """The clients that were recruited for a round, and what each is promised.

    Attributes:
        clients: The winners, best first.
        payments: What each winner is paid on delivery, in micro-units.
        weights: The weights with which the mechanism wants the winners' updates aggregated; None to
            leave that to the federation.
        fell_short: Whether the offer allowed more clients than the purse could pay.
    """

    clients: tuple[str, ...] = ()
    payments: tuple[int, ...] = ()
    weights: tuple[float, ...] | None = None
    fell_short: bool = False

    def __post_init__(self) -> None:
        """Refuse columns of different lengths, bad or repeated names, and unpaid winners."""
        if len(self.clients) != len(self.payments):
            raise InvalidRecordError(
                f"an award must have one payment per winner, "
                f"got {len(self.payments)} for {len(self.clients)}"
            )
        if self.weights is not None and len(self.weights) != len(self.clients):
            raise InvalidRecordError(
                f"an award must have one weight per winner, "
                f"got {len(self.weights)} for {len(self.clients)}"
            )
        if any(type(payment) is not int for payment in self.payments):
            payments = []
            for client, payment in zip(self.clients, self.payments, strict=True):
                payments.append(_whole(f"the payment of {client!r}", payment, InvalidRecordError))
            object.__setattr__(self, "payments", tuple(payments))
        check_names(self.clients, InvalidRecordError)
        if len(set(self.clients)) != len(self.clients):
            raise InvalidRecordError(
                f"an award must name each winner once, got {list(self.clients)}"
            )
        for client, payment in zip(self.clients, self.payments, strict=True):
            if payment <= 0:
                raise InvalidRecordError(
                    f"client {client!r} is awarded {show_money(payment)}; "
                    "a winner's payment must be positive"
                )

    @property
    def n(self) -> int:
        """The number of recruited clients."""
        return len(self.clients)

    @property
    def cost(self) -> int:
        """The sum that the award pays if every winner delivers, in micro-units."""
        return sum(self.payments)

"""What an allocator would pay, what there is to pay with, and what was awarded."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from bara.errors import BaraError, InvalidOfferError, InvalidRecordError, OverspentError
from bara.records.bids import IntArray, check_names
from bara.records.money import MAX_MONEY, money, show_money, smallest_unit

Shortfall = Literal["shrink", "stop"]


def _whole(name: str, value: object, error: type[BaraError]) -> int:
    try:
        return operator.index(str(value) if isinstance(value, bool) else value)  # type: ignore[arg-type] # True is none
    except TypeError:
        raise error(f"{name} must be a whole number, got {value!r}") from None


@dataclass(frozen=True)
class Purse:
    """What is left to spend, and how long.

    Attributes:
        total: The whole reward budget, in micro-units.
        max_rounds: The deadline: the last round that may be played.
        spent: What earlier rounds paid.
        round: The round about to be played; 0 is the evaluation of the initial model.
        currency: What the budget is in, by its code of ISO 4217: every amount is a whole number of
            its smallest unit. None for units of no currency, down to a millionth.
    """

    total: int
    max_rounds: int
    spent: int = 0
    round: int = 1
    currency: str | None = None

    def __post_init__(self) -> None:
        """Refuse a budget, deadline or balance that cannot be."""
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
                f"budget.total must be a whole multiple of {self.show(self.unit)}, got {self.show(self.total)}"
            )
        if not 1 <= self.max_rounds < 2**31:  # what a database's whole number holds
            raise InvalidRecordError(
                f"budget.max_rounds must be from 1 to {2**31 - 1}, got {self.max_rounds}"
            )
        if not 0 <= self.spent <= self.total:
            raise OverspentError(
                f"spent must be from zero to the budget of {self.show(self.total)}, got {self.show(self.spent)}"
            )

    @classmethod
    def of(cls, total: float | str, max_rounds: int, currency: str | None = None) -> Self:
        """A full purse, its budget given in units of the currency.

        >>> Purse.of(1500, 200).left
        1500000000
        """
        return cls(money(total, what="budget.total"), max_rounds, currency=currency)

    @property
    def unit(self) -> int:
        """The smallest amount that can be paid, in micro-units."""
        return smallest_unit(self.currency)

    def show(self, micros: int) -> str:
        """An amount as one writes it in this purse's currency."""
        return show_money(micros, self.currency)

    @property
    def left(self) -> int:
        """Micro-units not yet spent."""
        return self.total - self.spent

    @property
    def rounds_left(self) -> int:
        """Rounds that may still be played, this one included."""
        return max(self.max_rounds - self.round + 1, 0)

    def after(self, paid: int) -> "Purse":
        """The purse of the next round, once this one has paid."""
        return replace(self, spent=self.spent + paid, round=self.round + 1)


@dataclass(frozen=True)
class Offer:
    """The most an allocator would pay for each number of clients, said before the bids are opened.

    The mechanism recruits the largest n whose cost is within its cap. Use the named constructors.

    Attributes:
        limit: The largest n that is wanted.
        budget: The cap of every n up to the limit, unless `table` has one of its own.
        table: A cap for each n = 1, 2, ..., or None.
        shortfall: When the purse cannot pay what the caps allow: recruit fewer (`shrink`) or end
            the run (`stop`).
        stopped: The allocator ends the run here.
        reason: Why it does, in words.
        asks: Why an award made of this offer waits for an operator's approval; None where it need
            not.
    """

    limit: int
    budget: int = MAX_MONEY
    table: tuple[int, ...] | None = None
    shortfall: Shortfall = "shrink"
    stopped: bool = False
    reason: str | None = None
    asks: str | None = None

    def __post_init__(self) -> None:
        """Refuse caps that are no amounts; one beyond all money is no limit."""
        caps = {"limit": self.limit, "budget": self.budget}
        for name, value in caps.items():
            object.__setattr__(self, name, min(_whole(name, value, InvalidOfferError), MAX_MONEY))
        if self.table is not None:
            table = tuple(
                min(_whole("a cap", cap, InvalidOfferError), MAX_MONEY) for cap in self.table
            )
            object.__setattr__(self, "table", table)
        if self.limit < 0:
            raise InvalidOfferError(f"an offer must be for zero or more clients, got {self.limit}")
        worst = min((self.budget, *(self.table or ())))
        if worst < 0:
            raise InvalidOfferError(
                f"an offer's caps must be zero or more, got {show_money(worst)}"
            )
        if self.shortfall not in ("shrink", "stop"):
            raise InvalidOfferError(
                f"an offer's shortfall must be 'shrink' or 'stop', got {self.shortfall!r}"
            )

    @classmethod
    def recruit(cls, n: int, *, shortfall: Shortfall = "shrink") -> Self:
        """Take n clients whatever they cost."""
        return cls(limit=n, shortfall=shortfall)

    @classmethod
    def spend(cls, budget: int, *, shortfall: Shortfall = "shrink") -> Self:
        """Take as many clients as this budget (in micro-units) pays for."""
        return cls(limit=MAX_MONEY, budget=budget, shortfall=shortfall)

    @classmethod
    def caps(cls, caps: Sequence[int] | IntArray, *, shortfall: Shortfall = "shrink") -> Self:
        """Take the largest n whose cost is at most caps[n - 1], in micro-units."""
        return cls(limit=len(caps), table=tuple(caps), shortfall=shortfall)

    @classmethod
    def skip(cls) -> Self:
        """Let the round pass."""
        return cls(limit=0)

    @classmethod
    def stop(cls, reason: str | None = None) -> Self:
        """End the run; the reason stands in its books and its summary."""
        return cls(limit=0, stopped=True, reason=reason)

    def cap(self, n: int) -> int:
        """The most this offer pays for n clients."""
        return int(self.vector(n)[-1]) if n else 0

    def vector(self, most: int) -> IntArray:
        """The caps of n = 1 .. most."""
        caps = np.zeros(most, np.int64)
        wanted = min(self.limit, most)
        caps[:wanted] = self.budget if self.table is None else self.table[:wanted]
        return caps


@dataclass(frozen=True)
class Award:
    """Who was recruited and what each is promised.

    Attributes:
        clients: The winners, best first.
        payments: What each is paid on delivery, in micro-units.
        weights: How the mechanism wants these winners' updates weighed against each other, or None
            for the federation's own way.
        fell_short: The offer allowed more clients than the purse could pay.
    """

    clients: tuple[str, ...] = ()
    payments: tuple[int, ...] = ()
    weights: tuple[float, ...] | None = None
    fell_short: bool = False

    def __post_init__(self) -> None:
        """Refuse an award whose columns differ in length or that pays nothing to a winner."""
        if len(self.clients) != len(self.payments):
            raise InvalidRecordError(
                f"an award must have one payment per winner, got {len(self.payments)} for {len(self.clients)}"
            )
        if self.weights is not None and len(self.weights) != len(self.clients):
            raise InvalidRecordError(
                f"an award must have one weight per winner, got {len(self.weights)} for {len(self.clients)}"
            )
        if any(type(payment) is not int for payment in self.payments):
            payments = tuple(
                _whole(f"the payment of {c!r}", p, InvalidRecordError)
                for c, p in zip(self.clients, self.payments, strict=True)
            )
            object.__setattr__(self, "payments", payments)
        check_names(self.clients, InvalidRecordError)
        if len(set(self.clients)) != len(self.clients):
            raise InvalidRecordError(
                f"an award must name each winner once, got {list(self.clients)}"
            )
        if min(self.payments, default=1) <= 0:
            client, payment = next(
                pair for pair in zip(self.clients, self.payments, strict=True) if pair[1] <= 0
            )
            raise InvalidRecordError(
                f"client {client!r} is awarded {show_money(payment)}; a winner's payment must be positive"
            )

    @property
    def n(self) -> int:
        """How many clients were recruited."""
        return len(self.clients)

    @property
    def cost(self) -> int:
        """What the award pays if everyone delivers."""
        return sum(self.payments)

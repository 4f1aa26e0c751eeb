"""What an allocator would pay, what there is to pay with, and what was awarded."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from bara.errors import BaraError, InvalidOfferError, InvalidRecordError, OverspentError
from bara.records.bids import IntArray, check_names
from bara.records.money import MAX_MONEY, money, show_money

Shortfall = Literal["shrink", "stop"]


def _whole(name: str, value: object, error: type[BaraError]) -> int:
    try:
        return operator.index(str(value) if isinstance(value, bool) else value)  # type: ignore[arg-type] # True is none
    except TypeError:
        raise error(f"{name} is {value!r}; required is a whole number") from None


@dataclass(frozen=True)
class Purse:
    """What is left to spend, and how long.

    Attributes:
        total: The whole reward budget, in micro-units.
        max_rounds: The deadline: the last round that may be played.
        spent: What earlier rounds paid.
        round: The round about to be played; 0 is the evaluation of the initial model.
    """

    total: int
    max_rounds: int
    spent: int = 0
    round: int = 1

    def __post_init__(self) -> None:
        """Refuse a budget, deadline or balance that cannot be."""
        for name in ("total", "max_rounds", "spent", "round"):
            object.__setattr__(self, name, _whole(name, getattr(self, name), InvalidRecordError))
        if self.total > MAX_MONEY:
            raise InvalidRecordError(f"the budget is {self.total}; required is at most {MAX_MONEY} micro-units")
        if self.total <= 0:
            raise InvalidRecordError(f"the budget is {show_money(self.total)}; required is more than zero")
        if not 1 <= self.max_rounds < 2**31:  # what a database's whole number holds
            raise InvalidRecordError(f"the deadline is {self.max_rounds} rounds; required is from 1 to {2**31 - 1}")
        if not 0 <= self.spent <= self.total:
            raise OverspentError(
                f"{show_money(self.spent)} spent of {show_money(self.total)}; required is between zero and the budget"
            )

    @classmethod
    def of(cls, total: float | str, max_rounds: int) -> Self:
        """A full purse, its budget given in units.

        >>> Purse.of(1500, 200).left
        1500000000
        """
        return cls(money(total, what="the budget"), max_rounds)

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
        shortfall: When the purse cannot pay what the caps allow: recruit fewer (`shrink`) or end the run (`stop`).
        stopped: The allocator ends the run here.
    """

    limit: int
    budget: int = MAX_MONEY
    table: tuple[int, ...] | None = None
    shortfall: Shortfall = "shrink"
    stopped: bool = False

    def __post_init__(self) -> None:
        """Refuse caps that are no amounts; one beyond all money is no limit."""
        caps = {"limit": self.limit, "budget": self.budget}
        for name, value in caps.items():
            object.__setattr__(self, name, min(_whole(name, value, InvalidOfferError), MAX_MONEY))
        if self.table is not None:
            table = tuple(min(_whole("a cap", cap, InvalidOfferError), MAX_MONEY) for cap in self.table)
            object.__setattr__(self, "table", table)
        if self.limit < 0:
            raise InvalidOfferError(f"an offer for {self.limit} clients; required is zero or more")
        worst = min((self.budget, *(self.table or ())))
        if worst < 0:
            raise InvalidOfferError(f"an offer with a cap of {show_money(worst)}; required is zero or more")
        if self.shortfall not in ("shrink", "stop"):
            raise InvalidOfferError(f"shortfall {self.shortfall!r}; required is 'shrink' or 'stop'")

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
    def stop(cls) -> Self:
        """End the run."""
        return cls(limit=0, stopped=True)

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
        weights: How the mechanism wants the updates aggregated, or None for the federation's own way.
        fell_short: The offer allowed more clients than the purse could pay.
    """

    clients: tuple[str, ...] = ()
    payments: tuple[int, ...] = ()
    weights: tuple[float, ...] | None = None
    fell_short: bool = False

    def __post_init__(self) -> None:
        """Refuse an award whose columns differ in length or that pays nothing to a winner."""
        if len(self.clients) != len(self.payments):
            raise InvalidRecordError(f"{len(self.clients)} winners but {len(self.payments)} payments")
        if self.weights is not None and len(self.weights) != len(self.clients):
            raise InvalidRecordError(f"{len(self.clients)} winners but {len(self.weights)} weights")
        if any(type(payment) is not int for payment in self.payments):
            payments = tuple(
                _whole(f"the payment of {c!r}", p, InvalidRecordError)
                for c, p in zip(self.clients, self.payments, strict=True)
            )
            object.__setattr__(self, "payments", payments)
        check_names(self.clients, InvalidRecordError)
        if len(set(self.clients)) != len(self.clients):
            raise InvalidRecordError(f"the winners {list(self.clients)} hold one twice; each can win once")
        if min(self.payments, default=1) <= 0:
            client, payment = next(pair for pair in zip(self.clients, self.payments, strict=True) if pair[1] <= 0)
            raise InvalidRecordError(f"client {client!r} is awarded {show_money(payment)}; required is more")

    @property
    def n(self) -> int:
        """How many clients were recruited."""
        return len(self.clients)

    @property
    def cost(self) -> int:
        """What the award pays if everyone delivers."""
        return sum(self.payments)

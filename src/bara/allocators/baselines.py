"""The paper's baselines (Yang et al. 2023, Baselines), a constant n, and a bound."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from bara.allocators._arms import arms_of, check_clients, explored
from bara.options import Within, check_fields
from bara.protocols import LearnsNothing
from bara.randomness import stream
from bara.records import Offer, Purse, Shortfall

Weight = Callable[[int], int]
"""A function from round t to the share it gets, in any unit; linear in t."""

Horizon = Annotated[int | None, Within(at_least=1)]


@dataclass(frozen=True)
class Even(LearnsNothing):
    """Even allocation (EA): every round may cost B_total / T_max.

    Args:
        carry_over: Share the money left among the rounds left instead, so that none stays unspent.
        horizon: T_max of the shares, after which the run ends; the run's deadline unless given.

    >>> Even().ask(Purse.of(1500, 200)).cap(8)
    7500000
    """

    carry_over: bool = False
    horizon: Horizon = None

    def __post_init__(self) -> None:
        """Refuse a horizon of no rounds."""
        check_fields("allocator 'even'", self)

    def ask(self, purse: Purse) -> Offer:
        """Offer the round its share of the budget."""
        last = self.horizon or purse.max_rounds
        return _share(purse, last, lambda _t: 1, Fraction(1, last), carry_over=self.carry_over)


@dataclass(frozen=True)
class Increasing(LearnsNothing):
    """Monotonically increasing allocation (MIA): round t may cost 2 B_total t / T_max^2.

    As written the shares sum to (T_max + 1) / T_max of the budget; the purse clamps the last.

    Args:
        carry_over: Share the money left among the rounds left, in proportion to t.
        horizon: T_max of the shares, after which the run ends; the run's deadline unless given.
    """

    carry_over: bool = False
    horizon: Horizon = None

    def __post_init__(self) -> None:
        """Refuse a horizon of no rounds."""
        check_fields("allocator 'increasing'", self)

    def ask(self, purse: Purse) -> Offer:
        """Offer the round its share of the budget."""
        last = self.horizon or purse.max_rounds
        return _share(purse, last, lambda t: t, Fraction(2, last**2), carry_over=self.carry_over)


@dataclass(frozen=True)
class Decreasing(LearnsNothing):
    """Monotonically decreasing allocation (MDA): round t may cost 2 B_total (T_max - t) / T_max^2.

    As written the shares sum to (T_max - 1) / T_max of the budget, and the last round gets nothing.

    Args:
        carry_over: Share the money left among the rounds left, in proportion to T_max - t.
        horizon: T_max of the shares, after which the run ends; the run's deadline unless given.
    """

    carry_over: bool = False
    horizon: Horizon = None

    def __post_init__(self) -> None:
        """Refuse a horizon of no rounds."""
        check_fields("allocator 'decreasing'", self)

    def ask(self, purse: Purse) -> Offer:
        """Offer the round its share of the budget."""
        last = self.horizon or purse.max_rounds
        unit = Fraction(2, last**2)
        return _share(purse, last, lambda t: last - t, unit, carry_over=self.carry_over)


@dataclass(frozen=True)
class RandomN(LearnsNothing):
    """Random allocation (RA): each round recruits a number drawn evenly from 1 .. N - 1.

    Args:
        clients: N, the largest number of clients there may be.
        seed: The seed of the draws; a round's draw depends only on (seed, round).
        shortfall: When n cannot be paid: end the run (`stop`, as in the paper) or `shrink`.
    """

    clients: int
    seed: int = 0
    shortfall: Shortfall = "stop"

    def __post_init__(self) -> None:
        """Refuse a federation without clients."""
        check_clients("random", self.clients)

    def ask(self, purse: Purse) -> Offer:
        """Recruit the number drawn for this round."""
        rng = stream(self.seed, "random n", purse.round)
        return Offer.recruit(int(rng.integers(1, max(self.clients, 2))), shortfall=self.shortfall)


@dataclass(frozen=True)
class Fixed(LearnsNothing):
    """A constant number of clients in every round while the money lasts.

    Args:
        n: The number of clients.
        shortfall: When n can no longer be paid: end the run (`stop`, as the paper enumerates n) or
            `shrink`.
    """

    n: Annotated[int, Within(at_least=1)]
    shortfall: Shortfall = "stop"

    def __post_init__(self) -> None:
        """Refuse a number below 1."""
        check_fields("allocator 'fixed'", self)

    def ask(self, purse: Purse) -> Offer:  # noqa: ARG002 - the protocol's signature
        """Recruit n, however much is left."""
        return Offer.recruit(self.n, shortfall=self.shortfall)


@dataclass(frozen=True)
class Explored(LearnsNothing):
    """An allocator that explores as stage 1 of Algorithm 1 does, then recruits n clients a round.

    With the best n there is, this is an upper bound of Algorithm 1: it pays for the same random
    rounds and then never decides wrongly.

    Args:
        n: The number of clients from round T_0 on.
        clients: N, the largest number of clients there may be.
        seed: The seed of stage 1's draws, which are those of `bara` with the same seed.
        exploration_rounds: T_0; rounds t < T_0 explore.
    """

    n: Annotated[int, Within(at_least=1)]
    clients: int
    seed: int = 0
    exploration_rounds: Annotated[int, Within(at_least=0)] = 40

    def __post_init__(self) -> None:
        """Refuse a number below 1."""
        check_clients("explored", self.clients)
        check_fields("allocator 'explored'", self)

    def ask(self, purse: Purse) -> Offer:
        """Recruit a random number in stage 1, then n, however much is left."""
        n = self.n
        if purse.round < self.exploration_rounds:
            n = explored(arms_of(self.clients), self.seed, purse.round)
        return Offer.recruit(n, shortfall="stop")


def _share(purse: Purse, last: int, weight: Weight, unit: Fraction, *, carry_over: bool) -> Offer:
    """Offer this round its share of the budget or, with carry-over, of the money left.

    Args:
        purse: The money and the rounds left.
        last: The last round that has a share; the run ends after it.
        weight: The weight of each round.
        unit: The part of the budget that a weight of 1 stands for, without carry-over.
        carry_over: Share the money left by the weights of the rounds left.
    """
    rounds_left = last - purse.round + 1
    if rounds_left < 1:
        return Offer.stop(f"each of the {last} rounds of allocator.horizon has had its share")
    if not carry_over:
        return Offer.spend(int(purse.total * weight(purse.round) * unit))
    first = weight(purse.round)
    twice_whole = (first + weight(last)) * rounds_left  # an arithmetic series
    if not twice_whole:
        return Offer.spend(0)
    return Offer.spend(purse.left * 2 * first // twice_whole)

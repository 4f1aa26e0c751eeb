"""The paper's baselines (Yang et al. 2023, Baselines): even, increasing, decreasing, random; a constant n; a bound."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from bara.allocators._arms import arms_of, check_clients, explored
from bara.plugins import Within, check_fields
from bara.protocols import LearnsNothing
from bara.randomness import stream
from bara.records import Offer, Purse, Shortfall

Weight = Callable[[int], int]
"""The share of round t, in any unit; linear in t."""


@dataclass(frozen=True)
class Even(LearnsNothing):
    """Even allocation (EA): every round may cost B_total / T_max.

    Args:
        carry_over: Share what is left among the rounds that are left instead, so that nothing stays
            unspent.

    >>> Even().ask(Purse.of(1500, 200)).cap(8)
    7500000
    """

    carry_over: bool = False

    def ask(self, purse: Purse) -> Offer:
        """The round's share of the budget."""
        return _share(
            purse, lambda _t: 1, Fraction(1, purse.max_rounds), carry_over=self.carry_over
        )


@dataclass(frozen=True)
class Increasing(LearnsNothing):
    """Monotonically increasing allocation (MIA): round t may cost 2 B_total t / T_max^2.

    As written the shares sum to (T_max + 1) / T_max of the budget; the purse clamps the last.

    Args:
        carry_over: Share what is left in proportion to t among the rounds that are left.
    """

    carry_over: bool = False

    def ask(self, purse: Purse) -> Offer:
        """The round's share of the budget."""
        return _share(
            purse, lambda t: t, Fraction(2, purse.max_rounds**2), carry_over=self.carry_over
        )


@dataclass(frozen=True)
class Decreasing(LearnsNothing):
    """Monotonically decreasing allocation (MDA): round t may cost 2 B_total (T_max - t) / T_max^2.

    As written the shares sum to (T_max - 1) / T_max of the budget, and the last round gets nothing.

    Args:
        carry_over: Share what is left in proportion to T_max - t among the rounds that are left.
    """

    carry_over: bool = False

    def ask(self, purse: Purse) -> Offer:
        """The round's share of the budget."""
        unit = Fraction(2, purse.max_rounds**2)
        return _share(purse, lambda t: purse.max_rounds - t, unit, carry_over=self.carry_over)


@dataclass(frozen=True)
class RandomN(LearnsNothing):
    """Random allocation (RA): recruits a number drawn evenly from 1 .. N - 1 and ends when it cannot be paid.

    Args:
        clients: N, how many there may be.
        seed: Where the draws come from; a round's draw depends on nothing but (seed, round).
        shortfall: As the paper: `stop`.
    """

    clients: int
    seed: int = 0
    shortfall: Shortfall = "stop"

    def __post_init__(self) -> None:
        """Refuse a federation too small to choose from."""
        check_clients("random", self.clients)

    def ask(self, purse: Purse) -> Offer:
        """This round's draw."""
        rng = stream(self.seed, "random n", purse.round)
        return Offer.recruit(int(rng.integers(1, max(self.clients, 2))), shortfall=self.shortfall)


@dataclass(frozen=True)
class Fixed(LearnsNothing):
    """Recruits n clients every round while the money lasts.

    Args:
        n: How many.
        shortfall: When n can no longer be paid: end the run (`stop`, as the paper enumerates n) or
            `shrink`.
    """

    n: Annotated[int, Within(at_least=1)]
    shortfall: Shortfall = "stop"

    def __post_init__(self) -> None:
        """Refuse a number that recruits nobody."""
        check_fields("allocator 'fixed'", self)

    def ask(self, purse: Purse) -> Offer:  # noqa: ARG002 - the protocol's signature
        """The same n, whatever is left."""
        return Offer.recruit(self.n, shortfall=self.shortfall)


@dataclass(frozen=True)
class Explored(LearnsNothing):
    """Stage 1 of Algorithm 1, then n clients every round while the money lasts.

    With the best n there is, this bounds what Algorithm 1 can come to: its own random rounds, paid
    for, and then never a wrong decision.

    Args:
        n: How many, from round T_0 on.
        clients: N, how many there may be.
        seed: Where stage 1's draws come from; they are those of `bara` with the same seed.
        exploration_rounds: T_0; rounds t < T_0 explore.
    """

    n: Annotated[int, Within(at_least=1)]
    clients: int
    seed: int = 0
    exploration_rounds: Annotated[int, Within(at_least=0)] = 40

    def __post_init__(self) -> None:
        """Refuse a number that recruits nobody."""
        check_clients("explored", self.clients)
        check_fields("allocator 'explored'", self)

    def ask(self, purse: Purse) -> Offer:
        """A random n, then the same n, whatever is left."""
        early = purse.round < self.exploration_rounds
        n = explored(arms_of(self.clients), self.seed, purse.round) if early else self.n
        return Offer.recruit(n, shortfall="stop")


def _share(purse: Purse, weight: Weight, unit: Fraction, *, carry_over: bool) -> Offer:
    """This round's weight in units of B_total; or, carried over, in parts of what is left for the rounds left."""
    if not carry_over:
        return Offer.spend(int(purse.total * weight(purse.round) * unit))
    first, last = weight(purse.round), weight(purse.max_rounds)
    twice_whole = (first + last) * purse.rounds_left  # an arithmetic series
    return Offer.spend(purse.left * 2 * first // twice_whole if twice_whole else 0)

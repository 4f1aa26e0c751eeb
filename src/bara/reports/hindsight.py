"""What money buys, told from rounds that were played: from here on, or in hindsight from the initial model.

The same curve as the planner's own (`bara.allocators.prospects`), for any allocator: the learning
curve is fitted to the rounds, and what n clients cost is a line fitted to what was paid.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bara.allocators.prospects import PARTS, Prospects
from bara.randomness import stream
from bara.records import FloatArray, IntArray, Prospect, Purse, money
from bara.reports.result import Result
from bara.surrogates import LearningCurveBelief

FEWEST = 5
"""Rounds before which a curve says nothing."""

BLOCKS = 64
"""Observations a curve is fitted to; a longer run is told in blocks of rounds, so that a page opens at once."""

DRAWS = 200


class Played(NamedTuple):
    """A round in which somebody delivered: how many, what all were paid (micro-units), and the accuracy afterwards."""

    n: int
    paid: int
    accuracy: float


class FittedCurve:
    """Follows a run: its learning curve, and what n clients cost.

    Args:
        clients: N.

    Attributes:
        block: How many rounds the curve counts as one.
    """

    def __init__(self, clients: int) -> None:
        self._clients = max(clients, 2)
        self._told = 0
        self._curve: LearningCurveBelief | None = None
        self._paid: Sequence[Played] = ()
        self.block = 0

    def fit(self, initial: float, played: Sequence[Played]) -> LearningCurveBelief:
        """The curve of these rounds, of which earlier ones are known from the last time."""
        block = 1 << max((len(played) - 1) // BLOCKS, 0).bit_length()
        if self._curve is None or block != self.block:
            self._curve, self.block, self._told = (
                LearningCurveBelief(self._clients, initial),
                block,
                0,
            )
        while len(played) - self._told >= block:
            some = played[self._told : self._told + block]
            n = min(round(np.mean([one.n for one in some])), self._clients)
            self._curve.tell(max(n, 1), float(np.mean([one.accuracy for one in some])))
            self._told += block
        self._paid = played
        return self._curve

    def prospects(self, purse: Purse, seed: int = 0, *, fresh: bool = False) -> Prospects:
        """What that purse may buy; `fresh`, from the initial model."""
        if self._curve is None:
            raise ValueError("no rounds were fitted")
        shapes = self._curve.draw(stream(seed, "what money buys"), DRAWS)
        arms, costs = self._costs()
        done = (purse.round - 1) // self.block
        left = max(-(-purse.rounds_left // self.block), 1)
        blocks = Purse(purse.total, done + left, purse.spent, done + 1)
        return Prospects(blocks, arms, self.block * costs, shapes.fresh() if fresh else shapes)

    def _costs(self) -> tuple[IntArray, FloatArray]:
        """For 1, 2, ... clients what they cost: each is the dearer the more are recruited, by a line."""
        n, paid = np.array([(one.n, one.paid) for one in self._paid], float).T
        slope = max(np.polyfit(n, paid / n, 1)[0], 0.0) if len(set(n)) > 1 else 0.0
        start = max(float((paid / n - slope * n).mean()), 1.0)
        arms = np.arange(1, max(self._clients, 2))
        return arms, arms * (start + slope * arms)


def fitted(result: Result) -> FittedCurve | None:
    """The curve of a finished run; None where too few rounds tell."""
    first, *rounds = result.history
    played = [Played(one["n"], money(one["cost"]), one["accuracy"]) for one in rounds if one["n"]]
    if len(played) < FEWEST:
        return None
    curve = FittedCurve(result.clients)
    curve.fit(first["accuracy"], played)
    return curve


def hindsight(result: Result) -> tuple[Prospect, ...]:
    """What a run like this one would have reached for other sums, up to twice what it spent; () where too few tell."""
    curve = fitted(result)
    if curve is None:
        return ()
    purse = Purse(money(result.spent), result.rounds)
    found = curve.prospects(purse, result.seed, fresh=True).curve(result.history[0]["accuracy"])
    apart = (
        result.accuracy_kept - found[PARTS.index(1.0)].accuracy
    )  # what was spent bought what it bought
    return tuple(
        replace(
            one,
            **{
                name: min(max(getattr(one, name) + apart, 0.0), 1.0)
                for name in ("accuracy", "low", "high")
            },
        )
        for one in found
    )

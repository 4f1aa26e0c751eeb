"""Estimators of the final accuracy for a constant number of clients, the first half of BARA."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Protocol, runtime_checkable

from bara.errors import InvalidRecordError
from bara.plugins import Registry
from bara.records import RoundRecord
from bara.surrogates import LearningCurveBelief, MeanLine, NewtonPolynomial, PiecewiseLine

_NO_START = (
    "an estimator must be told of round 0 first, the initial evaluation (RoundRecord.initial), "
    "got round {}"
)


@runtime_checkable
class Estimator(Protocol):
    """An estimator of the accuracy that a run with a constant n would end with."""

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round; round 0 comes first."""
        ...

    def estimate(self, n: int, rounds: int, *, done: int = 0) -> float | None:
        """Return the accuracy to expect at the end; None where the estimator cannot tell.

        Args:
            n: The number of clients in each round after the first `done`.
            rounds: The number of rounds in all.
            done: The number of rounds that stay as they were: 0, or all that have been told.
        """
        ...


class Column(Protocol):
    """A line through the increments of the rounds with one n."""

    def add(self, node: int, value: Fraction) -> None:
        """Learn the increment of round `node`."""
        ...

    def sum_to(self, last: int) -> Fraction:
        """Return the sum of the increments of rounds 1 .. last, seen or not."""
        ...


class IncrementEstimator:
    """An estimate of a_0 plus the sum of a line through the increments of column n.

    This is Yang et al. 2023, Eq. 8 and below, in exact arithmetic: a settled run has more than a
    hundred nodes in one column, which leaves a float without a correct digit.

    Args:
        line: The class or function that makes the line of a column.
    """

    def __init__(self, line: Callable[[], Column]) -> None:
        self._line = line
        self._columns: dict[int, Column] = {}
        self._initial: Fraction | None = None
        self._accuracy = Fraction(0)

    def tell(self, record: RoundRecord) -> None:
        """Enter the round's increment into its column of M."""
        accuracy = Fraction(record.evaluation.accuracy)
        if record.round == 0:
            self._initial = accuracy
        elif self._initial is None:
            raise InvalidRecordError(_NO_START.format(record.round))
        elif record.n:
            if record.n not in self._columns:
                self._columns[record.n] = self._line()
            self._columns[record.n].add(record.round, accuracy - self._accuracy)
        self._accuracy = accuracy

    def estimate(self, n: int, rounds: int, *, done: int = 0) -> float | None:
        """Return a_0 plus the estimated increments of rounds 1 .. T(n); infinite if too large.

        With rounds done, it is the accuracy now plus the increments of the rounds after them.
        """
        if n not in self._columns or self._initial is None:
            return None
        column = self._columns[n]
        value = self._accuracy - column.sum_to(done) if done else self._initial
        value += column.sum_to(rounds)
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf


NewtonEstimator = partial(IncrementEstimator, NewtonPolynomial[Fraction])
"""Newton's polynomial through all increments of column n (Yang et al. 2023, Eqs. 7 and 8)."""

PiecewiseEstimator = partial(IncrementEstimator, PiecewiseLine[Fraction])
"""A straight line from each increment of column n to the next, level beyond the last."""

MeanEstimator = partial(IncrementEstimator, MeanLine[Fraction])
"""The mean increment of column n, in every round."""


class CurveEstimator:
    """The posterior mean of one learning curve with selection noise, fitted to all rounds."""

    def __init__(self, clients: int) -> None:
        self._clients = clients
        self._curve: LearningCurveBelief | None = None

    def tell(self, record: RoundRecord) -> None:
        """Fit the curve to the round as well."""
        if record.round == 0:
            self._curve = LearningCurveBelief(self._clients, record.evaluation.accuracy)
        elif self._curve is None:
            raise InvalidRecordError(_NO_START.format(record.round))
        elif record.n:
            self._curve.tell(record.n, record.evaluation.accuracy)

    def estimate(self, n: int, rounds: int, *, done: int = 0) -> float | None:
        """Return the accuracy that the curve reaches with n clients per round."""
        if self._curve is None:
            return None
        return self._curve.expected(n, rounds - done, fresh=not done)


ESTIMATORS: Registry[Estimator] = Registry(
    "estimator",
    {
        "newton": "bara.allocators.estimators:NewtonEstimator",
        "piecewise": "bara.allocators.estimators:PiecewiseEstimator",
        "mean": "bara.allocators.estimators:MeanEstimator",
        "curve": "bara.allocators.estimators:CurveEstimator",
    },
    Estimator,
)
"""Every estimator by name; others by import path or by the entry-point group `bara.estimators`."""

"""Estimators of the final accuracy for a constant number of clients, the first half of BARA."""

import math
from collections import deque
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


class BoundedIncrements:
    """Newton's polynomial whose every value is bounded to [-1, 1], as increments of accuracy are.

    >>> column = BoundedIncrements()
    >>> column.add(1, Fraction(1, 2)), column.add(2, Fraction(1))
    (None, None)
    >>> column.sum_to(4)  # 1/2, 1, and 1 for each of 3/2 and 2
    Fraction(7, 2)
    """

    def __init__(self) -> None:
        self._line = NewtonPolynomial[Fraction]()

    def add(self, node: int, value: Fraction) -> None:
        """Learn the increment of round `node`."""
        self._line.add(node, value)

    def sum_to(self, last: int) -> Fraction:
        """Return the sum of the bounded increments of rounds 1 .. last."""
        total = Fraction(0)
        for tau in range(1, last + 1):
            total += min(max(self._line(tau), Fraction(-1)), Fraction(1))
        return total


class LastIncrements:
    """Newton's polynomial through the last increments only.

    Args:
        nodes: The number of increments.

    >>> column = LastIncrements(2)
    >>> column.add(1, Fraction(9)), column.add(2, Fraction(1)), column.add(3, Fraction(2))
    (None, None, None)
    >>> column.sum_to(3)  # 0 + 1 + 2
    Fraction(3, 1)
    """

    def __init__(self, nodes: int = 3) -> None:
        self._increments: deque[tuple[int, Fraction]] = deque(maxlen=nodes)

    def add(self, node: int, value: Fraction) -> None:
        """Learn the increment of round `node`, in place of the oldest."""
        self._increments.append((node, value))

    def sum_to(self, last: int) -> Fraction:
        """Return the sum of the polynomial's values at rounds 1 .. last."""
        line = NewtonPolynomial[Fraction]()
        for node, value in self._increments:
            line.add(node, value)
        return line.sum_to(last)


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

BoundedEstimator = partial(IncrementEstimator, BoundedIncrements)
"""Newton's polynomial, each increment bounded before they are added up."""

LastEstimator = partial(IncrementEstimator, LastIncrements)
"""Newton's polynomial through the last three increments of column n."""

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
        "bounded": "bara.allocators.estimators:BoundedEstimator",
        "last": "bara.allocators.estimators:LastEstimator",
        "piecewise": "bara.allocators.estimators:PiecewiseEstimator",
        "mean": "bara.allocators.estimators:MeanEstimator",
        "curve": "bara.allocators.estimators:CurveEstimator",
    },
    Estimator,
)
"""Every estimator by name; others by import path or by the entry-point group `bara.estimators`."""

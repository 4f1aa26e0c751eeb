"""Estimates of the final accuracy for a constant number of clients, the first half of BARA; one can swap it."""

import math
from fractions import Fraction
from typing import Protocol, runtime_checkable

from bara.errors import InvalidRecordError
from bara.plugins import Registry
from bara.records import RoundRecord
from bara.surrogates import NewtonPolynomial


@runtime_checkable
class Estimator(Protocol):
    """Predicts where a constant n would end."""

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round; round 0 comes first."""
        ...

    def estimate(self, n: int, rounds: int) -> float | None:
        """The accuracy after that many rounds of n clients each; None where it cannot say."""
        ...


class NewtonEstimator:
    """a_0 plus the sum of Newton's polynomial through the increments of column n (Yang et al. 2023, Eqs. 7 and 8).

    In exact arithmetic: a settled run has more than a hundred nodes in one column, where floats have no digit left.
    """

    def __init__(self) -> None:
        self._columns: dict[int, NewtonPolynomial[Fraction]] = {}
        self._initial: Fraction | None = None
        self._accuracy = Fraction(0)

    def tell(self, record: RoundRecord) -> None:
        """Enter the round's increment into its column of M."""
        accuracy = Fraction(record.evaluation.accuracy)
        if record.round == 0:
            self._initial = accuracy
        elif self._initial is None:
            raise InvalidRecordError(
                f"told of round {record.round} first; required is round 0, the initial evaluation (RoundRecord.initial)"
            )
        elif record.n:
            column = self._columns.setdefault(record.n, NewtonPolynomial[Fraction]())
            column.add(record.round, accuracy - self._accuracy)
        self._accuracy = accuracy

    def estimate(self, n: int, rounds: int) -> float | None:
        """a_0 + sum of the estimated increments over rounds 1 .. T(n); infinite beyond what a float holds."""
        if n not in self._columns or self._initial is None:
            return None
        value = self._initial + self._columns[n].sum_to(rounds)
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf


ESTIMATORS: Registry[Estimator] = Registry(
    "estimator", {"newton": "bara.allocators.estimators:NewtonEstimator"}, Estimator
)
"""Every estimator by name; others by import path or by the entry-point group `bara.estimators`."""

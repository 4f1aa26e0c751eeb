"""Means that come with an interval, and differences over paired seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import scipy


@dataclass(frozen=True)
class Estimate:
    """A mean and the half-width of its 95 % interval (Student's t); None with fewer than two values."""

    mean: float
    margin: float | None
    count: int

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Both ends of the interval, as far as there can be such values.

        >>> Estimate(0.75, 0.5, 2).within(0, 1)
        (0.25, 1)
        """
        margin = self.margin or 0.0
        return max(self.mean - margin, low), min(self.mean + margin, high)


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of repeated runs.

    >>> estimate([1.0, 2.0, 3.0]).mean
    2.0
    """
    count = len(values)
    if count < 2:
        return Estimate(fmean(values), None, count)
    margin = float(scipy.special.stdtrit(count - 1, 0.975)) * stdev(values) / count**0.5
    return Estimate(fmean(values), margin, count)


def paired(values: dict[int, float], baseline: dict[int, float]) -> Estimate | None:
    """The mean difference over the seeds both have; None where they share none."""
    shared = [seed for seed in values if seed in baseline]
    return estimate([values[seed] - baseline[seed] for seed in shared]) if shared else None


def stratified(groups: Sequence[Sequence[float]]) -> Estimate:
    """The mean of the groups' means, each counting alike; the interval is over repetitions, the groups being given.

    Welch and Satterthwaite's degrees of freedom: groups may differ in size and spread.

    >>> stratified([[1.0, 3.0], [5.0, 7.0]]).mean
    4.0
    """
    means = [fmean(group) for group in groups]
    count = sum(map(len, groups))
    if any(len(group) < 2 for group in groups):
        return Estimate(fmean(means), None, count)
    parts = [stdev(group) ** 2 / len(group) for group in groups]
    if not (total := sum(parts)):
        return Estimate(fmean(means), 0.0, count)
    freedom = total**2 / sum(
        part**2 / (len(group) - 1) for part, group in zip(parts, groups, strict=True)
    )
    return Estimate(
        fmean(means), float(scipy.special.stdtrit(freedom, 0.975)) * total**0.5 / len(groups), count
    )


FEWEST = 5
"""With fewer differences a test says more of its assumptions than of them: intervals only."""


def significance(differences: Sequence[float]) -> float | None:
    """The two-sided p-value of Student's paired test that they are zero on average.

    None with fewer than `FEWEST`, and where all are alike (up to rounding) and not zero: without a
    spread there is no test.

    >>> round(significance([1.0, 2.0, 3.0, 4.0, 5.0]), 4)
    0.0132
    """
    count = len(differences)
    if count < FEWEST:
        return None
    mean, spread = fmean(differences), stdev(differences) / count**0.5
    if spread <= 1e-9 * abs(mean):
        return None if mean else 1.0
    return float(2 * scipy.special.stdtr(count - 1, -abs(mean) / spread))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """P-values of several comparisons, each corrected so that any false alarm is as rare as for one (Holm 1979).

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    known = sorted((value, place) for place, value in enumerate(values) if value is not None)
    corrected: list[float | None] = [None] * len(values)
    largest = 0.0
    for rank, (value, place) in enumerate(known):
        largest = max(largest, min((len(known) - rank) * value, 1.0))
        corrected[place] = largest
    return corrected

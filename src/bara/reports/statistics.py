"""Means with intervals, differences over paired seeds, and tests of those differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import scipy


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval (Student's t).

    Attributes:
        mean: The mean of the values.
        margin: Half the width of the interval; None with fewer than two values.
        count: The number of values.
    """

    mean: float
    margin: float | None
    count: int

    def within(self, low: float, high: float) -> tuple[float, float]:
        """Return both ends of the interval, clipped to the values that are possible.

        Args:
            low: The smallest possible value.
            high: The largest possible value.

        >>> Estimate(0.75, 0.5, 2).within(0, 1)
        (0.25, 1)
        """
        margin = self.margin or 0.0
        return max(self.mean - margin, low), min(self.mean + margin, high)


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of repeated runs with its interval.

    >>> estimate([1.0, 2.0, 3.0]).mean
    2.0
    """
    count = len(values)
    if count < 2:
        return Estimate(fmean(values), None, count)
    margin = float(scipy.special.stdtrit(count - 1, 0.975)) * stdev(values) / count**0.5
    return Estimate(fmean(values), margin, count)


def differences(values: dict[int, float], baseline: dict[int, float]) -> list[float]:
    """Return each seed's value less its baseline, for the seeds that have both."""
    return [values[seed] - baseline[seed] for seed in values if seed in baseline]


def paired(values: dict[int, float], baseline: dict[int, float]) -> Estimate | None:
    """Return the mean difference over the seeds that both have; None if they share none.

    Args:
        values: One value for each seed.
        baseline: The values to subtract, by seed.
    """
    found = differences(values, baseline)
    return estimate(found) if found else None


def stratified(groups: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean of the groups' means, every group counting alike.

    The interval is over repetitions within the given groups. Its degrees of freedom are Welch and
    Satterthwaite's, because groups may differ in size and spread.

    >>> stratified([[1.0, 3.0], [5.0, 7.0]]).mean
    4.0
    """
    mean = fmean(map(fmean, groups))
    count = sum(map(len, groups))
    if min(map(len, groups)) < 2:
        return Estimate(mean, None, count)
    variances = [stdev(group) ** 2 / len(group) for group in groups]
    total = sum(variances)
    if total == 0:
        return Estimate(mean, 0.0, count)
    freedom = total**2 / sum(
        variance**2 / (len(group) - 1) for variance, group in zip(variances, groups, strict=True)
    )
    margin = float(scipy.special.stdtrit(freedom, 0.975)) * total**0.5 / len(groups)
    return Estimate(mean, margin, count)


FEWEST = 5
"""The fewest differences that are tested: with fewer, a test mostly reflects its assumptions."""


def significance(values: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Student's paired test that the mean difference is zero.

    None with fewer than `FEWEST` differences, and where all are equal (up to rounding) and not
    zero: without a spread there is no test.

    >>> round(significance([1.0, 2.0, 3.0, 4.0, 5.0]), 4)
    0.0132
    """
    return tested(estimate(values)) if values else None


def tested(mean: Estimate) -> float | None:
    """Return the p-value that belongs to a mean with its interval; see `significance`.

    >>> round(tested(estimate([1.0, 2.0, 3.0, 4.0, 5.0])), 4)
    0.0132
    """
    if mean.margin is None or mean.count < FEWEST:
        return None
    if mean.margin <= 1e-9 * abs(mean.mean):
        return None if mean.mean else 1.0
    error = mean.margin / float(scipy.special.stdtrit(mean.count - 1, 0.975))
    return float(2 * scipy.special.stdtr(mean.count - 1, -abs(mean.mean) / error))


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Correct the p-values of several comparisons (Holm 1979).

    After the correction, any false alarm among all comparisons is as rare as in a single one.

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

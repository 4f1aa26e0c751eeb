"""Means that come with an interval, and differences over paired seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.special import stdtrit


@dataclass(frozen=True)
class Estimate:
    """A mean and the half-width of its 95 % interval (Student's t); None with fewer than two values."""

    mean: float
    margin: float | None
    count: int


def estimate(values: Sequence[float]) -> Estimate:
    """The mean of repeated runs.

    >>> estimate([1.0, 2.0, 3.0]).mean
    2.0
    """
    count = len(values)
    if count < 2:
        return Estimate(fmean(values), None, count)
    margin = float(stdtrit(count - 1, 0.975)) * stdev(values) / count**0.5
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
    freedom = total**2 / sum(part**2 / (len(group) - 1) for part, group in zip(parts, groups, strict=True))
    return Estimate(fmean(means), float(stdtrit(freedom, 0.975)) * total**0.5 / len(groups), count)

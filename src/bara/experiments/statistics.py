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

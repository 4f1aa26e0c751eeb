"""Label noise: some of a client's labels are wrong."""

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Labels
from bara.errors import ConfigError, DatasetError
from bara.randomness import stream


def flip_labels(labels: Labels, indices: NDArray[np.int64], fraction: float, classes: int, seed: int = 0) -> Labels:
    """A copy of the labels in which a fraction of those at the indices is wrong.

    Which are flipped is drawn at random; each becomes any of the other classes, all equally likely.

    Args:
        labels: Every label; left as it is.
        indices: Whose labels may be flipped, a client's part say; each once.
        fraction: How many of them, from 0 to 1, rounded to the nearest whole number.
        classes: How many labels there are.
        seed: Decides which, and what they become.

    >>> flip_labels(np.zeros(6, np.int64), np.arange(3), 1.0, classes=2)
    array([1, 1, 1, 0, 0, 0])
    """
    indices = np.asarray(indices, np.int64)
    _check(len(labels), indices, fraction, classes)
    rng = stream(seed, "label noise")
    flipped = rng.choice(indices, size=round(fraction * len(indices)), replace=False)
    noisy = np.array(labels, np.int64)
    noisy[flipped] = (noisy[flipped] + rng.integers(1, classes, size=len(flipped))) % classes
    return noisy


def _check(samples: int, indices: NDArray[np.int64], fraction: float, classes: int) -> None:
    if not 0 <= fraction <= 1:
        raise ConfigError(f"the fraction of flipped labels must be from 0 to 1, got {fraction}")
    if classes < 2:
        raise ConfigError(f"labels cannot be flipped among {classes} class(es); there must be at least 2")
    if len(indices) and not (indices.min() >= 0 and indices.max() < samples):
        raise DatasetError(f"labels to flip are at {indices.min()} .. {indices.max()}; there are {samples} labels")
    if len(np.unique(indices)) != len(indices):
        raise DatasetError("the indices of the labels to flip hold one twice; each may be there once")

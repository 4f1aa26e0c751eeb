"""Puts samples in an order of which every beginning is a fair sample of the classes."""

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Labels


def stratified_order(labels: Labels, shuffled: NDArray[np.int64]) -> NDArray[np.int64]:
    """Reorders a permutation so that each class is spread evenly over it.

    The k-th of a class's m samples is placed at (k + 1/2) / m of the way. Any first n samples then hold each class
    in its share of n, to within one sample a class or so, and a smaller beginning is part of a larger one.

    Args:
        labels: The label of each sample.
        shuffled: A random order of the samples; decides which of a class comes first, and ties.

    >>> stratified_order(np.array([0, 0, 0, 0, 1, 1]), np.arange(6)).tolist()
    [0, 4, 1, 2, 5, 3]
    """
    mine = labels[shuffled]
    by_class = np.argsort(mine, kind="stable")
    sizes = np.bincount(mine)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(mine))
    rank[by_class] = np.arange(len(mine)) - starts[mine[by_class]]
    return shuffled[np.argsort((rank + 0.5) / sizes[mine], kind="stable")]

"""Few rounds that look like many: what a page draws of a long run."""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from bara.records import IntArray

MOST = 900
"""Points that a figure draws; more than that no screen can show."""


def thin(values: ArrayLike, most: int = MOST) -> IntArray:
    """The positions to keep: the first, the last, and the lowest and highest of each stretch in between.

    Every one is a real round, no peak is lost, and nothing is averaged away.

    >>> thin([0, 9, 1, 2, 3, 4], most=4).tolist()
    [0, 1, 5]
    >>> thin([3, 1, 2]).tolist()
    [0, 1, 2]
    """
    column = np.asarray(values, float)
    if len(column) <= most:
        return np.arange(len(column))
    edges = np.linspace(0, len(column), max((most - 2) // 2, 1) + 1).astype(int)
    lows = [start + int(np.argmin(column[start:end])) for start, end in pairwise(edges)]
    highs = [start + int(np.argmax(column[start:end])) for start, end in pairwise(edges)]
    return np.unique([0, *lows, *highs, len(column) - 1])

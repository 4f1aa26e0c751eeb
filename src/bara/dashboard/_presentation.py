"""What fits on a page: few points that look like many, and names that others chose, made fit to be shown."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bara.records import IntArray
from bara.text import spelled

MOST = 900
"""Points that a figure draws; more than that no screen can show."""

LONGEST = 96
"""Characters of a name that are shown."""


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


def shown(text: str, longest: int = LONGEST) -> str:
    r"""A name as text: characters that steer rather than show are spelled out, and the end of a long one is cut.

    >>> shown("north"), shown("a\u202eb")
    ('north', 'a⟨U+202E⟩b')
    >>> shown("x" * 10_000)[-22:]
    'x… (10,000 characters)'
    """
    start = text[:longest]
    return spelled(start) if start == text else f"{spelled(start)}… ({len(text):,} characters)"


def compact(tree: Any) -> str:
    """A tree as JSON, which knows no NaN and no infinity."""
    return json.dumps(tree, separators=(",", ":"), allow_nan=False)

"""Helpers to fit data onto a page: thinned curves, safe and short names, and compact JSON."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bara.records import IntArray
from bara.text import spelled

MOST = 900
"""The most points that a figure draws; no screen can show more."""

LONGEST = 96
"""The most characters of a name that are shown."""


def thin(values: ArrayLike, most: int = MOST) -> IntArray:
    """Return the positions to draw: both ends, and the lowest and highest of each stretch between.

    Every point is a real round, no peak is lost, and nothing is averaged away.

    Args:
        values: The curve.
        most: The most positions to return.

    >>> thin([0, 9, 1, 2, 3, 4], most=4).tolist()
    [0, 1, 5]
    >>> thin([3, 1, 2]).tolist()
    [0, 1, 2]
    """
    column = np.asarray(values, float)
    if len(column) <= most:
        return np.arange(len(column))
    edges = np.linspace(0, len(column), max((most - 2) // 2, 1) + 1).astype(int)
    positions = [0, len(column) - 1]
    for start, end in pairwise(edges):
        stretch = column[start:end]
        positions.append(start + int(np.argmin(stretch)))
        positions.append(start + int(np.argmax(stretch)))
    return np.unique(positions)


def shown(text: str, longest: int = LONGEST) -> str:
    r"""Return a text with its control characters spelled out, cut if it is too long.

    Args:
        text: A name or sentence that others chose.
        longest: The most characters to show.

    >>> shown("north"), shown("a\u202eb")
    ('north', 'a⟨U+202E⟩b')
    >>> shown("x" * 10_000)[-22:]
    'x… (10,000 characters)'
    """
    if len(text) <= longest:
        return spelled(text)
    return f"{spelled(text[:longest])}… ({len(text):,} characters)"


def compact(tree: Any) -> str:
    """Return a tree as JSON without spaces; raise ValueError for NaN and infinity."""
    return json.dumps(tree, separators=(",", ":"), allow_nan=False)

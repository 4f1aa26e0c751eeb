"""Interpolation of order 0 and 1, as alternatives to Newton's polynomial.

Newton's polynomial through J nodes has order J - 1; the paper itself calls its prediction
"vulnerable to overfitting" (Yang et al. 2023, Training Records Synthesis). Values may be floats or
fractions, as in `bara.surrogates.newton`.
"""

from bisect import insort
from itertools import pairwise
from typing import Generic

from bara.surrogates.newton import Number


class MeanLine(Generic[Number]):
    """A line of order 0: the mean of all values, everywhere.

    >>> line = MeanLine[float]()
    >>> line.add(1, 2.0), line.add(7, 4.0), line.sum_to(10)
    (None, None, 30.0)
    """

    def __init__(self) -> None:
        self._values: list[Number] = []

    def add(self, node: int, value: Number) -> None:  # noqa: ARG002 - the mean ignores the node
        """Add a value to the mean."""
        self._values.append(value)

    def sum_to(self, last: int) -> Number:
        """Return the sum of the line's values at 1 .. last."""
        return sum(self._values[1:], self._values[0]) * last / len(self._values)


class PiecewiseLine(Generic[Number]):
    """A line of order 1: straight between nodes, constant before the first and after the last.

    >>> line = PiecewiseLine[float]()
    >>> line.add(4, 1.0), line.add(2, 3.0), line.sum_to(5)  # 3, 3, 2, 1, 1
    (None, None, 10.0)
    """

    def __init__(self) -> None:
        self._nodes: list[tuple[int, Number]] = []

    def add(self, node: int, value: Number) -> None:
        """Let the line pass through (node, value), too."""
        if any(node == known for known, _ in self._nodes):
            raise ValueError(f"node {node} was added before; nodes must be distinct")
        insort(self._nodes, (node, value))

    def sum_to(self, last: int) -> Number:
        """Return the sum of the line's values at 1 .. last."""
        first, first_value = self._nodes[0]
        final, final_value = self._nodes[-1]
        total = first_value * min(first - 1, last) + final_value * max(last - final + 1, 0)
        for (s, y), (t, z) in pairwise(self._nodes):
            # The points from s up to, but not including, t: the next segment begins with t.
            count = max(min(t, last + 1) - s, 0)
            total += y * count + (z - y) * (count * (count - 1) // 2) / (t - s)
        return total

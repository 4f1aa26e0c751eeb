"""Lines of low order through the values of a column, beside Newton's polynomial through all of them.

Newton's polynomial of J nodes has order J - 1; the paper itself calls its prediction "vulnerable to
overfitting" (Yang et al. 2023, Training Records Synthesis). The two here have order 0 and 1. The
arithmetic is that of the values, as in `bara.surrogates.newton`.
"""

from bisect import insort
from itertools import pairwise
from typing import Generic

from bara.surrogates.newton import Number


class MeanLine(Generic[Number]):
    """Order 0: the mean of all values, everywhere.

    >>> line = MeanLine[float]()
    >>> line.add(1, 2.0), line.add(7, 4.0), line.sum_to(10)
    (None, None, 30.0)
    """

    def __init__(self) -> None:
        self._values: list[Number] = []

    def add(self, node: int, value: Number) -> None:  # noqa: ARG002 - where it was seen does not matter
        """Count this value, too."""
        self._values.append(value)

    def sum_to(self, last: int) -> Number:
        """The line's values at 1 .. last, added up."""
        return sum(self._values[1:], self._values[0]) * last / len(self._values)


class PiecewiseLine(Generic[Number]):
    """Order 1: straight from each node to the next, level before the first and beyond the last.

    >>> line = PiecewiseLine[float]()
    >>> line.add(4, 1.0), line.add(2, 3.0), line.sum_to(5)  # 3, 3, 2, 1, 1
    (None, None, 10.0)
    """

    def __init__(self) -> None:
        self._nodes: list[tuple[int, Number]] = []

    def add(self, node: int, value: Number) -> None:
        """Pass through (node, value), too."""
        if any(node == known for known, _ in self._nodes):
            raise ValueError(f"node {node} was added before; nodes must be distinct")
        insort(self._nodes, (node, value))

    def sum_to(self, last: int) -> Number:
        """The line's values at 1 .. last, added up; a step from node s to node t counts s and not t."""
        (first, start), (final, end) = self._nodes[0], self._nodes[-1]
        total = start * min(first - 1, last) + end * max(last - final + 1, 0)
        for (s, y), (t, z) in pairwise(self._nodes):
            count = max(min(t, last + 1) - s, 0)
            total += y * count + (z - y) * (count * (count - 1) // 2) / (t - s)
        return total

"""Interpolation: Newton's polynomial (Yang et al. 2023, Eqs. 7 and 8), and lines of low order.

Newton's polynomial through J nodes has order J - 1; the paper itself calls its prediction
"vulnerable to overfitting" (Training Records Synthesis). The lines of order 0 and 1 are the
alternatives. Notation:

    t_1 .. t_J          nodes, distinct whole numbers, in the order they were added
    y[t_1, ..., t_j]    divided differences; the polynomial's coefficients
    p(tau)              y[t_1] + y[t_1, t_2] (tau - t_1) + ...
                            + y[t_1, ..., t_J] prod_{j<J} (tau - t_j)

With values of type `Fraction` everything is exact. With floats the relative error stays below 1e-9
up to a dozen nodes; beyond that, a polynomial through whole-numbered nodes loses digits fast.
"""

from bisect import insort
from fractions import Fraction
from itertools import pairwise
from typing import Generic, TypeVar

Number = TypeVar("Number", float, Fraction)


class NewtonPolynomial(Generic[Number]):
    """The polynomial through all nodes added so far; adding a node costs J operations.

    Attributes:
        coefficients: The divided differences y[t_1], y[t_1, t_2], ..., y[t_1, ..., t_J].

    >>> p = NewtonPolynomial[Fraction]()
    >>> for t in (1, 2, 4):
    ...     p.add(t, Fraction(t * t))
    >>> p(3), p.sum_to(5)
    (Fraction(9, 1), Fraction(55, 1))
    """

    def __init__(self) -> None:
        self._nodes: list[int] = []
        self._last: list[Number] = []  # y[t_J], y[t_{J-1}, t_J], ..., y[t_1, ..., t_J]
        self.coefficients: list[Number] = []
        # What `sum_to` has summed so far, to go on from when nodes are added:
        self._products: list[int] = []  # for each tau, the product of (tau - node) so far
        self._counted = 0  # coefficients
        self._summed: Number | None = None

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._nodes)

    def add(self, node: int, value: Number) -> None:
        """Let the polynomial pass through (node, value), too."""
        if node in self._nodes:
            raise ValueError(f"node {node} was added before; nodes must be distinct")
        diagonal = [value]
        for earlier, difference in zip(reversed(self._nodes), self._last, strict=True):
            # Eq. 7 for t_k .. t_J: (y[t_k .. t_{J-1}] - y[t_{k+1} .. t_J]) / (t_k - t_J)
            diagonal.append((difference - diagonal[-1]) / (earlier - node))
        self._nodes.append(node)
        self._last = diagonal
        self.coefficients.append(diagonal[-1])

    def __call__(self, tau: int) -> Number:
        """Return p(tau), by Horner's rule."""
        value = self.coefficients[-1]
        for node, coefficient in zip(self._nodes[-2::-1], self.coefficients[-2::-1], strict=True):
            value = value * (tau - node) + coefficient
        return value

    def sum_to(self, last: int) -> Number:
        """Return p(1) + ... + p(last), coefficient by coefficient.

        A call with the same `last` as before only adds the new coefficients. What a coefficient
        multiplies is summed in whole numbers.
        """
        if self._summed is None or len(self._products) != last:
            self._products = [1] * last
            self._counted = 1
            self._summed = self.coefficients[0] * last
        while self._counted < len(self):
            node = self._nodes[self._counted - 1]
            self._products = [
                product * (tau - node) for tau, product in enumerate(self._products, 1)
            ]
            self._summed += self.coefficients[self._counted] * sum(self._products)
            self._counted += 1
        return self._summed


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

"""Lines of low order: the closed sums against adding up numpy's values one by one."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bara.surrogates import MeanLine, PiecewiseLine

columns = st.dictionaries(
    st.integers(1, 60), st.fractions(-1, 1, max_denominator=1000), min_size=1, max_size=12
)


def through(line, column):
    for node, value in column.items():
        line.add(node, value)
    return line


@given(columns, st.integers(0, 120))
def test_property_the_piecewise_sum_is_that_of_numpys_interpolation(column, last):
    nodes = sorted(column)
    values = np.interp(np.arange(1, last + 1), nodes, [float(column[node]) for node in nodes])
    assert float(through(PiecewiseLine(), column).sum_to(last)) == pytest.approx(
        values.sum(), abs=1e-9
    )


@given(columns, st.integers(0, 120))
def test_property_the_mean_line_is_the_mean_everywhere(column, last):
    mean = sum(column.values(), Fraction(0)) / len(column)
    assert through(MeanLine(), column).sum_to(last) == last * mean


@given(columns, st.integers(0, 120))
def test_property_the_order_in_which_nodes_come_does_not_matter(column, last):
    backwards = dict(reversed(column.items()))
    assert through(PiecewiseLine(), column).sum_to(last) == through(
        PiecewiseLine(), backwards
    ).sum_to(last)


def test_beyond_the_last_node_the_line_is_level_where_newtons_polynomial_runs_away():
    line = through(PiecewiseLine(), {1: Fraction(1), 2: Fraction(1, 2), 3: Fraction(1, 8)})
    assert line.sum_to(103) - line.sum_to(3) == Fraction(100, 8)


def test_a_node_that_is_there_already_is_refused():
    with refused(ValueError, "node 2"):
        through(PiecewiseLine(), {2: 1.0}).add(2, 3.0)

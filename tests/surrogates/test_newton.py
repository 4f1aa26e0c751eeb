from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy.interpolate import KroghInterpolator

from bara.surrogates import NewtonPolynomial

nodes = st.lists(st.integers(1, 60), min_size=1, max_size=12, unique=True)


def through(ts, ys):
    polynomial = NewtonPolynomial()
    for t, y in zip(ts, ys, strict=True):
        polynomial.add(t, y)
    return polynomial


def divided_difference(ts, ys):
    """Eq. 7, as printed."""
    if len(ts) == 1:
        return ys[0]
    return (divided_difference(ts[:-1], ys[:-1]) - divided_difference(ts[1:], ys[1:])) / Fraction(
        ts[0] - ts[-1]
    )


def test_three_nodes_by_hand():
    """y(1) = 1/2, y(2) = 1/4, y(4) = 1/8: y[1,2] = -1/4, y[2,4] = -1/16, y[1,2,4] = 1/16.

    p(3) = 1/2 - 1/4 * 2 + 1/16 * 2 * 1 = 1/8; p(5) = 1/2 - 1 + 1/16 * 4 * 3 = 1/4.
    """
    p = through([1, 2, 4], [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)])
    assert p.coefficients == [Fraction(1, 2), Fraction(-1, 4), Fraction(1, 16)]
    assert (p(3), p(5)) == (Fraction(1, 8), Fraction(1, 4))
    assert p.sum_to(5) == Fraction(1, 2) + Fraction(1, 4) + Fraction(1, 8) + Fraction(
        1, 8
    ) + Fraction(1, 4)


@given(nodes, st.data())
def test_property_the_coefficients_are_the_papers_divided_differences(ts, data):
    ys = data.draw(
        st.lists(st.fractions(-1, 1, max_denominator=1000), min_size=len(ts), max_size=len(ts))
    )
    p = through(ts, ys)
    for j in range(1, min(len(ts), 7) + 1):
        assert p.coefficients[j - 1] == divided_difference(ts[:j], ys[:j])
    assert [p(t) for t in ts] == ys


@given(nodes, st.data())
def test_property_floats_keep_nine_digits_up_to_a_dozen_nodes(ts, data):
    ys = data.draw(st.lists(st.floats(-1, 1, width=32), min_size=len(ts), max_size=len(ts)))
    ts.sort()
    rough, exact = through(ts, ys), through(ts, [Fraction(y) for y in ys])
    scale = max(abs(float(c)) for c in exact.coefficients)
    for one, other in zip(rough.coefficients, exact.coefficients, strict=True):
        assert one == pytest.approx(float(other), rel=1e-9, abs=1e-9 * scale)


def test_the_polynomial_is_scipys():
    rng = np.random.default_rng(0)
    ts = [1, 2, 5, 9, 14, 20]
    ys = rng.normal(size=6)
    p = through(ts, [Fraction(float(y)) for y in ys])
    reference = KroghInterpolator(ts, ys)
    for tau in range(1, 31):
        assert float(p(tau)) == pytest.approx(float(reference(tau)), rel=1e-9)


def test_one_node_is_a_constant():
    p = through([7], [Fraction(1, 3)])
    assert (p(1), p(99), p.sum_to(6)) == (Fraction(1, 3), Fraction(1, 3), 2)


def test_a_hundred_and_fifty_nodes_are_still_exact():
    ts = range(1, 151)
    p = through(ts, [Fraction(1, t) for t in ts])
    assert p(150) == Fraction(1, 150)
    assert p.sum_to(150) == sum(Fraction(1, t) for t in ts)


def test_a_node_given_twice_is_refused():
    with refused(ValueError, "node 3"):
        through([3, 3], [Fraction(1), Fraction(2)])

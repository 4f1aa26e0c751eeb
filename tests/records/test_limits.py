"""Limits to what clients say of themselves: declared, or from what the others say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bara.errors import ConfigError
from bara.records import Limits
from bara.records.limits import LEAST, MOST, TIMES


def beyond(said, *, limits=None, usual=None):
    """The positions of the numbers that do not count."""
    return set((limits or Limits()).exceeded("samples", np.array(said, float), usual))


def test_without_a_declared_limit_a_hundred_times_the_median_is_the_most():
    assert beyond([1, 2, 3, 200]) == set()
    assert beyond([1, 2, 3, 251]) == {3}


def test_several_absurd_numbers_do_not_set_the_median_as_long_as_they_are_fewer():
    assert beyond([300, 300, 300, 1e11, 1e11]) == {3, 4}


def test_impossible_numbers_do_not_count_towards_the_median_however_many():
    assert beyond([300, 300, 300, *[1e300] * 50]) == set(range(3, 53))
    assert beyond([300, *[1e-300] * 50]) == set(range(1, 51))


def test_of_two_numbers_neither_is_known_to_be_absurd_but_bounds_hold():
    assert beyond([300, 1e9]) == set()
    assert beyond([300, 1e13]) == {1}
    assert beyond([1e-10]) == {0}


def test_a_declared_limit_alone_counts():
    declared = Limits({"num-examples": 50, "samples": 1000})
    assert beyond([1, 2, 3, 1000, 1001], limits=declared) == {4}


def test_numbers_that_the_server_knows_itself_are_bounded_only_where_that_is_declared():
    assert beyond([1, 1, 1, 1e9], limits=Limits(times=None)) == set()
    assert beyond([1, 1, 1, 1e9], limits=Limits({"samples": 5}, times=None)) == {3}


def test_other_numbers_may_say_what_is_usual():
    assert beyond([1e6], usual=np.array([10.0, 20.0, 30.0])) == {0}


@pytest.mark.parametrize("limit", [0, -1, True, "many", float("nan"), 2 * MOST, None])
def test_a_limit_must_be_a_number_that_can_be_reached(limit):
    with refused(ConfigError, "limits.samples", repr(limit)):
        Limits({"samples": limit})


POSITIVE = st.floats(5e-324, 1.7e308)


@given(st.lists(POSITIVE, max_size=20))
def test_property_what_counts_adds_up_and_most_numbers_of_a_kind_count(said):
    out = beyond(said)
    kept = np.array([number for place, number in enumerate(said) if place not in out])
    assert np.isfinite(np.square(kept).sum())
    assert ((kept >= LEAST) & (kept <= MOST)).all()
    if len(kept) >= 3:
        possible = [number for number in said if LEAST <= number <= MOST]
        assert kept.max() <= TIMES * np.median(possible)

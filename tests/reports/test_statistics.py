"""Means with intervals, and when a test may be spoken of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from bara.reports.statistics import FEWEST, significance

differences = st.lists(st.floats(-1, 1), min_size=FEWEST, max_size=20)


@given(differences)
def test_property_p_values_are_scipys(values):
    if np.std(values) > 1e-6:
        assert significance(values) == pytest.approx(
            ttest_1samp(values, 0).pvalue, rel=1e-6, abs=1e-12
        )


@given(st.lists(st.floats(-1, 1), max_size=FEWEST - 1))
def test_property_fewer_than_five_differences_are_not_tested(values):
    assert significance(values) is None


@given(st.floats(-1, 1).filter(lambda value: abs(value) > 1e-6), st.integers(2, 20))
def test_property_equal_differences_have_no_p_value_however_many(value, count):
    base = np.linspace(0.1, 0.9, count)
    assert significance(list(base + value - base)) is None  # equal up to what rounding leaves
    assert significance([value] * count) is None


def test_no_difference_at_all_is_no_finding():
    assert significance([0.0] * FEWEST) == 1.0

import numpy as np
import pytest
from refusals import refused

from bara.errors import ConfigError
from bara.simulator import Updates, aggregate


def updates(*rows):
    states = np.array(rows, np.float32)
    count = len(rows)
    nothing = (None,) * count
    return Updates(5, tuple(range(10, 10 + count)), states, (1,) * count, nothing, nothing)


def test_the_next_state_is_the_weighted_mean():
    assert aggregate(updates([1, 2], [5, 6]), [3, 1]).tolist() == [2, 3]


def test_weights_need_not_sum_to_one():
    assert aggregate(updates([1.0], [3.0]), [200, 200]).tolist() == [2]


def test_a_client_of_weight_0_is_left_out_whatever_it_sent():
    assert aggregate(updates([1.0], [np.nan]), [1, 0]).tolist() == [1]


@pytest.mark.parametrize(
    ("weights", "fact"),
    [
        ([1], "1 for 2"),
        ([1, 1, 1], "3 for 2"),
        ([0, 0], "[0, 0]"),
        ([1, -1], "[1, -1]"),
        ([1, np.nan], "[1, nan]"),
        ([np.inf, 1], "[inf, 1]"),
    ],
)
def test_weights_that_are_none_are_refused(weights, fact):
    with refused(ConfigError, "aggregation", fact):
        aggregate(updates([1.0], [2.0]), weights)

import numpy as np
import pytest

from bara.errors import ConfigError
from bara.federations.simulator import Keeper


def state(number):
    return np.full(3, number, np.float32)


def test_the_best_on_validation_is_kept_and_of_equals_the_first():
    keeper = Keeper()
    for number, accuracy in enumerate([0.1, 0.7, 0.7, 0.5]):
        keeper.tell(number, state(number), accuracy)
    assert keeper.best_round == 1
    assert keeper.best.tolist() == [1, 1, 1]


def test_the_last_k_states_are_averaged():
    keeper = Keeper(last=2)
    for number in range(4):
        keeper.tell(number, state(number), 0.5)
    assert keeper.average.tolist() == [2.5, 2.5, 2.5]
    assert keeper.average.dtype == np.float32


def test_a_kept_state_does_not_change_with_the_one_it_came_from():
    keeper, mine = Keeper(), state(1)
    keeper.tell(0, mine, 0.5)
    mine += 1
    keeper.best[:] = 9
    assert keeper.best.tolist() == keeper.average.tolist() == [1, 1, 1]


def test_nothing_kept_is_said_so():
    with pytest.raises(ConfigError, match="no state was kept yet"):
        _ = Keeper().best
    with pytest.raises(ConfigError, match="no state was kept yet"):
        _ = Keeper().average


@pytest.mark.parametrize("last", [0, 1.5])
def test_an_average_of_nothing_is_refused(last):
    with pytest.raises(ConfigError, match="averaged"):
        Keeper(last)

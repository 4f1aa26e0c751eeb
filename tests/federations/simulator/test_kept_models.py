import numpy as np

from bara.federations.simulator import KeptModels


def state(number):
    return np.full(3, number, np.float32)


def test_the_best_on_validation_is_kept_and_of_equals_the_first():
    kept = KeptModels(1)
    for number, accuracy in enumerate([0.1, 0.7, 0.7, 0.5]):
        kept.tell(number, state(number), accuracy)
    assert kept.best_round == 1
    assert kept.best.tolist() == [1, 1, 1]


def test_the_last_k_states_are_averaged():
    kept = KeptModels(last=2)
    for number in range(4):
        kept.tell(number, state(number), 0.5)
    assert kept.average.tolist() == [2.5, 2.5, 2.5]
    assert kept.average.dtype == np.float32


def test_a_kept_state_does_not_change_with_the_one_it_came_from():
    kept, mine = KeptModels(1), state(1)
    kept.tell(0, mine, 0.5)
    mine += 1
    assert kept.best.tolist() == kept.average.tolist() == [1, 1, 1]

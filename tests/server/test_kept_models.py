import numpy as np

from bara.records import Evaluation, taken_home
from bara.server.kept_models import KeptModels


def state(number):
    return {"w": np.full(3, number, np.float32), "steps": np.array([number])}


def test_the_best_on_validation_is_kept_and_of_equals_the_first():
    kept = KeptModels(1)
    for number, accuracy in enumerate([0.1, 0.7, 0.7, 0.5]):
        kept.tell(number, state(number), accuracy)
    assert kept.best_round == 1
    assert kept.by_name["best"]["w"].tolist() == [1, 1, 1]


def test_the_last_k_states_are_averaged():
    kept = KeptModels(last=2)
    for number in range(4):
        kept.tell(number, state(number), 0.5)
    average = kept.by_name["average"]
    assert average["w"].tolist() == [2.5, 2.5, 2.5]
    assert average["w"].dtype == np.float32
    assert average["steps"].tolist() == [3]  # whole numbers have no mean


def test_a_kept_state_does_not_change_with_the_one_it_came_from():
    kept, mine = KeptModels(1), state(1)
    kept.tell(0, mine, 0.5)
    mine["w"] += 1
    assert [model["w"].tolist() for model in kept.by_name.values()] == [[1, 1, 1]] * 3


def test_the_lowest_validation_loss_is_taken_home_whatever_the_test_says():
    models = {
        "final": Evaluation(0.8, 0.5, test_accuracy=0.9, test_loss=0.1),
        "average": Evaluation(0.7, 0.4, test_accuracy=0.6, test_loss=0.9),
        "best": Evaluation(0.9, 0.6, test_accuracy=0.8, test_loss=0.2),
    }
    assert taken_home(models) == "average"
    without = {
        name: Evaluation(one.accuracy, test_accuracy=one.test_accuracy)
        for name, one in models.items()
    }
    assert taken_home(without) == "best"


def test_where_the_reported_data_decide_nothing_is_selected():
    models = {
        "final": Evaluation(0.8, 0.5),
        "average": Evaluation(0.9, 0.4),
        "best": Evaluation(0.95, 0.3),
    }
    assert taken_home(models) == "final"

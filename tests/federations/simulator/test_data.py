import numpy as np
import pytest

from bara.errors import DatasetError
from bara.federations.simulator import Data, Engine, Training

X = np.zeros((6, 8, 8), np.uint8)
Y = np.array([0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize(("shape", "seen"), [((6, 8, 9), (1, 8, 9)), ((6, 8, 9, 3), (3, 8, 9)), ((6, 11), (11,))])
def test_a_samples_shape_is_as_torch_sees_it(shape, seen):
    assert Data(np.zeros(shape), Y, np.zeros(shape), Y, 3).shape == seen


def test_without_parts_all_held_out_samples_are_the_test():
    assert Data(X, Y, X, Y, 3).held["test"].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"y_train": Y + 1}, "train labels go from 1 to 3; 3 classes are 0 to 2"),
        ({"y_held": Y - 1}, "held-out labels go from -1"),
        ({"y_train": Y[:5]}, "6 samples need"),
        ({"y_train": Y.astype(float)}, "whole numbers"),
        ({"x_train": X.astype(np.int32)}, "uint8 or floating point"),
        ({"x_train": X.reshape(6, 64)}, "train samples are"),
        ({"x_train": np.full((6, 8, 8), np.nan)}, "not finite"),
        ({"x_train": X[:0], "y_train": Y[:0]}, "have shape"),
        ({"held": {"validation": np.array([6])}}, "held-out part 'validation' has indices from 6 to 6"),
        ({"held": {"test": np.array([], int)}}, "held-out part 'test' has no samples"),
    ],
)
def test_data_that_do_not_fit_are_refused(changed, says):
    given = {"x_train": X, "y_train": Y, "x_held": X, "y_held": Y, "classes": 3, **changed}
    with pytest.raises(DatasetError, match=says):
        Data(**given)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([], "no clients"),
        ([[0, 1], []], "client 1 has no samples"),
        ([[0, 6]], "client 0 has indices from 0 to 6; there are 6 samples"),
        ([[0], [1, -1]], "client 1 has indices from -1"),
        ([[0.5]], "whole numbers"),
    ],
)
def test_a_client_without_usable_samples_is_named(parts, says):
    with pytest.raises(DatasetError, match=says):
        Engine("mlp", Training(), Data(X, Y, X, Y, 3), [np.array(part) for part in parts], seed=0)

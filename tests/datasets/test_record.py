import numpy as np
import pytest
from refusals import refused

from bara.datasets import Dataset, load
from bara.errors import DatasetError

X, Y = np.zeros((4, 2, 2), np.uint8), np.array([0, 1, 2, 1])


def make(x_train=X, y_train=Y, x_test=X, y_test=Y, classes=3):
    return Dataset("mine", x_train, y_train, x_test, y_test, classes)


def test_labels_become_int64_and_images_stay_bytes():
    data = make(y_train=Y.astype(np.uint8))
    assert data.y_train.dtype == np.int64
    assert data.x_train.dtype == np.uint8
    assert data.scale == 255


def test_floats_are_taken_as_they_are():
    assert make(x_train=X / 2, x_test=X / 2).scale == 1


@pytest.mark.parametrize(
    ("changed", "facts"),
    [
        ({"y_train": np.array([0, 3, 1, 1])}, ("y_train[1]", "label 3", "2")),
        ({"y_test": np.array([0, 1, -1, 1])}, ("y_test[2]", "-1")),
        ({"y_train": Y[:3]}, ("y_train", "x_train", "3", "4")),
        ({"y_train": Y.astype(float)}, ("y_train", "float64")),
        ({"y_test": Y.reshape(2, 2)}, ("y_test", "int64", "(2, 2)")),
        ({"x_train": np.array([[1.0], [np.nan], [0], [0]])}, ("x_train[1]", "finite")),
        ({"x_train": X.astype(int)}, ("x_train", "int64", "uint8")),
        ({"x_train": X[:0], "y_train": Y[:0]}, ("x_train", "(0, 2, 2)")),
        ({"x_test": np.zeros((4, 3, 3), np.uint8)}, ("x_test", "(3, 3)", "(2, 2)")),
        ({"classes": 1}, ("classes", "at least 2", "1")),
    ],
)
def test_an_error_names_the_dataset_the_part_and_the_rule(changed, facts):
    with refused(DatasetError, "mine", *facts):
        make(**changed)


def test_a_record_cannot_be_changed():
    with pytest.raises(AttributeError):
        make().classes = 4


@pytest.mark.parametrize(
    ("y_train", "y_test", "classes"),
    [(Y, [0, 6, 0, 0], 7), ([0, 6, 0, 0], Y, 7), (Y * 0, Y * 0, 2)],
)
def test_classes_are_inferred_from_the_largest_label_on_either_side(
    data_path, y_train, y_test, classes
):
    np.savez(data_path / "mine.npz", x_train=X, y_train=y_train, x_test=X, y_test=y_test)
    assert load("mine", data_path).classes == classes

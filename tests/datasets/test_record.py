import numpy as np
import pytest

from bara.datasets import Dataset
from bara.datasets._record import Arrays, infer_classes
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
    ("changed", "message"),
    [
        (
            {"y_train": np.array([0, 3, 1, 1])},
            r"mine: y_train\[1\] is label 3; labels must be in 0 \.\. 2",
        ),
        ({"y_test": np.array([0, 1, -1, 1])}, r"mine: y_test\[2\] is label -1"),
        (
            {"y_train": Y[:3]},
            r"mine: y_train must have one label per sample of x_train, got 3 for 4",
        ),
        ({"y_train": Y.astype(float)}, r"mine: y_train is float64"),
        ({"y_test": Y.reshape(2, 2)}, r"mine: y_test is int64 of shape \(2, 2\)"),
        (
            {"x_train": np.array([[1.0], [np.nan], [0], [0]])},
            r"mine: x_train\[1\] holds a value that is not finite",
        ),
        ({"x_train": X.astype(int)}, r"mine: x_train is of type int64"),
        ({"x_train": X[:0], "y_train": Y[:0]}, r"mine: x_train has shape \(0, 2, 2\)"),
        (
            {"x_test": np.zeros((4, 3, 3), np.uint8)},
            r"mine: x_test holds samples of shape \(3, 3\)",
        ),
        ({"classes": 1}, r"mine: classes must be a whole number of at least 2, got 1"),
    ],
)
def test_an_error_names_the_dataset_the_part_and_the_rule(changed, message):
    with pytest.raises(DatasetError, match=message):
        make(**changed)


def test_a_record_cannot_be_changed():
    with pytest.raises(AttributeError):
        make().classes = 4


def test_classes_are_inferred_from_the_largest_label_on_either_side():
    assert infer_classes(Arrays(X, Y, X, np.array([0, 6, 0, 0]))) == 7
    assert infer_classes(Arrays(X, Y * 0, X, Y * 0)) == 2

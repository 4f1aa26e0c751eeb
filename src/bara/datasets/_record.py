"""What a dataset is: images and labels in two parts, checked once when it is made."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bara.errors import DatasetError

Labels = NDArray[np.int64]

PARTS = ("x_train", "y_train", "x_test", "y_test")
"""The names of a dataset's four arrays, in the order every reader hands them over."""


class Arrays(NamedTuple):
    """The four arrays as a file holds them, before anybody checked them."""

    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels to train on and to be tested on.

    Every loader returns one and every federation takes one. Images are ``uint8`` of shape ``[n, H, W]`` or
    ``[n, H, W, C]``, so that division by 255 (``scale``) brings any of them into [0, 1]. Data of a user's own
    may instead be finite floats of any shape ``[n, ...]``, which are used as they are. Labels may come in any
    integer type and are kept as ``int64``.

    Attributes:
        name: What to call it in messages and reports.
        x_train: The training images.
        y_train: Their labels, each in ``0 .. classes - 1``.
        x_test: The images that the server holds out.
        y_test: Their labels.
        classes: How many labels there are.
        version: Which published content it was verified to be; empty when it was not verified.

    >>> tiny = Dataset("tiny", np.zeros((3, 2, 2), np.uint8), [0, 1, 1], np.zeros((1, 2, 2), np.uint8), [0], 2)
    >>> tiny.y_train.dtype, tiny.shape, tiny.scale
    (dtype('int64'), (2, 2), 255.0)
    """

    name: str
    x_train: NDArray[Any]
    y_train: Labels
    x_test: NDArray[Any]
    y_test: Labels
    classes: int
    version: str = ""

    def __post_init__(self) -> None:
        """Checks every part; the error names the dataset, the part and the rule."""
        if not isinstance(self.classes, int | np.integer) or self.classes < 2:
            raise DatasetError(f"{self.name}: classes must be a whole number of at least 2, got {self.classes!r}")
        for side in ("train", "test"):
            self._check_side(f"x_{side}", f"y_{side}")
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            raise DatasetError(
                f"{self.name}: x_test holds samples of shape {self.x_test.shape[1:]}, "
                f"x_train of shape {self.x_train.shape[1:]}; they must be alike"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample, for the model's first layer."""
        return self.x_train.shape[1:]

    @property
    def scale(self) -> float:
        """What to divide samples by before training: 255 for images, 1 for floats."""
        return 255.0 if self.x_train.dtype == np.uint8 else 1.0

    def _check_side(self, x_part: str, y_part: str) -> None:
        """Normalises and checks the samples and labels of one side."""
        x = _samples(self.name, x_part, getattr(self, x_part))
        y = _labels(self.name, y_part, getattr(self, y_part), self.classes)
        if len(x) != len(y):
            raise DatasetError(
                f"{self.name}: {x_part} holds {len(x)} samples but {y_part} {len(y)} labels; there must be as many"
            )
        object.__setattr__(self, x_part, x)
        object.__setattr__(self, y_part, y)


def infer_classes(arrays: Arrays) -> int:
    """How many classes a file without a class count has: one more than the largest label."""
    labels = [np.asarray(part) for part in (arrays.y_train, arrays.y_test)]
    largest = [int(y.max()) for y in labels if y.size and y.dtype.kind in "iu"]
    return max([1, *largest]) + 1


def _samples(name: str, part: str, given: object) -> NDArray[Any]:
    x = np.asarray(given)
    if x.ndim < 2 or len(x) == 0:
        raise DatasetError(f"{name}: {part} has shape {x.shape}; it must be [n, ...] with at least one sample")
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise DatasetError(f"{name}: {part} is of type {x.dtype}; it must be uint8 (images) or floats")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        at = int(np.argmax(~np.isfinite(x).reshape(len(x), -1).all(axis=1)))
        raise DatasetError(f"{name}: {part}[{at}] holds a value that is not finite")
    return x


def _labels(name: str, part: str, given: object, classes: int) -> Labels:
    y = np.asarray(given)
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise DatasetError(f"{name}: {part} is {y.dtype} of shape {y.shape}; it must be a list of whole numbers")
    outside = (y < 0) | (y >= classes)
    if outside.any():
        at = int(np.argmax(outside))
        raise DatasetError(f"{name}: {part}[{at}] is label {y[at]}; labels must be in 0 .. {classes - 1}")
    return y.astype(np.int64, copy=False)

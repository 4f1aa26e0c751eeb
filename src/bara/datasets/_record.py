"""What a dataset is: samples and targets in two parts, and whose they are; checked once when it is made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bara.errors import DatasetError

Labels = NDArray[np.int64]

Task = Literal["classes", "binary", "regression"]
"""What is learned: one of several labels, one of two (by a single score), or a number."""

PARTS = ("x_train", "y_train", "x_test", "y_test")
"""The names of a dataset's four arrays, in the order every reader hands them over."""


def _nobody() -> Labels:
    return np.empty(0, np.int64)


class Arrays(NamedTuple):
    """The four arrays as a file holds them, before anybody checked them."""

    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]


@dataclass(frozen=True)
class Source:
    """A dataset found on disk, not yet read.

    Attributes:
        kind: The format, in words for a listing.
        path: The file, or the folder that holds the files.
        read: Decodes the four arrays; a damaged file is a ``DatasetError`` that names it.
        files: The file that each part comes from, where each has its own.
    """

    kind: str
    path: Path
    read: Callable[[], Arrays]
    files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels to train on and to be tested on.

    Every loader returns one and every federation takes one. Images are ``uint8`` of shape ``[n, H,
    W]`` or ``[n, H, W, C]``, so that division by 255 (``scale``) brings any of them into [0, 1].
    Data of a user's own may instead be finite floats of any shape ``[n, ...]``, which are used as
    they are. Labels may come in any integer type and are kept as ``int64``; the targets of a
    regression are kept as ``float64``.

    Attributes:
        name: What to call it in messages and reports.
        x_train: The training images.
        y_train: Their labels, each in ``0 .. classes - 1``, or numbers.
        x_test: The images that the server holds out.
        y_test: Their labels.
        classes: How many labels there are; 0 for a regression.
        version: Which published content it was verified to be; empty when it was not verified.
        task: What is learned.
        silos: The names of those who own the data, where that is known.
        owners: For each training sample, the number of the silo that owns it; empty where nobody is
            known to.
        test_owners: The same for the samples that are held out.

    >>> tiny = Dataset("tiny", np.zeros((3, 2, 2), np.uint8), [0, 1, 1], np.zeros((1, 2, 2), np.uint8), [0], 2)
    >>> tiny.y_train.dtype, tiny.shape, tiny.scale
    (dtype('int64'), (2, 2), 255.0)
    """

    name: str
    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]
    classes: int
    version: str = ""
    task: Task = "classes"
    silos: tuple[str, ...] = ()
    owners: Labels = field(default_factory=_nobody)
    test_owners: Labels = field(default_factory=_nobody)

    def __post_init__(self) -> None:
        """Checks every part; the error names the dataset, the part and the rule."""
        least = {"classes": 2, "binary": 2, "regression": 0}[self.task]
        most = {"classes": np.inf, "binary": 2, "regression": 0}[self.task]
        if not isinstance(self.classes, int | np.integer) or not least <= self.classes <= most:
            rule = (
                "a whole number of at least 2"
                if self.task == "classes"
                else f"{least} in a {self.task} task"
            )
            raise DatasetError(f"{self.name}: classes must be {rule}, got {self.classes!r}")
        for side in ("train", "test"):
            self._check_side(f"x_{side}", f"y_{side}")
        for part, y in (("owners", self.y_train), ("test_owners", self.y_test)):
            self._check_owners(part, len(y))
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            raise DatasetError(
                f"{self.name}: x_test holds samples of shape {self.x_test.shape[1:]}, "
                f"x_train of shape {self.x_train.shape[1:]}; they must be alike"
            )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        target: str,
        client: str | None = None,
        features: Sequence[str] = (),
        categorical: Sequence[str] = (),
        task: Task | Literal["auto"] = "auto",
        test_share: float = 0.25,
        name: str = "table",
    ) -> Self:
        """A dataset from a table: a pandas or polars frame, an Arrow table, or a mapping of names to columns.

        Args:
            frame: The table.
            target: The column to learn, or a question about it with two answers: ``"visits > 0"``.
            client: The column that says who owns a row.
            features: The columns to learn from; all the others unless given.
            categorical: Columns of numbers that are names in truth, such as codes.
            task: What is learned; ``auto`` tells by the target.
            test_share: Which part of the rows the server holds out, each silo and each label in its
                share.
            name: What to call it.

        Raises:
            DatasetError: If the table does not fit; names the column and the row.
        """
        from bara.datasets._tables import Columns, dataset_of, table_of  # noqa: PLC0415  (they import this module)

        columns = Columns(target, client, tuple(features), tuple(categorical), task, test_share)
        return cls(**dataset_of(name, table_of(name, frame), columns))

    @property
    def outputs(self) -> int:
        """How many scores a model gives one sample: one a label, or a single one."""
        return self.classes if self.task == "classes" else 1

    @property
    def levels(self) -> Labels:
        """The labels of the training samples; of numbers to learn, which tenth of them each is in."""
        return self.y_train if self.task != "regression" else _levels(self.y_train)

    @property
    def strata(self) -> tuple[Labels, Labels]:
        """For training and held-out samples, a number that those of one label (or level) and one silo share."""
        both = np.concatenate([self.y_train, self.y_test])
        levels = both if self.task != "regression" else _levels(both)
        if self.silos:
            levels = levels * len(self.silos) + np.concatenate([self.owners, self.test_owners])
        _, numbers = np.unique(levels, return_inverse=True)
        return numbers[: len(self.y_train)], numbers[len(self.y_train) :]

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
        given = getattr(self, y_part)
        y = (
            _numbers(self.name, y_part, given)
            if self.task == "regression"
            else self._labels(y_part, given)
        )
        if len(x) != len(y):
            raise DatasetError(
                f"{self.name}: {y_part} must have one label per sample of {x_part}, got {len(y)} for {len(x)}"
            )
        object.__setattr__(self, x_part, x)
        object.__setattr__(self, y_part, y)

    def _labels(self, part: str, given: object) -> Labels:
        y = np.asarray(given)
        if y.ndim != 1 or y.dtype.kind not in "iu":
            raise DatasetError(
                f"{self.name}: {part} is {y.dtype} of shape {y.shape}; it must be a list of whole numbers"
            )
        outside = (y < 0) | (y >= self.classes)
        if outside.any():
            at = int(np.argmax(outside))
            raise DatasetError(
                f"{self.name}: {part}[{at}] is label {y[at]}; labels must be in 0 .. {self.classes - 1}"
            )
        return y.astype(np.int64, copy=False)

    def _check_owners(self, part: str, samples: int) -> None:
        owners = np.asarray(getattr(self, part), np.int64)
        object.__setattr__(self, part, owners)
        if len(owners) != (samples if self.silos else 0):
            raise DatasetError(
                f"{self.name}: {part} has {len(owners)} entries for {samples} samples and {len(self.silos)} silos"
            )
        if len(owners) and not 0 <= owners.min() <= owners.max() < len(self.silos):
            raise DatasetError(
                f"{self.name}: {part} must be numbers of silos, 0 .. {len(self.silos) - 1}"
            )
        lacking = np.setdiff1d(np.arange(len(self.silos)), owners)
        if part == "owners" and len(lacking):
            raise DatasetError(
                f"{self.name}: client {self.silos[lacking[0]]!r} has no rows in training"
            )


def infer_classes(arrays: Arrays) -> int:
    """How many classes a file without a class count has: one more than the largest label."""
    labels = [np.asarray(part) for part in (arrays.y_train, arrays.y_test)]
    largest = [int(y.max()) for y in labels if y.size and y.dtype.kind in "iu"]
    return max([1, *largest]) + 1


def _samples(name: str, part: str, given: object) -> NDArray[Any]:
    x = np.asarray(given)
    if x.ndim < 2 or len(x) == 0:
        raise DatasetError(
            f"{name}: {part} has shape {x.shape}; it must be [n, ...] with at least one sample"
        )
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise DatasetError(
            f"{name}: {part} is of type {x.dtype}; it must be uint8 (images) or floats"
        )
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        at = int(np.argmax(~np.isfinite(x).reshape(len(x), -1).all(axis=1)))
        raise DatasetError(f"{name}: {part}[{at}] holds a value that is not finite")
    return x


def _numbers(name: str, part: str, given: object) -> NDArray[np.float64]:
    y = np.asarray(given)
    if y.ndim != 1 or y.dtype.kind not in "iuf" or not np.isfinite(y).all():
        raise DatasetError(
            f"{name}: {part} is {y.dtype} of shape {y.shape}; it must be a list of finite numbers"
        )
    return y.astype(np.float64, copy=False)


def _levels(numbers: NDArray[np.float64]) -> Labels:
    """Ten levels of a number, each about as often."""
    edges = np.quantile(numbers, np.linspace(0, 1, 11)[1:-1])
    return np.searchsorted(edges, numbers, side="right")

"""The dataset: samples and targets for training and testing, with their owners, checked once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bara.errors import DatasetError

Labels = NDArray[np.int64]

Task = Literal["classes", "binary", "regression"]
"""The kind of target: one of several labels, one of two (by a single score), or a number."""

PARTS = ("x_train", "y_train", "x_test", "y_test")
"""The names of a dataset's four arrays, in the order in which every reader returns them."""


def _nobody() -> Labels:
    return np.empty(0, np.int64)


class Arrays(NamedTuple):
    """The four arrays of a dataset as a file holds them, not yet checked."""

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
        read: A function that decodes the four arrays; for a damaged file it raises a
            ``DatasetError`` that names the file.
        files: The file of each array, where each has its own.
    """

    kind: str
    path: Path
    read: Callable[[], Arrays]
    files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset: samples and labels to train on and to test on.

    Every loader returns a dataset and every federation takes one. Images are ``uint8`` of shape
    ``[n, H, W]`` or ``[n, H, W, C]``, so that division by 255 (``scale``) brings any of them into
    [0, 1]. A user's own samples may instead be finite floats of any shape ``[n, ...]``, which are
    used as they are. Labels may come in any integer type and are stored as ``int64``; the targets
    of a regression are stored as ``float64``.

    Attributes:
        name: What the dataset is called in messages and reports.
        x_train: The training samples.
        y_train: Their labels, each in ``0 .. classes - 1``, or their numbers.
        x_test: The samples that the server holds out.
        y_test: Their labels or numbers.
        classes: How many labels there are; 0 for a regression.
        version: The published version that the dataset was verified to be; empty if it was not.
        task: What is learned.
        silos: The names of the data's owners, where they are known.
        owners: For each training sample, the number of the silo that owns it; empty without silos.
        test_owners: The same for the samples that are held out.

    >>> train, test = np.zeros((3, 2, 2), np.uint8), np.zeros((1, 2, 2), np.uint8)
    >>> tiny = Dataset("tiny", train, [0, 1, 1], test, [0], 2)
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
        """Check every field; the error names the dataset, the field and the rule."""
        self._check_classes()
        self._check_side("x_train", "y_train")
        self._check_side("x_test", "y_test")
        self._check_owners("owners", len(self.y_train))
        self._check_owners("test_owners", len(self.y_test))
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
        """Make a dataset of a table.

        Args:
            frame: A pandas or polars frame, an Arrow table, or a mapping of names to columns.
            target: The column to learn, or a question about a column: ``"visits > 0"``.
            client: The column that names the owner of a row.
            features: The columns to learn from; all the others if not given.
            categorical: Columns of numbers that are in truth names, such as codes.
            task: What is learned; ``auto`` decides by the target.
            test_share: The share of the rows that the server holds out, in equal measure from each
                silo and each label.
            name: What to call the dataset.

        Raises:
            DatasetError: If the table does not fit; the message names the column and the row.
        """
        # That module imports this one.
        from bara.datasets._tables import Columns, arrow_table, dataset_of  # noqa: PLC0415

        columns = Columns(target, client, tuple(features), tuple(categorical), task, test_share)
        return cls(**dataset_of(name, arrow_table(name, frame), columns))

    @property
    def outputs(self) -> int:
        """The number of scores that a model gives a sample: one per label, or a single one."""
        return self.classes if self.task == "classes" else 1

    @property
    def levels(self) -> Labels:
        """The labels of the training samples; in a regression, the tenth that each number is in."""
        return _levels(self.y_train) if self.task == "regression" else self.y_train

    @property
    def strata(self) -> tuple[Labels, Labels]:
        """The strata of the training and of the held-out samples.

        Samples of one label (or level, in a regression) and one silo have the same number.
        """
        levels = np.concatenate([self.y_train, self.y_test])
        if self.task == "regression":
            levels = _levels(levels)
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
        """The number to divide samples by before training: 255 for images, 1 for floats."""
        return 255.0 if self.x_train.dtype == np.uint8 else 1.0

    def _check_classes(self) -> None:
        whole = isinstance(self.classes, int | np.integer)
        if self.task == "classes":
            right = whole and self.classes >= 2
            rule = "a whole number of at least 2"
        else:
            needed = {"binary": 2, "regression": 0}[self.task]
            right = whole and self.classes == needed
            rule = f"{needed} in a {self.task} task"
        if not right:
            raise DatasetError(f"{self.name}: classes must be {rule}, got {self.classes!r}")

    def _check_side(self, x_name: str, y_name: str) -> None:
        """Check the samples and labels of one side, and store them in their proper types."""
        x = _samples(self.name, x_name, getattr(self, x_name))
        y: NDArray[Any]
        if self.task == "regression":
            y = _numbers(self.name, y_name, getattr(self, y_name))
        else:
            y = self._labels(y_name, getattr(self, y_name))
        if len(x) != len(y):
            raise DatasetError(
                f"{self.name}: {y_name} must have one label per sample of {x_name}, "
                f"got {len(y)} for {len(x)}"
            )
        object.__setattr__(self, x_name, x)
        object.__setattr__(self, y_name, y)

    def _labels(self, attribute: str, given: object) -> Labels:
        y = np.asarray(given)
        if y.ndim != 1 or y.dtype.kind not in "iu":
            raise DatasetError(
                f"{self.name}: {attribute} is {y.dtype} of shape {y.shape}; "
                "it must be a list of whole numbers"
            )
        outside = (y < 0) | (y >= self.classes)
        if outside.any():
            at = int(np.argmax(outside))
            raise DatasetError(
                f"{self.name}: {attribute}[{at}] is label {y[at]}; "
                f"labels must be in 0 .. {self.classes - 1}"
            )
        return y.astype(np.int64, copy=False)

    def _check_owners(self, attribute: str, samples: int) -> None:
        owners = np.asarray(getattr(self, attribute), np.int64)
        object.__setattr__(self, attribute, owners)
        needed = samples if self.silos else 0
        if len(owners) != needed:
            raise DatasetError(
                f"{self.name}: {attribute} has {len(owners)} entries for {samples} samples "
                f"and {len(self.silos)} silos"
            )
        if len(owners) and not 0 <= owners.min() <= owners.max() < len(self.silos):
            raise DatasetError(
                f"{self.name}: {attribute} must be numbers of silos, 0 .. {len(self.silos) - 1}"
            )
        lacking = np.setdiff1d(np.arange(len(self.silos)), owners)
        if attribute == "owners" and len(lacking):
            raise DatasetError(
                f"{self.name}: client {self.silos[lacking[0]]!r} has no rows in training"
            )


def infer_classes(arrays: Arrays) -> int:
    """Return how many classes arrays have: one more than the largest label, and at least 2."""
    largest = 1
    for given in (arrays.y_train, arrays.y_test):
        labels = np.asarray(given)
        if labels.size and labels.dtype.kind in "iu":
            largest = max(largest, int(labels.max()))
    return largest + 1


def _samples(name: str, attribute: str, given: object) -> NDArray[Any]:
    x = np.asarray(given)
    if x.ndim < 2 or len(x) == 0:
        raise DatasetError(
            f"{name}: {attribute} has shape {x.shape}; it must be [n, ...] with at least one sample"
        )
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise DatasetError(
            f"{name}: {attribute} is of type {x.dtype}; it must be uint8 (images) or floats"
        )
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        at = int(np.argmax(~np.isfinite(x).reshape(len(x), -1).all(axis=1)))
        raise DatasetError(f"{name}: {attribute}[{at}] holds a value that is not finite")
    return x


def _numbers(name: str, attribute: str, given: object) -> NDArray[np.float64]:
    y = np.asarray(given)
    if y.ndim != 1 or y.dtype.kind not in "iuf" or not np.isfinite(y).all():
        raise DatasetError(
            f"{name}: {attribute} is {y.dtype} of shape {y.shape}; "
            "it must be a list of finite numbers"
        )
    return y.astype(np.float64, copy=False)


def _levels(numbers: NDArray[np.float64]) -> Labels:
    """Return which of ten levels, all about equally frequent, each number is in."""
    edges = np.quantile(numbers, np.linspace(0, 1, 11)[1:-1])
    return np.searchsorted(edges, numbers, side="right")

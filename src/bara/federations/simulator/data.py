"""What is trained on and evaluated on: checked once, stored once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from bara.errors import DatasetError

Array = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Data:
    """Samples to train on, samples the server keeps, and which of those decide and which are reported.

    Attributes:
        x_train: samples first; pictures as (n, height, width) or (n, height, width, channels), tables as
            (n, features). Whole numbers of type uint8 are divided by 255 when a batch is made (they are stored as
            they are, a quarter of the memory); floating-point numbers are taken as they are.
        y_train: a whole number from 0 to classes - 1 for each.
        x_held: the server's held-out samples.
        y_held: their labels.
        classes: how many classes there are.
        held: the named parts of the held-out set by index, `validation` and `test` say; `test`, all of it, when
            nothing is given.
    """

    x_train: Array
    y_train: Array
    x_held: Array
    y_held: Array
    classes: int
    held: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse data that do not fit together."""
        for name, x, y in (("train", self.x_train, self.y_train), ("held-out", self.x_held, self.y_held)):
            _check_samples(name, x)
            _check_labels(name, x, y, self.classes)
        if self.x_train.shape[1:] != self.x_held.shape[1:]:
            raise DatasetError(f"train samples are {self.x_train.shape[1:]}, held-out ones {self.x_held.shape[1:]}")
        parts = dict(self.held) or {"test": np.arange(len(self.y_held))}
        checked = {name: check_part(f"held-out part {name!r}", part, len(self.y_held)) for name, part in parts.items()}
        object.__setattr__(self, "held", checked)

    @property
    def shape(self) -> tuple[int, ...]:
        """One sample's shape as torch sees it: (channels, height, width), or (features,)."""
        shape = self.x_train.shape[1:]
        if len(shape) == 1:
            return (int(shape[0]),)
        height, width, channels = (*shape, 1) if len(shape) == 2 else shape
        return (int(channels), int(height), int(width))


def check_parts(parts: Sequence[Array], samples: int) -> list[Array]:
    """Every client's indices as int64, or a `DatasetError` that names the client."""
    if not parts:
        raise DatasetError("there are no clients; at least one part is required")
    return [check_part(f"client {client}", part, samples) for client, part in enumerate(parts)]


def check_part(whose: str, part: Array, samples: int) -> Array:
    """These indices as int64, or a `DatasetError` that says whose they are."""
    indices = np.asarray(part)
    if indices.ndim != 1 or indices.size == 0:
        raise DatasetError(f"{whose} has no samples (indices of shape {indices.shape}); at least one is required")
    if indices.dtype.kind not in "iu":
        raise DatasetError(f"{whose} has indices of type {indices.dtype}; whole numbers are required")
    if indices.min() < 0 or indices.max() >= samples:
        raise DatasetError(f"{whose} has indices from {indices.min()} to {indices.max()}; there are {samples} samples")
    return indices.astype(np.int64)


def _check_samples(name: str, x: Array) -> None:
    if x.ndim not in (2, 3, 4) or x.shape[0] == 0:
        raise DatasetError(f"{name} samples have shape {x.shape}; (n, features) or (n, height, width[, channels])")
    if x.dtype != np.uint8 and x.dtype.kind != "f":
        raise DatasetError(f"{name} samples are of type {x.dtype}; uint8 or floating point is required")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise DatasetError(f"{name} samples hold numbers that are not finite")


def _check_labels(name: str, x: Array, y: Array, classes: int) -> None:
    if y.shape != (len(x),):
        raise DatasetError(f"{name} labels have shape {y.shape}; {len(x)} samples need ({len(x)},)")
    if y.dtype.kind not in "iu":
        raise DatasetError(f"{name} labels are of type {y.dtype}; whole numbers are required")
    if y.min() < 0 or y.max() >= classes:
        raise DatasetError(f"{name} labels go from {y.min()} to {y.max()}; {classes} classes are 0 to {classes - 1}")

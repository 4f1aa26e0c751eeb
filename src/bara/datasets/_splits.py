"""Stratified selections: fewer training samples, or the held-out samples in two halves."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Dataset, Labels
from bara.errors import ConfigError, DatasetError, UnfitDatasetError, UnknownNameError
from bara.randomness import stream
from bara.text import nearest


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The server's own data: validation samples for decisions, test samples only for reports.

    Attributes:
        x_validation: The samples for decisions.
        y_validation: Their labels.
        x_test: The samples for reports.
        y_test: Their labels.
        same: True if both are one and the same set, as in the paper.
    """

    x_validation: NDArray[Any]
    y_validation: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]
    same: bool


def subset(dataset: Dataset, train_samples: int | None, seed: int = 0) -> Dataset:
    """Draw fewer training samples at random, with each class (and silo) in its share.

    Samples stay in their order. With one seed, a larger subset contains every smaller one. The
    test set stays whole.

    Args:
        dataset: The dataset to draw from.
        train_samples: How many training samples to draw; None for all.
        seed: The seed of the draw.

    Raises:
        UnfitDatasetError: If the dataset has fewer training samples.
    """
    if train_samples is None:
        return dataset
    available = len(dataset.y_train)
    whole = isinstance(train_samples, int | np.integer) and not isinstance(train_samples, bool)
    if not whole or train_samples < 1:
        raise ConfigError(
            f"train_samples must be a whole number of at least 1, got {train_samples!r}"
        )
    if train_samples > available:
        raise UnfitDatasetError(
            f"{dataset.name}: train_samples must be at most {available}, got {train_samples}"
        )
    drawn = np.sort(_order(dataset.strata[0], seed, "subset")[:train_samples])
    owners = dataset.owners[drawn] if dataset.silos else dataset.owners
    return replace(
        dataset, x_train=dataset.x_train[drawn], y_train=dataset.y_train[drawn], owners=owners
    )


def held_out(dataset: Dataset, mode: str = "halves", seed: int = 0) -> HeldOut:
    """Split the samples that a dataset holds out into validation samples and test samples.

    Args:
        dataset: The dataset.
        mode: ``"halves"``, two disjoint halves with each class in its share; the test half is the
            larger by one where they cannot be equal. ``"same"``, the whole set as both, as the
            paper does: then decisions have seen the samples of the report.
        seed: The seed of the split.

    Raises:
        UnknownNameError: If the mode is neither.
        DatasetError: If there is only one sample to halve.
    """
    x = dataset.x_test
    y = dataset.y_test
    if mode == "same":
        return HeldOut(x, y, x, y, same=True)
    if mode != "halves":
        raise UnknownNameError(
            f"held-out data cannot be split by {mode!r}; {nearest(mode, ['halves', 'same'])}"
        )
    if len(y) < 2:
        raise DatasetError(
            f"{dataset.name}: x_test must hold at least 2 samples to make two halves, got {len(y)}"
        )
    order = _order(dataset.strata[1], seed, "held out")
    validation = np.sort(order[: len(y) // 2])
    test = np.sort(order[len(y) // 2 :])
    return HeldOut(x[validation], y[validation], x[test], y[test], same=False)


def stratified_order(labels: Labels, shuffled: NDArray[np.int64]) -> NDArray[np.int64]:
    """Reorder a permutation so that each class is spread evenly over it.

    The k-th of a class's m samples is placed at (k + 1/2) / m of the way. The first n samples then
    hold each class in its share, to within about one sample per class, for every n.

    Args:
        labels: The label of each sample.
        shuffled: A random order of the samples; it orders each class and breaks ties.

    >>> stratified_order(np.array([0, 0, 0, 0, 1, 1]), np.arange(6)).tolist()
    [0, 4, 1, 2, 5, 3]
    """
    mine = labels[shuffled]
    by_class = np.argsort(mine, kind="stable")
    sizes = np.bincount(mine)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(mine))
    rank[by_class] = np.arange(len(mine)) - starts[mine[by_class]]
    return shuffled[np.argsort((rank + 0.5) / sizes[mine], kind="stable")]


def _order(labels: Labels, seed: int, purpose: str) -> NDArray[np.int64]:
    return stratified_order(labels, stream(seed, purpose).permutation(len(labels)))

"""The division of a dataset among clients: by its silos, by a scheme, or by a user's function."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bara.datasets._partitions import Parts, parse
from bara.datasets._record import Dataset
from bara.errors import BaraError, DatasetError, UnfitDatasetError
from bara.plugins import import_path


class Division(NamedTuple):
    """The sample indices of each client, and the clients' names; none if clients have numbers."""

    parts: Parts
    names: tuple[str, ...] = ()


def divide(dataset: Dataset, scheme: str, clients: int, seed: int = 0) -> Division:
    """Divide a dataset's training samples among clients.

    Args:
        dataset: The dataset to divide.
        scheme: ``natural`` and ``natural(k)`` for a dataset with silos, one of ``shards(k)``,
            ``iid``, ``dirichlet(a)``, ``quantity(s)``, or the import path of a function of
            (dataset, clients, seed) that returns each client's sample indices, as a list, or by the
            client's name.
        clients: How many clients there are; ignored by ``natural``, which counts silos.
        seed: The seed of every random draw.

    Raises:
        DatasetError: If the dataset has no silos, or the function returns no partition.
    """
    asked = parse(scheme)
    if ":" in asked.name:
        return _by_function(dataset, scheme, clients, seed)
    if asked.name != "natural":
        return Division(asked.split(_labels(dataset, scheme), clients, seed))
    if not dataset.silos:
        raise UnfitDatasetError(
            f"partition {scheme!r}: {dataset.name} does not say who owns a row; "
            "set data.client to the column that does"
        )
    at_most = None if asked.number is None else int(asked.number)
    return _by_silo(dataset, at_most)


def _by_silo(dataset: Dataset, at_most: int | None) -> Division:
    samples = []
    names = []
    for group in _merged(np.bincount(dataset.owners), at_most):
        samples.append(np.flatnonzero(np.isin(dataset.owners, group)))
        names.append("+".join(dataset.silos[silo] for silo in group))
    return Division(samples, tuple(names))


def _merged(sizes: NDArray[np.int64], at_most: int | None) -> list[list[int]]:
    """Return silos in groups: each alone, or the smallest merged until `at_most` groups remain."""
    groups = [([silo], int(size)) for silo, size in enumerate(sizes)]
    while at_most is not None and len(groups) > at_most:
        groups.sort(key=lambda group: (group[1], group[0]))
        (first, first_size), (second, second_size), *others = groups
        groups = [(sorted(first + second), first_size + second_size), *others]
    return sorted(group for group, _ in groups)


def _labels(dataset: Dataset, scheme: str) -> Any:
    """Return the labels that a scheme sorts by; a regression has levels instead."""
    if dataset.task != "regression":
        return dataset.y_train
    if scheme.startswith(("shards", "dirichlet")):
        raise UnfitDatasetError(
            f"partition {scheme!r} needs labels, but the target of {dataset.name} is a number"
        )
    return dataset.strata[0]


def _by_function(dataset: Dataset, path: str, clients: int, seed: int) -> Division:
    function = import_path(path)  # or the function itself, if Python handed it over
    names: tuple[str, ...] = ()
    try:
        made = function(dataset, clients, seed)
        if isinstance(made, Mapping):
            names = tuple(map(str, made))
            made = made.values()
        samples = [np.asarray(indices, np.int64) for indices in made]
    except BaraError:
        raise
    except Exception as error:
        raise DatasetError(
            f"partition {path!r} failed with {type(error).__name__}: {error}"
        ) from error
    _check(path, samples, names, len(dataset.y_train))
    return Division(samples, names)


def _check(path: str, samples: Parts, names: tuple[str, ...], count: int) -> None:
    """Refuse indices outside of 0 .. count - 1, clients without samples and repeated samples."""
    for client, indices in enumerate(samples):
        who = repr(names[client]) if names else str(client)
        if indices.ndim != 1 or not len(indices):
            raise DatasetError(f"partition {path!r} gives client {who} no list of samples")
        if not 0 <= indices.min() <= indices.max() < count:
            raise DatasetError(
                f"partition {path!r} gives client {who} samples that are not in 0 .. {count - 1}"
            )
    given = np.concatenate(samples) if samples else np.empty(0)
    if not len(given) or len(np.unique(given)) != len(given):
        raise DatasetError(
            f"partition {path!r} must give at least one client samples, and each sample once"
        )

"""A dataset divided among clients: as its silos own it, by a scheme, or by a function of a user's own."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bara.datasets._partitions import Parts, parse
from bara.datasets._record import Dataset
from bara.errors import BaraError, DatasetError, UnfitDatasetError
from bara.plugins import import_path


class Division(NamedTuple):
    """Each client's training samples, and its name; no names where clients are only numbered."""

    parts: Parts
    names: tuple[str, ...] = ()


def divide(dataset: Dataset, scheme: str, clients: int, seed: int = 0) -> Division:
    """Divides a dataset's training samples among clients.

    Args:
        dataset: What to divide.
        scheme: ``natural`` and ``natural(k)`` for a dataset with silos, one of ``shards(k)``,
            ``iid``, ``dirichlet(a)``, ``quantity(s)``, or the import path of a function of
            (dataset, clients, seed) that returns each client's sample indices, as a list, or by the
            client's name.
        clients: How many clients; of silos there are as many as there are.
        seed: Decides what is drawn.

    Raises:
        DatasetError: If the dataset has no silos, or the function returns no partition.
    """
    asked = parse(scheme)
    if ":" in asked.name:
        return _own(dataset, scheme, clients, seed)
    if asked.name != "natural":
        return Division(asked.split(_labels(dataset, scheme), clients, seed))
    if not dataset.silos:
        raise UnfitDatasetError(
            f"partition {scheme!r}: {dataset.name} does not say who owns a row; set data.client to the column that does"
        )
    at_most = None if asked.number is None else int(asked.number)
    groups = _merged(np.bincount(dataset.owners), at_most)
    names = tuple("+".join(dataset.silos[silo] for silo in group) for group in groups)
    return Division([np.flatnonzero(np.isin(dataset.owners, group)) for group in groups], names)


def _merged(sizes: NDArray[np.int64], at_most: int | None) -> list[list[int]]:
    """Silos in groups: each alone, or the two smallest groups made one until at most so many are left."""
    groups = [([silo], int(size)) for silo, size in enumerate(sizes)]
    while at_most is not None and len(groups) > at_most:
        groups.sort(key=lambda group: (group[1], group[0]))
        (first, one), (second, two), *others = groups
        groups = [(sorted(first + second), one + two), *others]
    return sorted(group for group, _ in groups)


def _labels(dataset: Dataset, scheme: str) -> Any:
    """What a scheme sorts by; a number to learn is no label."""
    if dataset.task == "regression" and scheme.startswith(("shards", "dirichlet")):
        raise UnfitDatasetError(
            f"partition {scheme!r} needs labels, but the target of {dataset.name} is a number"
        )
    return dataset.strata[0] if dataset.task == "regression" else dataset.y_train


def _own(dataset: Dataset, path: str, clients: int, seed: int) -> Division:
    function = import_path(path)  # or what Python handed over
    try:
        made = function(dataset, clients, seed)
        names = tuple(map(str, made)) if isinstance(made, Mapping) else ()
        parts = [np.asarray(part, np.int64) for part in (made.values() if names else made)]
    except BaraError:
        raise
    except Exception as error:
        raise DatasetError(
            f"partition {path!r} failed with {type(error).__name__}: {error}"
        ) from error
    _check(path, parts, names, len(dataset.y_train))
    return Division(parts, names)


def _check(path: str, parts: Parts, names: tuple[str, ...], samples: int) -> None:
    for client, part in enumerate(parts):
        who = repr(names[client]) if names else str(client)
        if part.ndim != 1 or not len(part):
            raise DatasetError(f"partition {path!r} gives client {who} no list of samples")
        if not 0 <= part.min() <= part.max() < samples:
            raise DatasetError(
                f"partition {path!r} gives client {who} samples that are not in 0 .. {samples - 1}"
            )
    given = np.concatenate(parts) if parts else np.empty(0)
    if not len(given) or len(np.unique(given)) != len(given):
        raise DatasetError(
            f"partition {path!r} must give at least one client samples, and each sample once"
        )

"""Reports on what is there: ``verify`` checks one dataset, ``available`` lists them all."""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bara.datasets._catalogue import CATALOGUE, Check, Entry, altered, compare_arrays, problems
from bara.datasets._formats import find
from bara.datasets._loading import is_own, load_own, locate, locate_table
from bara.datasets._places import places
from bara.datasets._record import Arrays, Dataset, Source, infer_classes
from bara.datasets._table_files import SiloTable, compare_table, find_tables, is_table
from bara.datasets._tables import Columns, load_table
from bara.errors import DatasetError, MissingExtraError, UnfitDatasetError

PerLabel = tuple[int, ...]
"""How many samples each label has."""


@dataclass(frozen=True)
class Report:
    """The findings of `verify`.

    Attributes:
        name: The dataset.
        format: The form it was found in.
        path: Where it was found.
        version: The published version that it equals; empty if there is none.
        checks: The checksum of each array or file beside the published one.
        train_counts: Training samples of each label.
        test_counts: Held-out samples of each label.
        problems: One sentence for each thing that is wrong; empty when all is well.
    """

    name: str
    format: str
    path: Path
    version: str = ""
    checks: tuple[Check, ...] = ()
    train_counts: PerLabel = ()
    test_counts: PerLabel = ()
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Return the report in plain types, for ``--json``."""
        checks = [{**asdict(check), "right": check.right} for check in self.checks]
        return {**asdict(self), "path": str(self.path), "checks": checks, "ok": self.ok}


@dataclass(frozen=True)
class Availability:
    """A dataset in the listing: where it was found, or how to get it.

    Attributes:
        name: The dataset.
        status: ``"embedded"``, ``"found"`` (not verified) or ``"missing"``.
        format: The form it was found in; empty when missing.
        path: Where it was found; None when missing.
        command: The command that gets it, when missing.
    """

    name: str
    status: str
    format: str = ""
    path: Path | None = None
    command: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the line in plain types, for ``--json``."""
        return {**asdict(self), "path": str(self.path) if self.path else None}


def verify(name: str, path: str | os.PathLike[str] | None = None) -> Report:
    """Read a dataset and compare it with the published one; report damage instead of raising.

    Args:
        name: The dataset.
        path: A folder to look in first, or an ``.npz`` file itself.

    Raises:
        DatasetError: If the dataset is not there at all.
        UnknownNameError: If nothing is known by that name.
    """
    if name not in CATALOGUE and is_own(name):
        return _verify_own(name)
    if is_table(name):
        raise UnfitDatasetError(
            f"{name} is your own table and has no published checksum; "
            "look at it with: bara data show"
        )
    if name in CATALOGUE and CATALOGUE[name].table:
        return _verify_table(name, path)
    source = locate(name, path)
    try:
        arrays = source.read()
    except DatasetError as error:
        return Report(name, source.kind, source.path, problems=(str(error),))
    version, checks = compare_arrays(name, source, arrays)
    train, test, malformed = _counts(name, arrays)
    wrong = (*problems(name, arrays, checks), *malformed)
    if wrong:
        version = ""
    return Report(name, source.kind, source.path, version, checks, train, test, wrong)


def available(path: str | os.PathLike[str] | None = None) -> tuple[Availability, ...]:
    """List every dataset of the catalogue and every other ``.npz`` in the places; read no data.

    Args:
        path: A folder to look in first.
    """
    known = (_availability(entry, path) for entry in CATALOGUE.values())
    return (*known, *_others(path))


def _verify_own(name: str) -> Report:
    try:
        data = load_own(name)
    except DatasetError as error:
        return Report(name, "function", Path(name), problems=(str(error),))
    train, test = _per_label(data)
    return Report(name, "function", Path(name), train_counts=train, test_counts=test)


def _verify_table(name: str, path: str | os.PathLike[str] | None) -> Report:
    found = locate_table(name, path)
    version, checks = compare_table(found)
    wrong = tuple(altered(name, check) for check in checks if not check.right)
    if wrong:
        return Report(name, found.kind, found.path, checks=checks, problems=wrong)
    train, test = _per_label(load_table(name, path, found, Columns(), verify=False))
    return Report(name, found.kind, found.path, version, checks, train, test)


def _counts(name: str, arrays: Arrays) -> tuple[PerLabel, PerLabel, tuple[str, ...]]:
    """Return samples per label of both sides, or why the arrays cannot be a dataset."""
    classes = CATALOGUE[name].classes if name in CATALOGUE else infer_classes(arrays)
    try:
        train, test = _per_label(Dataset(name, *arrays, classes=classes))
    except DatasetError as error:
        return (), (), (str(error),)
    return train, test, ()


def _per_label(data: Dataset) -> tuple[PerLabel, PerLabel]:
    train = np.bincount(data.y_train, minlength=data.classes)
    test = np.bincount(data.y_test, minlength=data.classes)
    return tuple(train.tolist()), tuple(test.tolist())


def _availability(entry: Entry, path: str | os.PathLike[str] | None) -> Availability:
    if entry.embedded:
        return _embedded(entry)
    finder = find_tables if entry.table else find
    for place in places(path):
        for source in finder(place.folder, entry.name):
            return Availability(entry.name, "found", source.kind, source.path)
    return Availability(entry.name, "missing", command=f"bara data fetch {entry.name}")


def _embedded(entry: Entry) -> Availability:
    source: Source | SiloTable
    try:
        source = locate_table(entry.name) if entry.table else locate(entry.name)
    except MissingExtraError as error:
        return Availability(entry.name, "missing", command=str(error).partition(": ")[2])
    return Availability(entry.name, "embedded", source.kind, source.path)


def _others(path: str | os.PathLike[str] | None) -> Iterator[Availability]:
    """Yield the ``.npz`` files that are no dataset of the catalogue, the first of each name."""
    seen = set(CATALOGUE)
    for place in places(path):
        for file in sorted(place.folder.glob("*.npz")):
            if file.stem not in seen:
                seen.add(file.stem)
                yield Availability(file.stem, "found", "npz", file)

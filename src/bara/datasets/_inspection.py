"""Says what is there: ``verify`` one dataset part by part, list all that are ``available``."""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bara.datasets import _formats as formats
from bara.datasets._catalogue import CATALOGUE, Entry
from bara.datasets._checksums import Check, altered, compare, problems
from bara.datasets._formats.table import is_table
from bara.datasets._loading import is_own, load_own, locate, locate_table, places
from bara.datasets._record import Arrays, Dataset, Source, infer_classes
from bara.datasets._silo_tables import SiloTable, published
from bara.datasets._silo_tables import find as find_tables
from bara.datasets._table_loading import load_table
from bara.datasets._tables import Columns
from bara.errors import DatasetError, MissingExtraError, UnfitDatasetError


@dataclass(frozen=True)
class Report:
    """What was found when a dataset was verified.

    Attributes:
        name: The dataset.
        format: The form it was found in.
        path: Where.
        version: Which published content it is; empty when it is none, or nobody published it.
        checks: Each part's checksum beside the one it should have.
        train_counts: Training samples of each label.
        test_counts: Held-out samples of each label.
        problems: What is wrong, one sentence each; empty when all is well.
    """

    name: str
    format: str
    path: Path
    version: str = ""
    checks: tuple[Check, ...] = ()
    train_counts: tuple[int, ...] = ()
    test_counts: tuple[int, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """The report in plain types, for ``--json``."""
        checks = [{**asdict(check), "right": check.right} for check in self.checks]
        return {**asdict(self), "path": str(self.path), "checks": checks, "ok": self.ok}


@dataclass(frozen=True)
class Availability:
    """One line of the listing.

    Attributes:
        name: The dataset.
        status: ``"embedded"``, ``"found"`` (not verified) or ``"missing"``.
        format: The form it was found in; empty when missing.
        path: Where; None when missing.
        command: What to run to get it, when missing.
    """

    name: str
    status: str
    format: str = ""
    path: Path | None = None
    command: str = ""

    def as_json(self) -> dict[str, Any]:
        """The line in plain types, for ``--json``."""
        return {**asdict(self), "path": str(self.path) if self.path else None}


def verify(name: str, path: str | os.PathLike[str] | None = None) -> Report:
    """Reads a dataset and compares it with what was published; a damaged one is reported, not raised.

    Raises:
        DatasetError: If it is not there at all.
        UnknownNameError: If nothing is known by that name.
    """
    if name not in CATALOGUE and is_own(name):
        return _verify_own(name)
    if is_table(name):
        raise UnfitDatasetError(
            f"{name} is your own table and has no published checksum; look at it with: bara data show"
        )
    if name in CATALOGUE and CATALOGUE[name].table:
        return _verify_table(name, path)
    source = locate(name, path)
    try:
        arrays = source.read()
    except DatasetError as error:
        return Report(name, source.kind, source.path, problems=(str(error),))
    version, checks = compare(name, source, arrays)
    train, test, malformed = _counts(name, arrays)
    wrong = (*problems(name, arrays, checks), *malformed)
    return Report(
        name, source.kind, source.path, "" if wrong else version, checks, train, test, wrong
    )


def available(path: str | os.PathLike[str] | None = None) -> tuple[Availability, ...]:
    """Every dataset of the catalogue and any other ``.npz`` in the places: is it there, and where; reads no data."""
    known = (_availability(entry, path) for entry in CATALOGUE.values())
    return (*known, *_others(path))


def _verify_own(name: str) -> Report:
    try:
        data = load_own(name)
    except DatasetError as error:
        return Report(name, "function", Path(name), problems=(str(error),))
    return Report(name, "function", Path(name), "", (), *_per_label(data))


def _verify_table(name: str, path: str | os.PathLike[str] | None) -> Report:
    found = locate_table(name, path)
    version, digests = published(found)
    checks = tuple(Check("table", file, *both) for file, both in digests.items())
    wrong = tuple(altered(name, check) for check in checks if not check.right)
    data = None if wrong else load_table(name, path, found, Columns(), verify=False)
    return Report(
        name,
        found.kind,
        found.path,
        "" if wrong else version,
        checks,
        *(_per_label(data) if data else ((), ())),
        wrong,
    )


def _counts(name: str, arrays: Arrays) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
    """Samples a label on both sides, or what keeps the arrays from being a dataset."""
    classes = CATALOGUE[name].classes if name in CATALOGUE else infer_classes(arrays)
    try:
        return (*_per_label(Dataset(name, *arrays, classes=classes)), ())
    except DatasetError as error:
        return (), (), (str(error),)


def _per_label(data: Dataset) -> tuple[tuple[int, ...], tuple[int, ...]]:
    train, test = (
        np.bincount(y, minlength=data.classes).tolist() for y in (data.y_train, data.y_test)
    )
    return tuple(train), tuple(test)


def _availability(entry: Entry, path: str | os.PathLike[str] | None) -> Availability:
    finder = find_tables if entry.table else formats.find
    try:
        source: Source | SiloTable | None = None
        if entry.embedded:
            source = locate_table(entry.name) if entry.table else locate(entry.name)
    except MissingExtraError as error:
        return Availability(entry.name, "missing", command=str(error).partition(": ")[2])
    if source is None:
        source = next(
            (found for place in places(path) for found in finder(place.folder, entry.name)), None
        )
    if source is None:
        return Availability(entry.name, "missing", command=f"bara data fetch {entry.name}")
    return Availability(
        entry.name, "embedded" if entry.embedded else "found", source.kind, source.path
    )


def _others(path: str | os.PathLike[str] | None) -> Iterator[Availability]:
    seen = set(CATALOGUE)
    for file in (file for place in places(path) for file in sorted(place.folder.glob("*.npz"))):
        if file.stem not in seen:
            seen.add(file.stem)
            yield Availability(file.stem, "found", "npz", file)

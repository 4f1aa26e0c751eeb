"""A table by its file, or one of the catalogue by its name."""

import hashlib
import os
from pathlib import Path
from typing import Any

from bara.datasets._catalogue import CATALOGUE
from bara.datasets._checksums import Check, altered
from bara.datasets._formats.table import read_table
from bara.datasets._record import Dataset
from bara.datasets._silo_tables import SiloTable, published
from bara.datasets._tables import Columns, dataset_of
from bara.errors import DatasetError


def whole_path(name: str, path: str | os.PathLike[str] | None = None) -> Path:
    """Where the table of that name is: in the folder that a path names, or seen from here."""
    folder = Path(path).expanduser() if path else Path()
    return (folder / Path(name).expanduser()).absolute()


def digest(name: str, path: str | os.PathLike[str] | None = None) -> str:
    """The SHA-256 of the table's file."""
    place = whole_path(name, path)
    try:
        with place.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise DatasetError(f"there is no table {str(place)!r}") from None
    except OSError as error:
        raise DatasetError(f"{place} cannot be read: {error.strerror}") from error


def load_table(
    name: str,
    path: str | os.PathLike[str] | None,
    found: SiloTable | None,
    columns: Columns,
    *,
    verify: bool,
) -> Dataset:
    """The dataset that a table makes.

    Args:
        name: The table's file, or its name in the catalogue.
        path: The folder that holds the file.
        found: Where the one of the catalogue is.
        columns: Which columns are what; of the catalogue's tables that is known, and may be
            changed.
        verify: Whether one of the catalogue must be as published.
    """
    if found is None:
        return Dataset(**dataset_of(Path(name).name, read_table(whole_path(name, path)), columns))
    version, digests = published(found)
    for file, both in digests.items():
        check = Check("table", file, *both)
        if verify and not check.right:
            raise DatasetError(altered(name, check))
    known: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in CATALOGUE[name].table.items()
    }
    made = dataset_of(name, found.read(), columns.over(Columns(**known)))
    return Dataset(**made, version=version if verify else "")

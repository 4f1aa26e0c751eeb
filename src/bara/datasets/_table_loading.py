"""Tables as datasets: a user's file, or a table of the catalogue by its name."""

import hashlib
import os
from pathlib import Path

from bara.datasets._catalogue import CATALOGUE
from bara.datasets._checksums import Check, altered
from bara.datasets._formats.table import read_table
from bara.datasets._record import Dataset
from bara.datasets._silo_tables import SiloTable, published
from bara.datasets._tables import Columns, dataset_of
from bara.errors import DatasetError


def whole_path(name: str, path: str | os.PathLike[str] | None = None) -> Path:
    """Return the absolute path of a table's file, seen from a folder or from the current one."""
    folder = Path(path).expanduser() if path else Path()
    return (folder / Path(name).expanduser()).absolute()


def digest(name: str, path: str | os.PathLike[str] | None = None) -> str:
    """Return the SHA-256 of a table's file, seen from a folder or from the current one."""
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
    """Return the dataset that a table makes.

    Args:
        name: The table's file, or its name in the catalogue.
        path: The folder that a relative file starts from.
        found: The files of a table of the catalogue; None for a user's own table.
        columns: The roles of the columns; for a table of the catalogue, those that differ from the
            catalogue's.
        verify: True if a table of the catalogue must be as published.
    """
    if found is None:
        table = read_table(whole_path(name, path))
        return Dataset(**dataset_of(Path(name).name, table, columns))
    version, digests = published(found)
    for file, (found_digest, expected) in digests.items():
        check = Check("table", file, found_digest, expected)
        if verify and not check.right:
            raise DatasetError(altered(name, check))
    known = Columns(**CATALOGUE[name].table)
    made = dataset_of(name, found.read(), columns.over(known))
    return Dataset(**made, version=version if verify else "")

"""Tables in files: a user's own, and those known by name, whose rows belong to real silos.

Arrow reads them: Parquet and CSV (perhaps gzipped; commas, semicolons or tabs).
"""

import gzip
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bara.datasets._catalogue import CATALOGUE, Check, nearest_version
from bara.datasets._places import whole_path
from bara.errors import DatasetError, MissingExtraError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet")
"""The endings of the names of tables' files."""

MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""The texts that stand for a missing value in a CSV file."""

CITIES = ("Dayton", "Seattle", "Fitchburg", "Franklin County", "Charleston", "Georgetown County")
"""The sites of the RAND experiment, in the order of their numbers (Newhouse et al. 1993)."""

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
HEART = (
    "age",
    "sex",
    "cp",
    "trestbps",
    "chol",
    "fbs",
    "restecg",
    "thalach",
    "exang",
    "oldpeak",
    "slope",
    "ca",
    "thal",
)


def is_table(name: str) -> bool:
    """Return True if a dataset's name is that of a table's file.

    >>> is_table("patients.csv"), is_table("mnist"), is_table("my.module:patients")
    (True, False, False)
    """
    return name.lower().endswith(SUFFIXES)


def arrow() -> Any:
    """Return pyarrow, the package that reads tables, or say how to install it."""
    try:
        import pyarrow  # noqa: PLC0415, ICN001  (heavy, and an extra)
    except ImportError as error:
        raise MissingExtraError(
            "tables are read by pyarrow: pip install 'bara-fl[tables]'"
        ) from error
    return pyarrow


def read_table(path: Path, header: tuple[str, ...] = ()) -> Any:
    """Read an Arrow table from a file; a column holds numbers, or text if any of it is text.

    Args:
        path: The file.
        header: The columns' names, if the file's first row does not have them.
    """
    package = arrow()
    if not path.is_file():
        raise DatasetError(f"there is no table {str(path)!r}")
    if not path.stat().st_size:
        raise DatasetError(f"{path} is empty")
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet  # noqa: PLC0415  (heavy, and an extra)

            return parquet.read_table(path)
        return _read_csv(path, header)
    except (OSError, EOFError, package.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read: {' '.join(str(error).split())}") from error


def _read_csv(path: Path, header: tuple[str, ...]) -> Any:
    from pyarrow import csv  # noqa: PLC0415  (heavy, and an extra)

    broken: list[Any] = []

    def refuse(row: Any) -> str:
        broken.append(row)
        return "error"

    try:
        return csv.read_csv(
            path,
            # With one thread, Arrow knows the number of a broken row.
            read_options=csv.ReadOptions(use_threads=False, column_names=list(header) or None),
            parse_options=csv.ParseOptions(delimiter=_delimiter(path), invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(null_values=list(MISSING), strings_can_be_null=True),
        )
    except arrow().ArrowInvalid as error:
        if not broken:
            raise
        row = broken[0]
        raise DatasetError(
            f"{path}: line {row.number} has {row.actual_columns} fields; "
            f"the header has {row.expected_columns}"
        ) from error


def _delimiter(path: Path) -> str:
    """Return the separator that is most frequent in the first line."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        first = file.readline(1_000_000)
    return max(",;\t", key=lambda sign: first.count(sign.encode()))


def digest(name: str, path: str | os.PathLike[str] | None = None) -> str:
    """Return the SHA-256 of a table's file, seen from a folder or from the current one."""
    place = whole_path(name, path)
    try:
        with place.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{place} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class SiloTable:
    """A table known by name, found on disk.

    Attributes:
        name: What users call the table.
        path: Its folder, or its only file.
        paths: The files that the table is read from.
        kind: The format, in words for a listing.
    """

    name: str
    path: Path
    paths: tuple[Path, ...]
    kind: str = "table"

    def read(self) -> Any:
        """Return the Arrow table."""
        return READERS[self.name](self.paths)

    def checksums(self) -> Mapping[str, str]:
        """Return the SHA-256 of each file, by the file's name."""
        try:
            return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.paths}
        except OSError as error:
            raise DatasetError(f"{self.path} cannot be read: {error}") from error


def find_tables(folder: Path, name: str) -> Iterator[SiloTable]:
    """Yield the tables of that name in a folder: the hospitals' four files, or one file."""
    if name != "heart-disease":
        return
    for place in (folder / "heart-disease", folder):
        paths = tuple(place / f"processed.{hospital}.data" for hospital in HOSPITALS)
        if all(path.is_file() for path in paths):
            yield SiloTable("heart-disease", place, paths, "UCI's files")
        single = place / "heart.csv"
        if single.is_file():
            yield SiloTable("heart-disease", single, (single,), "table")


def embedded_rand() -> SiloTable:
    """Return the table of the RAND experiment inside statsmodels."""
    spec = find_spec("statsmodels")
    if spec is None or spec.origin is None:
        raise MissingExtraError("rand-hie comes with statsmodels: pip install 'bara-fl[silos]'")
    path = Path(spec.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv"
    return SiloTable("rand-hie", Path("statsmodels"), (path,), "embedded")


def compare_table(table: SiloTable) -> tuple[str, tuple[Check, ...]]:
    """Compare a table's files with the published version that they are nearest to.

    Returns:
        The version's name, and a check for each file.
    """
    found = table.checksums()
    same_files = []
    for version in CATALOGUE[table.name].versions:
        if version.sha256.keys() == found.keys():
            same_files.append(version)
    version = nearest_version(same_files, found)
    checks = [Check("table", file, found[file], version.sha256[file]) for file in found]
    return version.name, tuple(checks)


def _read_heart(paths: tuple[Path, ...]) -> Any:
    """Read one row per patient; a cholesterol or blood pressure of 0 was not measured."""
    package = arrow()
    if len(paths) == 1:
        table = read_table(paths[0])
    else:
        tables = []
        for hospital, path in zip(HOSPITALS, paths, strict=True):
            read = read_table(path, (*HEART, "num"))
            columns: dict[str, Any] = {"hospital": [hospital] * read.num_rows}
            for name in read.column_names:
                columns[name] = read.column(name).cast(package.float64())
            tables.append(package.table(columns))
        table = package.concat_tables(tables)
    for name in ("chol", "trestbps"):
        values = np.array(table.column(name).cast(package.float64()).to_numpy(), copy=True)
        values[values == 0] = np.nan
        table = table.set_column(
            table.column_names.index(name), name, package.array(values, from_pandas=True)
        )
    return table


def _read_rand(paths: tuple[Path, ...]) -> Any:
    """Read one row per person and year, with the sites by their names."""
    table = read_table(paths[0])
    cities = [CITIES[int(site) - 1] for site in table.column("site").to_pylist()]
    return table.set_column(table.column_names.index("site"), "site", arrow().array(cities))


READERS = {"heart-disease": _read_heart, "rand-hie": _read_rand}

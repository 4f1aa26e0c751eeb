"""The tables known by name, with real silos: hospitals and cities."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bara.datasets._catalogue import CATALOGUE
from bara.datasets._checksums import nearest_version
from bara.datasets._formats.table import arrow, read_table
from bara.errors import DatasetError, MissingExtraError

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


def find(folder: Path, name: str) -> Iterator[SiloTable]:
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


def published(table: SiloTable) -> tuple[str, dict[str, tuple[str, str]]]:
    """Compare a table's files with the published version that they are nearest to.

    Returns:
        The version's name, and for each file its checksum and the published one.
    """
    found = table.checksums()
    same_files = [
        version
        for version in CATALOGUE[table.name].versions
        if version.sha256.keys() == found.keys()
    ]
    nearest = nearest_version(same_files, found)
    return nearest.name, {file: (digest, nearest.sha256[file]) for file, digest in found.items()}


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

"""The tables known by name, whose silos are real: hospitals, cities."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bara.datasets._catalogue import CATALOGUE
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
        name: What users call it.
        path: Its folder, or its file.
        paths: The files it is read from.
        kind: The format, in words for a listing.
    """

    name: str
    path: Path
    paths: tuple[Path, ...]
    kind: str = "table"

    def read(self) -> Any:
        """The table, as Arrow has it."""
        return READERS[self.name](self.paths)

    def checksums(self) -> Mapping[str, str]:
        """The SHA-256 of each file."""
        try:
            return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.paths}
        except OSError as error:
            raise DatasetError(f"{self.path} cannot be read: {error}") from error


def find(folder: Path, name: str) -> Iterator[SiloTable]:
    """The hospitals' four files, or one table of them all, in a folder or in its subfolder of that name."""
    if name != "heart-disease":
        return
    for place in (folder / "heart-disease", folder):
        paths = tuple(place / f"processed.{hospital}.data" for hospital in HOSPITALS)
        for found, kind in ((paths, "UCI's files"), ((place / "heart.csv",), "table")):
            if all(path.is_file() for path in found):
                yield SiloTable(
                    "heart-disease", found[0] if len(found) == 1 else place, found, kind
                )


def embedded_rand() -> SiloTable:
    """The RAND experiment inside statsmodels."""
    spec = find_spec("statsmodels")
    if spec is None or spec.origin is None:
        raise MissingExtraError("rand-hie comes with statsmodels: pip install 'bara-fl[silos]'")
    path = Path(spec.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv"
    return SiloTable("rand-hie", Path("statsmodels"), (path,), "embedded")


def published(table: SiloTable) -> tuple[str, dict[str, tuple[str, str]]]:
    """Which published version a table is nearest to, and for each file its checksum beside that version's."""
    found = table.checksums()
    versions = [one for one in CATALOGUE[table.name].versions if one.sha256.keys() == found.keys()]
    nearest = max(
        versions, key=lambda one: sum(one.sha256[file] == digest for file, digest in found.items())
    )
    return nearest.name, {file: (digest, nearest.sha256[file]) for file, digest in found.items()}


def _read_heart(paths: tuple[Path, ...]) -> Any:
    """One row a patient; a cholesterol or blood pressure of 0 was not measured."""
    package = arrow()
    if len(paths) == 1:
        table = read_table(paths[0])
    else:
        parts = []
        for hospital, path in zip(HOSPITALS, paths, strict=True):
            part = read_table(path, (*HEART, "num"))
            numbers = {
                name: part.column(name).cast(package.float64()) for name in part.column_names
            }
            parts.append(package.table({"hospital": [hospital] * part.num_rows, **numbers}))
        table = package.concat_tables(parts)
    for name in ("chol", "trestbps"):
        values = np.array(table.column(name).cast(package.float64()).to_numpy(), copy=True)
        values[values == 0] = np.nan
        table = table.set_column(
            table.column_names.index(name), name, package.array(values, from_pandas=True)
        )
    return table


def _read_rand(paths: tuple[Path, ...]) -> Any:
    """One row a person and year; the sites by their names."""
    table = read_table(paths[0])
    cities = [CITIES[int(site) - 1] for site in table.column("site").to_pylist()]
    return table.set_column(table.column_names.index("site"), "site", arrow().array(cities))


READERS = {"heart-disease": _read_heart, "rand-hie": _read_rand}

"""The datasets known by name, and whether arrays are, byte for byte, the published ones.

`catalogue.toml` lists each dataset's classes, publishers and checksums.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Arrays, Source
from bara.errors import DatasetError, UnknownNameError
from bara.text import nearest


@dataclass(frozen=True)
class Version:
    """One accepted content of a dataset: the SHA-256 of each decoded array, or of a table's files.

    Labels are hashed as bytes.
    """

    name: str
    sha256: Mapping[str, str]


@dataclass(frozen=True)
class Remote:
    """A published file: its name, its size in bytes, its SHA-256."""

    file: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """The facts about one dataset, as ``catalogue.toml`` lists them.

    Attributes:
        name: What users call the dataset.
        classes: How many labels it has.
        shape: Height, width and, for colour images, channels; empty for a table.
        versions: The contents that are accepted as this dataset; the complete one first.
        remotes: The files that ``fetch`` downloads; none for an embedded dataset.
        mirrors: Addresses that publish the files, in the order in which they are tried.
        torchvision: The folder in which torchvision stores the dataset, where it has one.
        embedded: True if the dataset comes with an installed package and needs no file.
        table: The arguments of `bara.datasets.Columns`; empty unless it is a table.
        silos: How many silos own the rows of a table.
    """

    name: str
    classes: int
    versions: tuple[Version, ...]
    shape: tuple[int, ...] = ()
    remotes: tuple[Remote, ...] = ()
    mirrors: tuple[str, ...] = ()
    torchvision: str = ""
    embedded: bool = False
    table: Mapping[str, Any] = field(default_factory=dict)
    silos: int = 0


def names() -> tuple[str, ...]:
    """Return every name in the catalogue, the embedded default first."""
    return tuple(CATALOGUE)


def silos() -> dict[str, int]:
    """Return the number of silos of every dataset whose silos are known."""
    return {name: known.silos for name, known in CATALOGUE.items() if known.silos}


def classes() -> dict[str, int]:
    """Return the number of labels of every dataset in the catalogue."""
    return {name: known.classes for name, known in CATALOGUE.items()}


def entry(name: str) -> Entry:
    """Return the catalogue's entry of that name, or refuse the name and suggest the nearest."""
    if name not in CATALOGUE:
        raise UnknownNameError(
            f"{name!r} is not a known dataset; {nearest(name.lower(), [*names()])}"
        )
    return CATALOGUE[name]


def _read() -> dict[str, Entry]:
    text = files("bara.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: _entry(name, section) for name, section in tomllib.loads(text).items()}


def _entry(name: str, section: Mapping[str, Any]) -> Entry:
    fields = _with_tuples(section)
    fields["versions"] = tuple(Version(**version) for version in section["versions"])
    fields["remotes"] = tuple(Remote(**remote) for remote in section.get("remotes", ()))
    fields["table"] = _with_tuples(section.get("table", {}))
    return Entry(name=name, **fields)


def _with_tuples(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section of a TOML file with every list as a tuple."""
    fields = dict(section)
    for key, value in section.items():
        if isinstance(value, list):
            fields[key] = tuple(value)
    return fields


CATALOGUE: Mapping[str, Entry] = _read()
"""Every dataset known by name."""


@dataclass(frozen=True)
class Check:
    """The checksum of an array or table beside the expected one, empty if nobody published it."""

    part: str
    file: str
    sha256: str
    expected: str

    @property
    def right(self) -> bool:
        """True if the two checksums agree, or if none was published."""
        return self.expected in ("", self.sha256)


def sha256(array: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's bytes in C order.

    Labels are hashed as bytes wherever they fit, so that their integer type does not matter.

    >>> sha256(np.array([1, 2])) == sha256(np.array([1, 2], np.uint8))
    True
    """
    whole_numbers = array.ndim == 1 and array.dtype.kind in "iu" and array.size > 0
    if whole_numbers and 0 <= array.min() <= array.max() < 256:
        array = array.astype(np.uint8, copy=False)
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def compare_arrays(name: str, source: Source, arrays: Arrays) -> tuple[str, tuple[Check, ...]]:
    """Compare a dataset's arrays with the published version that they are nearest to.

    Returns:
        The version's name (empty for a dataset that is not in the catalogue) and four checks.
    """
    digests = {array: sha256(content) for array, content in arrays._asdict().items()}
    version = Version("", {})
    if name in CATALOGUE:
        version = nearest_version(CATALOGUE[name].versions, digests)
    checks = []
    for array, digest in digests.items():
        file = str(source.files.get(array, source.path))
        checks.append(Check(array, file, digest, version.sha256.get(array, "")))
    return version.name, tuple(checks)


def certify(name: str, source: Source, arrays: Arrays) -> str:
    """Return the name of the published version that the arrays equal, or refuse them."""
    version, checks = compare_arrays(name, source, arrays)
    for problem in problems(name, arrays, checks):
        raise DatasetError(problem)
    return version


def problems(name: str, arrays: Arrays, checks: tuple[Check, ...]) -> Iterator[str]:
    """Yield a message for every array whose checksum or shape is wrong."""
    for check in checks:
        shape = getattr(arrays, check.part).shape[1:]
        if not check.right:
            yield altered(name, check)
        elif check.expected and shape not in ((), CATALOGUE[name].shape):
            yield (
                f"{name}: {check.part} in {check.file} holds images of {shape}; "
                f"they must be {CATALOGUE[name].shape}"
            )


def altered(name: str, check: Check) -> str:
    """Return the message for an array or table whose checksum is wrong."""
    return (
        f"{name}: {check.part} in {check.file} is not as published "
        f"(SHA-256 {check.sha256[:12]}..., not {check.expected[:12]}...): "
        "the file is damaged or of another dataset. "
        f"Remove it and run: bara data fetch {name}; "
        "or load it with verify=False if it is meant to differ"
    )


def nearest_version(versions: Iterable[Version], digests: Mapping[str, str]) -> Version:
    """Return the version that shares most checksums with the digests, the first of equals."""

    def agreements(version: Version) -> int:
        return sum(version.sha256[key] == digest for key, digest in digests.items())

    return max(versions, key=agreements)

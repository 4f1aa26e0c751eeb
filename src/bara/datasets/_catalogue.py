"""The datasets known by name: their classes, their published checksums and their publishers."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from bara.errors import UnknownNameError
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
        table: The arguments of `bara.datasets._tables.Columns`; empty unless it is a table.
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

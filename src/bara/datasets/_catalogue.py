"""The datasets known by name: how many classes, which bytes are the published ones, and who publishes them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from bara.errors import UnknownNameError
from bara.plugins import nearest


@dataclass(frozen=True)
class Version:
    """One accepted content of a dataset: the SHA-256 of each decoded array (labels as bytes), or of a table's files."""

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
    """What is known about one dataset; ``catalogue.toml`` holds them all.

    Attributes:
        name: What users call it.
        classes: How many labels it has.
        shape: Height, width and, of colour images, channels; empty of a table.
        versions: The contents that are accepted as this dataset; the complete one first.
        remotes: The files that ``fetch`` downloads; none when the dataset is embedded.
        mirrors: Addresses that publish them, in the order they are tried.
        torchvision: The folder torchvision keeps it in, where it has one of its own.
        embedded: Whether it comes with an installed package and needs no file.
        table: Of a table, which columns are what (`bara.datasets._tables.Columns`).
        silos: Of a table, how many own its rows.
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
    """Every name in the catalogue, the embedded default first."""
    return tuple(CATALOGUE)


def silos() -> dict[str, int]:
    """The datasets whose silos are known, and how many each has."""
    return {name: known.silos for name, known in CATALOGUE.items() if known.silos}


def entry(name: str) -> Entry:
    """What is known about the dataset of that name."""
    if name not in CATALOGUE:
        raise UnknownNameError(
            f"{name!r} is not a known dataset; {nearest(name.lower(), [*names()])}"
        )
    return CATALOGUE[name]


def _entry(name: str, table: Mapping[str, Any]) -> Entry:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
    }
    fields["versions"] = tuple(Version(**version) for version in table["versions"])
    fields["remotes"] = tuple(Remote(**remote) for remote in table.get("remotes", ()))
    return Entry(name=name, **fields)


def _read() -> dict[str, Entry]:
    text = files("bara.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: _entry(name, table) for name, table in tomllib.loads(text).items()}


CATALOGUE: Mapping[str, Entry] = _read()
"""Every dataset known by name."""

"""The file formats people have, one module each; ``find`` looks a folder through for a dataset in any of them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from bara.datasets._formats import cifar, idx, npz
from bara.datasets._record import Arrays

__all__ = ["Source", "cifar", "find", "idx", "npz"]


class Source(Protocol):
    """A dataset found on disk, not yet read."""

    @property
    def kind(self) -> str:
        """The format, in words for a listing."""

    @property
    def path(self) -> Path:
        """The file, or the folder that holds the files."""

    @property
    def files(self) -> Mapping[str, Path]:
        """The file that each part comes from, for messages."""

    def read(self) -> Arrays:
        """Decodes the four arrays; a damaged file is a ``DatasetError`` that names it."""


def find(folder: Path, name: str) -> Iterator[Source]:
    """Every form in which a folder holds the dataset of that name, the one quickest to read first."""
    for finder in (npz.find, cifar.find, idx.find):
        yield from finder(folder, name)

"""CIFAR-10 and CIFAR-100 as published for Python: a tar archive of pickled batches, or the folder unpacked from it."""

import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.datasets._formats.pickles import read_pickle
from bara.datasets._record import PARTS, Arrays
from bara.errors import DatasetError

LARGEST_BATCH = 512 * 2**20
"""Bytes; a batch that claims more is refused rather than unpacked (the largest published has 155 MB)."""


@dataclass(frozen=True)
class Layout:
    """How one of the two datasets is laid out."""

    archive: str
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: bytes


LAYOUTS: Mapping[str, Layout] = {
    "cifar10": Layout(
        "cifar-10-python.tar.gz",
        "cifar-10-batches-py",
        tuple(f"data_batch_{k}" for k in range(1, 6)),
        ("test_batch",),
        b"labels",
    ),
    "cifar100": Layout("cifar-100-python.tar.gz", "cifar-100-python", ("train",), ("test",), b"fine_labels"),
}


@dataclass(frozen=True)
class CifarArchive:
    """The published archive; read in memory, never unpacked to disk."""

    path: Path
    layout: Layout
    kind: str = "cifar archive"

    @property
    def files(self) -> Mapping[str, Path]:
        """Every part comes from the one file."""
        return dict.fromkeys(PARTS, self.path)

    def read(self) -> Arrays:
        """Decodes the four arrays."""
        try:
            batches = dict(self._batches())
        except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
            raise DatasetError(f"{self.path} cannot be read: {error}") from error
        return _assemble(batches, self.layout, self.path)

    def _batches(self) -> Iterator[tuple[str, bytes]]:
        wanted = {f"{self.layout.folder}/{batch}": batch for batch in self.layout.train + self.layout.test}
        with tarfile.open(self.path, "r:*") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name in wanted and member.isfile() else None
                if content is not None and member.size <= LARGEST_BATCH:
                    yield wanted[member.name], content.read()


@dataclass(frozen=True)
class CifarFolder:
    """The folder that unpacking the archive leaves."""

    path: Path
    layout: Layout
    kind: str = "cifar folder"

    @property
    def files(self) -> Mapping[str, Path]:
        """The folder: a part may come from several of its files."""
        return dict.fromkeys(PARTS, self.path)

    def read(self) -> Arrays:
        """Decodes the four arrays."""
        paths = {batch: self.path / batch for batch in self.layout.train + self.layout.test}
        try:
            batches = {batch: path.read_bytes() for batch, path in paths.items() if path.is_file()}
        except OSError as error:
            raise DatasetError(f"{self.path} cannot be read: {error}") from error
        return _assemble(batches, self.layout, self.path)


def find(folder: Path, name: str) -> Iterator[CifarArchive | CifarFolder]:
    """The unpacked folder, then the archive, in a folder or in its subfolder of that name."""
    if name not in LAYOUTS:
        return
    layout = LAYOUTS[name]
    for place in (folder, folder / name):
        if (place / layout.folder).is_dir():
            yield CifarFolder(place / layout.folder, layout)
        if (place / layout.archive).is_file():
            yield CifarArchive(place / layout.archive, layout)


def _assemble(batches: Mapping[str, bytes], layout: Layout, path: Path) -> Arrays:
    lacking = [batch for batch in layout.train + layout.test if batch not in batches]
    if lacking:
        raise DatasetError(f"{path} lacks {', '.join(lacking)}")
    decoded = {batch: _decode(raw, layout.labels, f"{path}: {batch}") for batch, raw in batches.items()}
    train, test = ([decoded[batch] for batch in side] for side in (layout.train, layout.test))
    return Arrays(
        np.concatenate([x for x, _ in train]),
        np.concatenate([y for _, y in train]),
        np.concatenate([x for x, _ in test]),
        np.concatenate([y for _, y in test]),
    )


def _decode(raw: bytes, key: bytes, source: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The images and labels of one batch: rows of 1024 red, 1024 green, 1024 blue bytes."""
    batch = read_pickle(raw, source)
    pixels, labels = batch.get(b"data"), batch.get(key)
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != 3072:
        raise DatasetError(f"{source}: 'data' must be an array of rows of 3072 bytes")
    if not isinstance(labels, list) or not all(isinstance(label, int) and 0 <= label < 256 for label in labels):
        raise DatasetError(f"{source}: {key.decode()!r} must be a list of labels in 0 .. 255")
    images = pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.array(labels, np.uint8)

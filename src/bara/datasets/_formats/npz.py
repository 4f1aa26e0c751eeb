"""Numpy archives, ``<name>.npz`` with ``x_train``, ``y_train``, ``x_test`` and ``y_test``."""

import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO
from zipfile import BadZipFile

import numpy as np

from bara.datasets._record import PARTS, Arrays, Source
from bara.errors import DatasetError


def npz_file(path: Path) -> Source:
    """Return the numpy archive at a path."""
    return Source("npz", path, partial(read_npz, path))


def read_npz(path: Path) -> Arrays:
    """Return the four arrays in an archive, read without pickles: a hostile file can do nothing."""
    try:
        with path.open("rb") as file:  # ours to close: numpy leaves a damaged file open
            return _read(path, file)
    except DatasetError:
        raise
    except (OSError, EOFError, ValueError, BadZipFile, zlib.error) as error:
        why = str(error)
        if "pickle" in why:
            why = "it holds no plain arrays"  # numpy's own words advise to load it unsafely
        raise DatasetError(f"{path} is not a numpy archive that can be read: {why}") from error


def _read(path: Path, file: BinaryIO) -> Arrays:
    archive = np.load(file, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise DatasetError(
            f"{path} holds a single array; it must be an archive of {', '.join(PARTS)}"
        )
    with archive:
        lacking = [array for array in PARTS if array not in archive.files]
        if lacking:
            raise DatasetError(
                f"{path} lacks {', '.join(lacking)}; it must hold {', '.join(PARTS)} "
                f"and holds {', '.join(archive.files) or 'nothing'}"
            )
        return Arrays(archive["x_train"], archive["y_train"], archive["x_test"], archive["y_test"])


def find(folder: Path, name: str) -> Iterator[Source]:
    """Yield the archive of that name in a folder and in its subfolder of that name."""
    for path in (folder / f"{name}.npz", folder / name / f"{name}.npz"):
        if path.is_file():
            yield npz_file(path)

"""The original files of MNIST and Fashion-MNIST: IDX arrays of unsigned bytes, gzipped or not."""

import gzip
import hashlib
import math
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.datasets._catalogue import CATALOGUE
from bara.datasets._record import PARTS, Arrays, Source
from bara.errors import DatasetError

STEMS: Mapping[str, str] = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
"""The published name of each part's file, without ``.gz``."""

UNSIGNED_BYTES = b"\x00\x00\x08"


def read_idx(path: Path) -> NDArray[Any]:
    """The array in an IDX file of unsigned bytes."""
    raw = _content(path)
    if len(raw) < 4 or raw[:3] != UNSIGNED_BYTES:
        raise DatasetError(
            f"{path} is not an IDX file of unsigned bytes: it starts with {raw[:4].hex() or 'nothing'}"
        )
    start = 4 + 4 * raw[3]
    shape = tuple(int.from_bytes(raw[at : at + 4], "big") for at in range(4, start, 4))
    if len(raw) != start + math.prod(shape):
        raise DatasetError(
            f"{path} holds {len(raw)} bytes; its header announces {start + math.prod(shape)} for shape {shape}"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy()


def find(folder: Path, name: str) -> Iterator[Source]:
    """The files in a subfolder of that name, in torchvision's layout, or directly in the folder.

    Both datasets use the same file names. Files directly in the folder are therefore passed over
    when their test labels show that they are the other dataset's.
    """
    if name not in CATALOGUE or not CATALOGUE[name].torchvision:
        return
    for place in (folder / name, folder / CATALOGUE[name].torchvision / "raw", folder):
        files = present(place)
        if len(files) == len(PARTS) and not (
            place == folder and _is_another(files["y_test"], name)
        ):
            yield Source("idx", place, partial(_read, files), files)


def _read(files: Mapping[str, Path]) -> Arrays:
    return Arrays(*(read_idx(files[part]) for part in PARTS))


def present(folder: Path) -> dict[str, Path]:
    """Which parts' files are in a folder."""
    spellings = {
        part: [
            stem,
            f"{stem}.gz",
            stem.replace("-idx", ".idx"),
            f"{stem.replace('-idx', '.idx')}.gz",
        ]
        for part, stem in STEMS.items()
    }
    found = {
        part: [folder / file for file in tried if (folder / file).is_file()]
        for part, tried in spellings.items()
    }
    return {part: paths[0] for part, paths in found.items() if paths}


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error


def _is_another(labels: Path, name: str) -> bool:
    try:
        digest = hashlib.sha256(read_idx(labels).tobytes()).hexdigest()
    except DatasetError:
        return False
    others = [
        version for other in CATALOGUE.values() if other.name != name for version in other.versions
    ]
    return any(version.sha256.get("y_test") == digest for version in others)

"""The forms in which a dataset's four arrays come; `find` searches a folder for the files.

Numpy archives (``<name>.npz``), the IDX files of MNIST and Fashion-MNIST, CIFAR's batches (in
`_cifar`), and the digits inside scikit-learn, which need no file.
"""

import gzip
import math
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from bara.datasets._catalogue import CATALOGUE, sha256
from bara.datasets._cifar import find_cifar
from bara.datasets._record import PARTS, Arrays, Source
from bara.datasets._splits import stratified_order
from bara.errors import DatasetError, MissingExtraError

STEMS: Mapping[str, str] = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
"""The published name of each array's file, without ``.gz``."""

UNSIGNED_BYTES = b"\x00\x00\x08"

TRAIN_SAMPLES = 1_400
"""How many digits are for training; 397 are held out.

1,400 makes equal shards for 10, 20, 25, 35, 50 and 70 clients.
"""

SPLIT_SEED = 2023


def find(folder: Path, name: str) -> Iterator[Source]:
    """Yield every form in which a folder holds a dataset, the one quickest to read first."""
    yield from _find_npz(folder, name)
    yield from find_cifar(folder, name)
    yield from _find_idx(folder, name)


def npz_file(path: Path) -> Source:
    """Return the numpy archive at a path."""
    return Source("npz", path, partial(_read_npz, path))


def _read_npz(path: Path) -> Arrays:
    """Return the four arrays in an archive, read without pickles: a hostile file can do nothing."""
    try:
        with path.open("rb") as file:  # ours to close: numpy leaves a damaged file open
            return _arrays_in(path, file)
    except DatasetError:
        raise
    except (OSError, EOFError, ValueError, BadZipFile, zlib.error) as error:
        why = str(error)
        if "pickle" in why:
            why = "it holds no plain arrays"  # numpy's own words advise to load it unsafely
        raise DatasetError(f"{path} is not a numpy archive that can be read: {why}") from error


def _arrays_in(path: Path, file: BinaryIO) -> Arrays:
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


def _find_npz(folder: Path, name: str) -> Iterator[Source]:
    """Yield the archive of that name in a folder and in its subfolder of that name."""
    for path in (folder / f"{name}.npz", folder / name / f"{name}.npz"):
        if path.is_file():
            yield npz_file(path)


def _read_idx(path: Path) -> NDArray[Any]:
    """Return the array in an IDX file of unsigned bytes."""
    raw = _content(path)
    if len(raw) < 4 or raw[:3] != UNSIGNED_BYTES:
        raise DatasetError(
            f"{path} is not an IDX file of unsigned bytes: "
            f"it starts with {raw[:4].hex() or 'nothing'}"
        )
    start = 4 + 4 * raw[3]
    shape = tuple(int.from_bytes(raw[at : at + 4], "big") for at in range(4, start, 4))
    announced = start + math.prod(shape)
    if len(raw) != announced:
        raise DatasetError(
            f"{path} holds {len(raw)} bytes; its header announces {announced} for shape {shape}"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape).copy()


def _find_idx(folder: Path, name: str) -> Iterator[Source]:
    """Yield complete sets of files: in a subfolder of that name, in torchvision's, in the folder.

    Both datasets use the same file names. Files directly in the folder are therefore passed over
    when their test labels show that they are the other dataset's.
    """
    if name not in CATALOGUE or not CATALOGUE[name].torchvision:
        return
    for place in (folder / name, folder / CATALOGUE[name].torchvision / "raw", folder):
        files = present(place)
        if len(files) < len(PARTS):
            continue
        if place == folder and _is_another(files["y_test"], name):
            continue
        yield Source("idx", place, partial(_read_all, files), files)


def _read_all(files: Mapping[str, Path]) -> Arrays:
    return Arrays(
        _read_idx(files["x_train"]),
        _read_idx(files["y_train"]),
        _read_idx(files["x_test"]),
        _read_idx(files["y_test"]),
    )


def present(folder: Path) -> dict[str, Path]:
    """Return the files in a folder, by the names of their arrays."""
    found = {}
    for array, stem in STEMS.items():
        dotted = stem.replace("-idx", ".idx")
        for spelling in (stem, f"{stem}.gz", dotted, f"{dotted}.gz"):
            file = folder / spelling
            if file.is_file():
                found[array] = file
                break
    return found


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error


def _is_another(labels: Path, name: str) -> bool:
    """Return True if test labels are those of another dataset of the catalogue."""
    try:
        digest = sha256(_read_idx(labels))
    except DatasetError:
        return False
    for other in CATALOGUE.values():
        for version in other.versions:
            if other.name != name and version.sha256.get("y_test") == digest:
                return True
    return False


def embedded_digits() -> Source:
    """Return the digits inside scikit-learn, with our own split since none is published.

    The split into training and test samples is the same everywhere and for ever: it is drawn from
    raw PCG64 bits, which numpy guarantees not to change, and each class is held out in proportion.
    Pixels, published as 0 .. 16, are stretched to 0 .. 255.
    """
    return Source("embedded", Path("scikit-learn"), _read_digits)


def _read_digits() -> Arrays:
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415  (heavy, and an extra)
    except ImportError as error:
        raise MissingExtraError(
            "the digits need scikit-learn: pip install 'bara-fl[sim]'"
        ) from error
    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    labels = bunch.target.astype(np.int64)
    shuffled = np.argsort(np.random.PCG64(SPLIT_SEED).random_raw(len(labels)), kind="stable")
    order = stratified_order(labels, shuffled)
    train = np.sort(order[:TRAIN_SAMPLES])
    test = np.sort(order[TRAIN_SAMPLES:])
    return Arrays(images[train], labels[train], images[test], labels[test])

"""CIFAR-10 and CIFAR-100 as published for Python: a tar archive of pickled batches, or the folder unpacked from it.

A pickle is a program. The reader here knows containers, numbers, strings and flat arrays of bytes,
and builds even those from stand-ins of its own: no function, class or numpy routine named in the
file is ever called.
"""

import io
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Arrays, Source
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
    "cifar100": Layout(
        "cifar-100-python.tar.gz", "cifar-100-python", ("train",), ("test",), b"fine_labels"
    ),
}


def _archived(path: Path, layout: Layout) -> Iterator[tuple[str, bytes]]:
    """The batches in the published archive; read in memory, never unpacked to disk."""
    wanted = {f"{layout.folder}/{batch}": batch for batch in layout.train + layout.test}
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            content = (
                archive.extractfile(member) if member.name in wanted and member.isfile() else None
            )
            if content is not None and member.size <= LARGEST_BATCH:
                yield wanted[member.name], content.read()


def _unpacked(path: Path, layout: Layout) -> Iterator[tuple[str, bytes]]:
    """The batches in the folder that unpacking the archive leaves."""
    for batch in layout.train + layout.test:
        if (path / batch).is_file():
            yield batch, (path / batch).read_bytes()


def _read(
    batches: Callable[[Path, Layout], Iterator[tuple[str, bytes]]], path: Path, layout: Layout
) -> Arrays:
    try:
        return _assemble(dict(batches(path, layout)), layout, path)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error


def find(folder: Path, name: str) -> Iterator[Source]:
    """The unpacked folder, then the archive, in a folder or in its subfolder of that name."""
    if name not in LAYOUTS:
        return
    layout = LAYOUTS[name]
    for place in (folder, folder / name):
        if (place / layout.folder).is_dir():
            path = place / layout.folder
            yield Source("cifar folder", path, partial(_read, _unpacked, path, layout))
        if (place / layout.archive).is_file():
            path = place / layout.archive
            yield Source("cifar archive", path, partial(_read, _archived, path, layout))


def _assemble(batches: Mapping[str, bytes], layout: Layout, path: Path) -> Arrays:
    lacking = [batch for batch in layout.train + layout.test if batch not in batches]
    if lacking:
        raise DatasetError(f"{path} lacks {', '.join(lacking)}")
    decoded = {
        batch: _decode(raw, layout.labels, f"{path}: {batch}") for batch, raw in batches.items()
    }
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
    if not isinstance(labels, list) or not all(
        isinstance(label, int) and 0 <= label < 256 for label in labels
    ):
        raise DatasetError(f"{source}: {key.decode()!r} must be a list of labels in 0 .. 255")
    images = pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.array(labels, np.uint8)


class ByteArray:
    """Stands in for a numpy array of unsigned bytes while a pickle is read."""

    pixels: NDArray[np.uint8]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Takes numpy's state: version, shape, type, whether columns come first, bytes."""
        _, shape, kind, fortran, raw = state
        if not isinstance(kind, UnsignedByte) or not isinstance(raw, bytes):
            raise pickle.UnpicklingError("an array that does not hold unsigned bytes")
        flat = np.frombuffer(raw, np.uint8)
        self.pixels = flat.reshape(shape, order="F" if fortran else "C")


class UnsignedByte:
    """Stands in for numpy's type of unsigned bytes while a pickle is read."""

    def __init__(self, kind: object, *_: object) -> None:
        """Refuses every other type."""
        if kind not in ("u1", b"u1"):
            raise pickle.UnpicklingError(
                f"an array of type {kind!r}; only unsigned bytes are admitted"
            )

    def __setstate__(self, _: object) -> None:
        """Ignores byte order and the like, which bytes do not have."""


class _Ndarray:
    """Stands in for the name ``numpy.ndarray``, which a pickle hands to ``_reconstruct``."""


def _reconstruct(*_: object) -> ByteArray:
    return ByteArray()


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in encoding {encoding!r}")
    return text.encode("latin1")


_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Ndarray,
    ("numpy", "dtype"): UnsignedByte,
    ("_codecs", "encode"): _latin1,  # how Python 3 writes bytes in the old protocol
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR batch needs")
        return _ADMITTED[module, name]

    def persistent_load(self, _: object) -> NoReturn:
        raise pickle.UnpicklingError("it refers to an object outside the file")


def read_pickle(raw: bytes, source: str) -> dict[bytes, Any]:
    """The dictionary in a pickle of plain data, arrays as numpy arrays of bytes, keys as bytes; or refuses it."""
    try:
        content = _Reader(io.BytesIO(raw), encoding="bytes").load()
    except Exception as error:  # a damaged pickle may raise almost anything
        raise DatasetError(
            f"{source} is not a batch of CIFAR that can be read safely: {error}"
        ) from error
    if not isinstance(content, dict):
        raise DatasetError(
            f"{source} is not a batch of CIFAR: it holds a {type(content).__name__}, not a dictionary"
        )
    return {_key(key): _plain(value) for key, value in content.items()}


def _key(key: object) -> bytes:
    return (
        key.encode()
        if isinstance(key, str)
        else key
        if isinstance(key, bytes)
        else repr(key).encode()
    )


def _plain(value: object) -> object:
    return getattr(value, "pixels", None) if isinstance(value, ByteArray) else value

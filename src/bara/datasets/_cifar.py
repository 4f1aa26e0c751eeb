"""CIFAR-10 and CIFAR-100 as published for Python: pickled batches, in a tar archive or unpacked.

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
"""The most bytes that a batch may claim and still be unpacked; the largest published has 155 MB."""


@dataclass(frozen=True)
class FileLayout:
    """The names of a dataset's archive, folder and batches, and the key of a batch's labels."""

    archive: str
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    labels: bytes


LAYOUTS: Mapping[str, FileLayout] = {
    "cifar10": FileLayout(
        "cifar-10-python.tar.gz",
        "cifar-10-batches-py",
        tuple(f"data_batch_{k}" for k in range(1, 6)),
        ("test_batch",),
        b"labels",
    ),
    "cifar100": FileLayout(
        "cifar-100-python.tar.gz", "cifar-100-python", ("train",), ("test",), b"fine_labels"
    ),
}


def _archived(path: Path, layout: FileLayout) -> Iterator[tuple[str, bytes]]:
    """Yield the batches in the published archive; nothing is unpacked to disk."""
    wanted = {f"{layout.folder}/{batch}": batch for batch in layout.train + layout.test}
    with tarfile.open(path, "r:*") as archive:
        for member in archive:
            if member.name not in wanted or not member.isfile() or member.size > LARGEST_BATCH:
                continue
            content = archive.extractfile(member)
            if content is not None:
                yield wanted[member.name], content.read()


def _unpacked(path: Path, layout: FileLayout) -> Iterator[tuple[str, bytes]]:
    """Yield the batches in the folder that was unpacked from the archive."""
    for batch in layout.train + layout.test:
        file = path / batch
        if file.is_file():
            yield batch, file.read_bytes()


def _read(
    batches: Callable[[Path, FileLayout], Iterator[tuple[str, bytes]]],
    path: Path,
    layout: FileLayout,
) -> Arrays:
    try:
        return _assemble(dict(batches(path, layout)), layout, path)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error


def find_cifar(folder: Path, name: str) -> Iterator[Source]:
    """Yield the unpacked folder, then the archive, in a folder or its subfolder of that name."""
    if name not in LAYOUTS:
        return
    layout = LAYOUTS[name]
    for place in (folder, folder / name):
        unpacked = place / layout.folder
        if unpacked.is_dir():
            yield Source("cifar folder", unpacked, partial(_read, _unpacked, unpacked, layout))
        archive = place / layout.archive
        if archive.is_file():
            yield Source("cifar archive", archive, partial(_read, _archived, archive, layout))


def _assemble(batches: Mapping[str, bytes], layout: FileLayout, path: Path) -> Arrays:
    lacking = [batch for batch in layout.train + layout.test if batch not in batches]
    if lacking:
        raise DatasetError(f"{path} lacks {', '.join(lacking)}")
    images = {}
    labels = {}
    for batch, raw in batches.items():
        images[batch], labels[batch] = _decode(raw, layout.labels, f"{path}: {batch}")
    return Arrays(
        np.concatenate([images[batch] for batch in layout.train]),
        np.concatenate([labels[batch] for batch in layout.train]),
        np.concatenate([images[batch] for batch in layout.test]),
        np.concatenate([labels[batch] for batch in layout.test]),
    )


def _decode(raw: bytes, key: bytes, source: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the images and labels of one batch: rows of 1024 red, 1024 green, 1024 blue bytes."""
    batch = read_pickle(raw, source)
    pixels = batch.get(b"data")
    labels = batch.get(key)
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != 3072:
        raise DatasetError(f"{source}: 'data' must be an array of rows of 3072 bytes")
    if not isinstance(labels, list) or not all(map(_is_label, labels)):
        raise DatasetError(f"{source}: {key.decode()!r} must be a list of labels in 0 .. 255")
    images = pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.array(labels, np.uint8)


def _is_label(label: object) -> bool:
    return isinstance(label, int) and 0 <= label < 256


class ByteArray:
    """A stand-in for a numpy array of unsigned bytes while a pickle is read."""

    pixels: NDArray[np.uint8]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Take numpy's state: version, shape, type, whether columns come first, bytes."""
        _, shape, kind, fortran, raw = state
        if not isinstance(kind, UnsignedByte) or not isinstance(raw, bytes):
            raise pickle.UnpicklingError("an array that does not hold unsigned bytes")
        flat = np.frombuffer(raw, np.uint8)
        self.pixels = flat.reshape(shape, order="F" if fortran else "C")


class UnsignedByte:
    """A stand-in for numpy's type of unsigned bytes while a pickle is read."""

    def __init__(self, kind: object, *_: object) -> None:
        """Refuse every other type."""
        if kind not in ("u1", b"u1"):
            raise pickle.UnpicklingError(
                f"an array of type {kind!r}; only unsigned bytes are admitted"
            )

    def __setstate__(self, _: object) -> None:
        """Ignore byte order and the like, which bytes do not have."""


class _Ndarray:
    """A stand-in for the name ``numpy.ndarray``, which a pickle hands to ``_reconstruct``."""


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
    """Return the dictionary in a pickle of plain data, or refuse the pickle.

    Arrays become numpy arrays of bytes, and keys become bytes.
    """
    try:
        content = _Reader(io.BytesIO(raw), encoding="bytes").load()
    except Exception as error:  # a damaged pickle may raise almost anything
        raise DatasetError(
            f"{source} is not a batch of CIFAR that can be read safely: {error}"
        ) from error
    if not isinstance(content, dict):
        raise DatasetError(
            f"{source} is not a batch of CIFAR: "
            f"it holds a {type(content).__name__}, not a dictionary"
        )
    return {_key(key): _plain(value) for key, value in content.items()}


def _key(key: object) -> bytes:
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return key.encode()
    return repr(key).encode()


def _plain(value: object) -> object:
    if isinstance(value, ByteArray):
        return getattr(value, "pixels", None)  # no pixels in a pickle without a state
    return value

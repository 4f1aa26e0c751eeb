"""Reads the pickles CIFAR is published in without running anything that a pickle may ask for.

A pickle is a program. This reader knows containers, numbers, strings and flat arrays of bytes, and builds even
those from stand-ins of its own: no function, class or numpy routine named in the file is ever called.
"""

import io
import pickle
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bara.errors import DatasetError


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
            raise pickle.UnpicklingError(f"an array of type {kind!r}; only unsigned bytes are admitted")

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
    """The dictionary in a pickle of plain data, arrays as numpy arrays of bytes, keys as bytes.

    Args:
        raw: The pickle.
        source: Which file it is, for the message.

    Raises:
        DatasetError: If it is damaged, or asks for anything but plain data.
    """
    try:
        content = _Reader(io.BytesIO(raw), encoding="bytes").load()
    except Exception as error:  # a damaged pickle may raise almost anything
        raise DatasetError(f"{source} is not a batch of CIFAR that can be read safely: {error}") from error
    if not isinstance(content, dict):
        raise DatasetError(f"{source} is not a batch of CIFAR: it holds a {type(content).__name__}, not a dictionary")
    return {_key(key): _plain(value) for key, value in content.items()}


def _key(key: object) -> bytes:
    return key.encode() if isinstance(key, str) else key if isinstance(key, bytes) else repr(key).encode()


def _plain(value: object) -> object:
    return getattr(value, "pixels", None) if isinstance(value, ByteArray) else value

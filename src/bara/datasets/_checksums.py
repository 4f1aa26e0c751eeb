"""Checksums: whether arrays are, byte for byte, the published ones."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.datasets._catalogue import CATALOGUE, Version
from bara.datasets._record import Arrays, Source
from bara.errors import DatasetError


@dataclass(frozen=True)
class Check:
    """The checksum of an array or table beside the expected one, empty if nobody published it."""

    part: str
    file: str
    sha256: str
    expected: str

    @property
    def right(self) -> bool:
        """True if the two checksums agree, or if none was published."""
        return self.expected in ("", self.sha256)


def sha256(array: NDArray[Any]) -> str:
    """Return the SHA-256 of an array's bytes in C order.

    Labels are hashed as bytes wherever they fit, so that their integer type does not matter.

    >>> sha256(np.array([1, 2])) == sha256(np.array([1, 2], np.uint8))
    True
    """
    whole_numbers = array.ndim == 1 and array.dtype.kind in "iu" and array.size > 0
    if whole_numbers and 0 <= array.min() <= array.max() < 256:
        array = array.astype(np.uint8, copy=False)
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def compare(name: str, source: Source, arrays: Arrays) -> tuple[str, tuple[Check, ...]]:
    """Compare a dataset's arrays with the published version that they are nearest to.

    Returns:
        The version's name (empty for a dataset that is not in the catalogue) and four checks.
    """
    digests = {array: sha256(content) for array, content in arrays._asdict().items()}
    version = Version("", {})
    if name in CATALOGUE:
        version = nearest_version(CATALOGUE[name].versions, digests)
    checks = []
    for array, digest in digests.items():
        file = str(source.files.get(array, source.path))
        checks.append(Check(array, file, digest, version.sha256.get(array, "")))
    return version.name, tuple(checks)


def certify(name: str, source: Source, arrays: Arrays) -> str:
    """Return the name of the published version that the arrays equal, or refuse them."""
    version, checks = compare(name, source, arrays)
    for problem in problems(name, arrays, checks):
        raise DatasetError(problem)
    return version


def problems(name: str, arrays: Arrays, checks: tuple[Check, ...]) -> Iterator[str]:
    """Yield a message for every array whose checksum or shape is wrong."""
    for check in checks:
        shape = getattr(arrays, check.part).shape[1:]
        if not check.right:
            yield altered(name, check)
        elif check.expected and shape not in ((), CATALOGUE[name].shape):
            yield (
                f"{name}: {check.part} in {check.file} holds images of {shape}; "
                f"they must be {CATALOGUE[name].shape}"
            )


def altered(name: str, check: Check) -> str:
    """Return the message for an array or table whose checksum is wrong."""
    return (
        f"{name}: {check.part} in {check.file} is not as published "
        f"(SHA-256 {check.sha256[:12]}..., not {check.expected[:12]}...): "
        "the file is damaged or of another dataset. "
        f"Remove it and run: bara data fetch {name}; "
        "or load it with verify=False if it is meant to differ"
    )


def nearest_version(versions: Iterable[Version], digests: Mapping[str, str]) -> Version:
    """Return the version that shares most checksums with the digests, the first of equals."""

    def agreements(version: Version) -> int:
        return sum(version.sha256[key] == digest for key, digest in digests.items())

    return max(versions, key=agreements)

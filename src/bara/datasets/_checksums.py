"""Tells whether arrays are, byte for byte, what was published."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.datasets._catalogue import CATALOGUE, Version
from bara.datasets._record import Arrays, Source
from bara.errors import DatasetError


@dataclass(frozen=True)
class Check:
    """One part's checksum beside the one it should have; ``expected`` is empty for data nobody published."""

    part: str
    file: str
    sha256: str
    expected: str

    @property
    def right(self) -> bool:
        """Whether they agree, or there is nothing to agree with."""
        return self.expected in ("", self.sha256)


def sha256(array: NDArray[Any]) -> str:
    """The SHA-256 of an array's bytes in C order; labels, whatever their type, as bytes where they fit.

    >>> sha256(np.array([1, 2])) == sha256(np.array([1, 2], np.uint8))
    True
    """
    if (
        array.ndim == 1
        and array.dtype.kind in "iu"
        and array.size
        and 0 <= array.min() <= array.max() < 256
    ):
        array = array.astype(np.uint8, copy=False)
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def compare(name: str, source: Source, arrays: Arrays) -> tuple[str, tuple[Check, ...]]:
    """The version that arrays are nearest to, and each part's checksum beside that version's.

    Returns:
        The version's name (empty for a dataset that is not in the catalogue) and four checks.
    """
    digests = {part: sha256(array) for part, array in arrays._asdict().items()}
    version = _nearest(CATALOGUE[name].versions, digests) if name in CATALOGUE else Version("", {})
    checks = (
        Check(part, str(source.files.get(part, source.path)), digest, version.sha256.get(part, ""))
        for part, digest in digests.items()
    )
    return version.name, tuple(checks)


def certify(name: str, source: Source, arrays: Arrays) -> str:
    """The name of the published version that the arrays are; refuses those that are none."""
    version, checks = compare(name, source, arrays)
    for problem in problems(name, arrays, checks):
        raise DatasetError(problem)
    return version


def problems(name: str, arrays: Arrays, checks: tuple[Check, ...]) -> Iterator[str]:
    """What to tell the user about each part whose checksum or shape is wrong."""
    for check in checks:
        shape = getattr(arrays, check.part).shape[1:]
        if not check.right:
            yield altered(name, check)
        elif check.expected and shape not in ((), CATALOGUE[name].shape):
            yield f"{name}: {check.part} in {check.file} holds images of {shape}; they must be {CATALOGUE[name].shape}"


def altered(name: str, check: Check) -> str:
    """What to tell the user about a part whose checksum is wrong."""
    return (
        f"{name}: {check.part} in {check.file} is not as published (SHA-256 {check.sha256[:12]}..., "
        f"not {check.expected[:12]}...): the file is damaged or of another dataset. "
        f"Remove it and run: bara data fetch {name}; or load it with verify=False if it is meant to differ"
    )


def _nearest(versions: tuple[Version, ...], digests: Mapping[str, str]) -> Version:
    return max(
        versions, key=lambda version: sum(version.sha256[part] == digests[part] for part in digests)
    )

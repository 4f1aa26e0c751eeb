"""Memory that worker processes see too.

It has no name: it is an open file that only the parent and its workers hold, so the kernel frees it
with the last of them, however they end. Nothing can be left behind and nothing has to be cleaned
up.
"""

import mmap
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
ALIGNMENT = 4096


@final
@dataclass(frozen=True)
class ArraySlot:
    """Where one array is, and of what kind."""

    start: int
    shape: tuple[int, ...]
    dtype: str

    def find(self, memory: mmap.mmap) -> NDArray[Any]:
        """The array inside this memory, without a copy."""
        count = int(np.prod(self.shape))
        return np.frombuffer(memory, self.dtype, count, self.start).reshape(self.shape)


@final
@dataclass(frozen=True)
class MemoryLayout:
    """Where every array is, and how much memory they take together; a worker is sent this."""

    slots: Mapping[str, ArraySlot]
    size: int

    @classmethod
    def of(cls, kinds: Mapping[str, tuple[tuple[int, ...], Any]]) -> "MemoryLayout":
        """Slots for arrays of these shapes and types, each on a page of its own."""
        slots: dict[str, ArraySlot] = {}
        start = 0
        for name, (shape, dtype) in kinds.items():
            slots[name] = ArraySlot(start, shape, np.dtype(dtype).str)
            length = int(np.prod(shape)) * np.dtype(dtype).itemsize
            start += -(-length // ALIGNMENT) * ALIGNMENT
        return cls(slots, max(start, ALIGNMENT))

    def attach(self, file: int) -> Arrays:
        """The arrays in an open file; they keep the memory alive, the file may be closed."""
        memory = mmap.mmap(file, self.size)
        return {name: slot.find(memory) for name, slot in self.slots.items()}


def unnamed_file(size: int) -> int:
    """An open file of this size without a name; pages that are never written take no memory."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("bara")
    else:  # not Linux: a file that is already deleted does the same
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.truncate(file, size)
    return file

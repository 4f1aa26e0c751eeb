"""Memory that the parent process shares with its workers.

The memory is an open file without a name, held only by the parent and its workers. The kernel frees
it when the last of them ends, in whatever way, so nothing has to be cleaned up.
"""

import math
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
    """The place, shape and type of one array in the memory."""

    start: int
    shape: tuple[int, ...]
    dtype: str

    def find(self, memory: mmap.mmap) -> NDArray[Any]:
        """Return the array inside this memory, without a copy."""
        count = int(np.prod(self.shape))
        return np.frombuffer(memory, self.dtype, count, self.start).reshape(self.shape)


@final
@dataclass(frozen=True)
class MemoryLayout:
    """The places of all arrays, and the size of the memory; workers receive a copy."""

    slots: Mapping[str, ArraySlot]
    size: int

    @classmethod
    def of(cls, kinds: Mapping[str, tuple[tuple[int, ...], Any]]) -> "MemoryLayout":
        """Plan arrays of these shapes and types, each starting on a page of its own."""
        slots: dict[str, ArraySlot] = {}
        start = 0
        for name, (shape, dtype) in kinds.items():
            slots[name] = ArraySlot(start, shape, np.dtype(dtype).str)
            length = int(np.prod(shape)) * np.dtype(dtype).itemsize
            pages = math.ceil(length / ALIGNMENT)
            start += pages * ALIGNMENT
        return cls(slots, max(start, ALIGNMENT))

    def attach(self, file: int) -> Arrays:
        """Return the arrays in an open file, which may be closed afterwards."""
        memory = mmap.mmap(file, self.size)
        return {name: slot.find(memory) for name, slot in self.slots.items()}


def unnamed_file(size: int) -> int:
    """Open a file of this size without a name; pages that are never written take no memory."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("bara")
    else:  # other systems than Linux: a file that is already deleted does the same
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.truncate(file, size)
    return file

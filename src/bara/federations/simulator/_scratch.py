"""Memory that is written again and again instead of allocated."""

from typing import final

import torch
from torch import Tensor


@final
class Scratch:
    """A tensor with as many rows as are asked for; what it held before is lost.

    Only the largest ever asked for is kept, so memory is bounded by the largest batch, however the sizes vary.
    """

    def __init__(self, *row: int, dtype: torch.dtype = torch.float32) -> None:
        """Rows of this shape; none are allocated yet."""
        self._all = torch.empty((0, *row), dtype=dtype)
        self._last = self._all

    def rows(self, count: int) -> Tensor:
        """The first `count` rows."""
        if len(self._last) != count:
            self._grow(count)
            self._last = self._all[:count]
        return self._last

    def _grow(self, count: int) -> None:
        """A normal tensor whoever asks: one made in inference mode could not be written outside of it."""
        if len(self._all) < count:
            with torch.inference_mode(mode=False):
                self._all = self._all.new_empty((count, *self._all.shape[1:]))

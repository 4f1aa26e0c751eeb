"""Which samples come when, and how they get from storage into a batch."""

from collections.abc import Iterator
from typing import NamedTuple, final

import torch
from torch import Tensor

from bara.randomness import stream

BLOCK = 500
"""Samples that are taken out of storage at once."""

CHUNK = 250
"""Samples a pass takes where the result does not depend on it (evaluation, FedSGD): what fits the caches."""

Indices = Tensor | range
"""Which samples: each by its index, or so many in a row."""


class Turn(NamedTuple):
    """One client's turn in one round; the seed is the run's."""

    seed: int
    round: int
    client: int


def orders(part: Indices, turn: Turn, epochs: int) -> Iterator[Tensor]:
    """One client's samples in each epoch's order: depends on the turn, never on who trains it."""
    random = stream(turn.seed, "batches", turn.round, turn.client)
    indices = torch.arange(part.start, part.stop) if isinstance(part, range) else part
    for _ in range(epochs):
        yield indices[torch.from_numpy(random.permutation(len(part)))]


@final
class Scratch:
    """A tensor with as many rows as are asked for; what it held before is lost.

    Only the largest ever asked for is kept, so memory is bounded by the largest batch, however the
    sizes vary.
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


@final
class Samples:
    """Stored samples and labels, and the reused buffers in which batches are made.

    A batch is valid until the next one is made. Pictures are stored with the channels last and
    handed out as torch sees them, (n, channels, height, width), without moving them: torch's
    `channels_last`, in which convolutions and pooling are several times faster on CPUs.
    """

    def __init__(self, x: Tensor, y: Tensor) -> None:
        """Stand on stored tensors: uint8 or float32 samples, int64 labels."""
        self._x = x
        self._y = y
        self._stored = Scratch(*x.shape[1:], dtype=x.dtype)
        self._batch = self._stored if x.dtype == torch.float32 else Scratch(*x.shape[1:])

    def batch(self, indices: Indices) -> tuple[Tensor, Tensor]:
        """The samples at these indices as float32, and their labels."""
        stored, labels = self._found(indices)
        batch = self._batch.rows(len(indices))
        if stored is not batch:
            batch.copy_(stored)
        if stored.dtype == torch.uint8:
            batch.mul_(1 / 255)  # one multiplication of mixed types would be twice as slow
        return batch.permute(0, 3, 1, 2) if batch.ndim == 4 else batch, labels

    def _found(self, indices: Indices) -> tuple[Tensor, Tensor]:
        if isinstance(indices, range):
            return self._x[indices.start : indices.stop], self._y[indices.start : indices.stop]
        stored = torch.index_select(self._x, 0, indices, out=self._stored.rows(len(indices)))
        return stored, self._y.index_select(0, indices)

    def batches(self, indices: Indices, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of `size` along these indices; the last may be smaller.

        Several batches are made at once: a call costs as much for ten as for one, and ten still fit
        the caches.
        """
        step = size * max(1, BLOCK // size)
        for start in range(0, len(indices), step):
            x, y = self.batch(indices[start : start + step])
            yield from zip(torch.split(x, size), torch.split(y, size), strict=True)

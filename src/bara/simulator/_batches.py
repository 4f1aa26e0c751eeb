"""Batches: the order of the samples, and their way from storage into a batch."""

from collections.abc import Iterator
from typing import NamedTuple, final

import torch
from torch import Tensor

from bara.randomness import stream

BLOCK = 500
"""The number of samples that are taken out of storage at once."""

CHUNK = 250
"""The number of samples per pass in evaluation and FedSGD, chosen to fit the caches."""

Indices = Tensor | range
"""A choice of samples: each by its index, or a range of consecutive ones."""


class Turn(NamedTuple):
    """A client's turn to train in one round of a run with this seed."""

    seed: int
    round: int
    client: int


def orders(indices: Indices, turn: Turn, epochs: int) -> Iterator[Tensor]:
    """Yield a client's samples in a fresh random order for each epoch; only the turn decides it."""
    random = stream(turn.seed, "batches", turn.round, turn.client)
    if isinstance(indices, range):
        indices = torch.arange(indices.start, indices.stop)
    for _ in range(epochs):
        yield indices[torch.from_numpy(random.permutation(len(indices)))]


@final
class Scratch:
    """A reusable tensor of any number of rows, whose old content is lost.

    Only the largest tensor ever asked for stays allocated, so the largest batch bounds the memory,
    however the sizes vary.
    """

    def __init__(self, *row: int, dtype: torch.dtype = torch.float32) -> None:
        """Prepare for rows of this shape without allocating any."""
        self._all = torch.empty((0, *row), dtype=dtype)
        self._last = self._all

    def rows(self, count: int) -> Tensor:
        """Return a tensor of `count` rows."""
        if len(self._last) != count:
            self._grow(count)
            self._last = self._all[:count]
        return self._last

    def _grow(self, count: int) -> None:
        """Allocate a normal tensor: one from inference mode could not be written outside of it."""
        if len(self._all) < count:
            with torch.inference_mode(mode=False):
                self._all = self._all.new_empty((count, *self._all.shape[1:]))


@final
class Samples:
    """The stored samples and labels, and reused buffers in which batches are made.

    A batch is valid until the next one is made. Pictures are stored with the channels last and
    viewed as (n, channels, height, width) without moving them. That is torch's `channels_last`
    format, in which convolutions and pooling are several times faster on CPUs.
    """

    def __init__(self, x: Tensor, y: Tensor) -> None:
        """Refer to stored samples (uint8 or float32) and their labels, without a copy."""
        self._x = x
        self._y = y
        self._stored = Scratch(*x.shape[1:], dtype=x.dtype)
        self._batch = self._stored if x.dtype == torch.float32 else Scratch(*x.shape[1:])

    def batch(self, indices: Indices) -> tuple[Tensor, Tensor]:
        """Return the samples at these indices as float32, and their labels."""
        stored, labels = self._found(indices)
        batch = self._batch.rows(len(indices))
        if stored is not batch:
            batch.copy_(stored)
        if stored.dtype == torch.uint8:
            batch.mul_(1 / 255)  # one multiplication of mixed types would be twice as slow
        if batch.ndim == 4:
            return batch.permute(0, 3, 1, 2), labels
        return batch, labels

    def _found(self, indices: Indices) -> tuple[Tensor, Tensor]:
        """Return the samples as stored, and their labels; only single indices need a copy."""
        if isinstance(indices, range):
            return self._x[indices.start : indices.stop], self._y[indices.start : indices.stop]
        stored = torch.index_select(self._x, 0, indices, out=self._stored.rows(len(indices)))
        return stored, self._y.index_select(0, indices)

    def batches(self, indices: Indices, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield batches of `size` along these indices; the last may be smaller.

        Several batches are made in one call, which costs no more for ten than for one; ten still
        fit the caches.
        """
        step = size * max(1, BLOCK // size)
        for start in range(0, len(indices), step):
            x, y = self.batch(indices[start : start + step])
            yield from zip(torch.split(x, size), torch.split(y, size), strict=True)

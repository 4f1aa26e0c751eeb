"""Which samples come when, and how they get from storage into a batch."""

from collections.abc import Iterator
from typing import final

import numpy as np
import torch
from torch import Tensor

from bara.federations.simulator.scratch import Scratch

CHUNK = 250
"""Samples a forward pass takes where the result does not depend on it (evaluation, FedSGD): fits the caches."""


def orders(part: Tensor, seed: int, round: int, client: int, epochs: int) -> Iterator[Tensor]:  # noqa: A002
    """One client's samples in each epoch's order: depends on (seed, round, client), never on who trains it."""
    random = np.random.default_rng([seed, round, client])
    for _ in range(epochs):
        yield part[torch.from_numpy(random.permutation(len(part)))]


@final
class Samples:
    """Stored samples and labels, and the reused buffers in which batches are made.

    A batch is valid until the next one is made. Pictures are stored with the channels last and
    handed out as torch sees them, (n, channels, height, width), without moving them: torch's `channels_last`, in which
    convolutions and pooling are several times faster on CPUs.
    """

    def __init__(self, x: Tensor, y: Tensor) -> None:
        """Stand on stored tensors: uint8 or float32 samples, int64 labels."""
        self._x = x
        self._y = y
        self._scale = 1 / 255 if x.dtype == torch.uint8 else 1.0
        self._stored = Scratch(*x.shape[1:], dtype=x.dtype)
        self._batch = self._stored if x.dtype == torch.float32 else Scratch(*x.shape[1:])

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The samples at these indices as float32, and their labels."""
        stored = torch.index_select(self._x, 0, indices, out=self._stored.rows(len(indices)))
        batch = self._batch.rows(len(indices))
        if stored is not batch:
            torch.mul(stored, self._scale, out=batch)
        shaped = batch.permute(0, 3, 1, 2) if batch.ndim == 4 else batch
        return shaped, self._y.index_select(0, indices)

    def batches(self, indices: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of `size` along these indices; the last may be smaller."""
        return map(self.batch, torch.split(indices, size))

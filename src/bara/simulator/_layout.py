"""Where everything a model learns lives in one flat float32 vector.

The vector is *parameters, then buffers*: first every parameter in the module's own order, then what
the module remembers without a gradient (batch-norm means and variances), then its whole-number
buffers (`num_batches_tracked`). Aggregation averages the whole vector, so batch-norm statistics are
averaged like parameters; whole numbers are averaged too and rounded to the nearest when a module
reads them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn


@final
@dataclass(frozen=True)
class Slot:
    """One named tensor's place in the flat vector."""

    name: str
    start: int
    shape: tuple[int, ...]

    def view(self, flat: Tensor) -> Tensor:
        """This tensor inside `flat`, without a copy."""
        return flat[self.start : self.start + self.size].view(self.shape)

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return int(torch.Size(self.shape).numel())


@final
@dataclass(frozen=True)
class Layout:
    """The places of a module's parameters, of its buffers, and of its whole-number buffers."""

    parameters: tuple[Slot, ...]
    buffers: tuple[Slot, ...]
    counts: tuple[Slot, ...]

    @classmethod
    def of(cls, module: nn.Module) -> "Layout":
        """The layout of this module."""
        slots = _place(_tensors(module))
        learned = {name for name, _ in module.named_parameters()}
        whole = {name for name, buffer in module.named_buffers() if not buffer.is_floating_point()}
        return cls(
            parameters=tuple(slot for slot in slots if slot.name in learned),
            buffers=tuple(slot for slot in slots if slot.name not in learned | whole),
            counts=tuple(slot for slot in slots if slot.name in whole),
        )

    @property
    def learned(self) -> int:
        """How many numbers are parameters: they come first."""
        return sum(slot.size for slot in self.parameters)

    @property
    def size(self) -> int:
        """The length of the flat vector."""
        return sum(slot.size for slot in self)

    def __iter__(self) -> Iterator[Slot]:
        """Every slot, in the vector's order."""
        return iter(self.parameters + self.buffers + self.counts)

    def read(self, module: nn.Module) -> Tensor:
        """A flat copy of what the module holds now."""
        held = dict(_tensors(module))
        return torch.cat([held[slot.name].detach().reshape(-1).float() for slot in self])

    def write(self, flat: Tensor, module: nn.Module) -> None:
        """Copy the flat vector into the module; whole-number buffers are rounded."""
        held = dict(_tensors(module))
        for slot in self:
            value = slot.view(flat)
            held[slot.name].data.copy_(value.round() if slot in self.counts else value)


def _tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    buffers = list(module.named_buffers())
    whole = [(name, buffer) for name, buffer in buffers if not buffer.is_floating_point()]
    real = [(name, buffer) for name, buffer in buffers if buffer.is_floating_point()]
    return [*module.named_parameters(), *real, *whole]


def _place(tensors: list[tuple[str, Tensor]]) -> list[Slot]:
    slots: list[Slot] = []
    start = 0
    for name, tensor in tensors:
        slots.append(Slot(name, start, tuple(tensor.shape)))
        start += tensor.numel()
    return slots

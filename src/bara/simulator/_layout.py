"""The layout of a model's parameters and buffers in one flat float32 vector.

The vector holds first every parameter in the module's own order, then the floating-point buffers
(batch-norm means and variances), then the whole-number buffers (`num_batches_tracked`). Aggregation
averages the whole vector, so batch-norm statistics are averaged like parameters; whole numbers are
averaged too, and rounded to the nearest when a module reads them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn


@final
@dataclass(frozen=True)
class Slot:
    """The place of one named tensor in the flat vector."""

    name: str
    start: int
    shape: tuple[int, ...]

    def view(self, flat: Tensor) -> Tensor:
        """Return this tensor inside `flat`, without a copy."""
        return flat[self.start : self.start + self.size].view(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the tensor."""
        return int(torch.Size(self.shape).numel())


@final
@dataclass(frozen=True)
class Layout:
    """The places of a module's parameters, floating-point buffers and whole-number buffers."""

    parameters: tuple[Slot, ...]
    buffers: tuple[Slot, ...]
    counts: tuple[Slot, ...]

    @classmethod
    def of(cls, module: nn.Module) -> "Layout":
        """Lay out this module's tensors."""
        learned = dict(module.named_parameters())
        parameters: list[Slot] = []
        buffers: list[Slot] = []
        counts: list[Slot] = []
        start = 0
        for name, tensor in _tensors(module):
            slot = Slot(name, start, tuple(tensor.shape))
            start += tensor.numel()
            if name in learned:
                parameters.append(slot)
            elif tensor.is_floating_point():
                buffers.append(slot)
            else:
                counts.append(slot)
        return cls(tuple(parameters), tuple(buffers), tuple(counts))

    @property
    def learned(self) -> int:
        """The number of parameters, which come first in the vector."""
        return sum(slot.size for slot in self.parameters)

    @property
    def size(self) -> int:
        """The length of the flat vector."""
        return sum(slot.size for slot in self)

    def __iter__(self) -> Iterator[Slot]:
        """Iterate over every slot in the vector's order."""
        return iter(self.parameters + self.buffers + self.counts)

    def read(self, module: nn.Module) -> Tensor:
        """Return a flat copy of the module's current tensors."""
        held = dict(_tensors(module))
        return torch.cat([held[slot.name].detach().reshape(-1).float() for slot in self])

    def write(self, flat: Tensor, module: nn.Module) -> None:
        """Copy the flat vector into the module; whole-number buffers are rounded."""
        held = dict(_tensors(module))
        for slot in self:
            value = slot.view(flat)
            if slot in self.counts:
                value = value.round()
            held[slot.name].data.copy_(value)


def _tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Return the module's named tensors in the vector's order."""
    floating: list[tuple[str, Tensor]] = []
    whole: list[tuple[str, Tensor]] = []
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point():
            floating.append((name, buffer))
        else:
            whole.append((name, buffer))
    return [*module.named_parameters(), *floating, *whole]

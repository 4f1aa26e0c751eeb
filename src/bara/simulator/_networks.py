"""Networks: models over one flat vector, computed by autograd or by hand-written kernels."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, final

import torch
from torch import Tensor, nn

from bara.simulator._fused.sequential import FusedSequential, chunk_of, is_fusable
from bara.simulator._layout import Layout
from bara.simulator.losses import Loss


class Network(Protocol):
    """A model over one flat vector.

    Attributes:
        layout: The places of the model's tensors in the vector.
        state: The vector that the model computes with; training changes it.
        chunk: The number of samples of a full batch to take at once; None where a batch must stay
            whole, because its samples may influence each other (batch norm, and any module whose
            layers are not known).
    """

    layout: Layout
    state: Tensor
    chunk: int | None

    def context(self) -> AbstractContextManager[Any]:
        """Return the context in which to call `aim`, `accumulate` and `scores`.

        It is entered once for each client, because entering costs as much as a layer.
        """

    def aim(self, target: Tensor) -> None:
        """Let `accumulate` write to this flat vector of parameters, possibly the state's own."""

    def accumulate(self, x: Tensor, y: Tensor, beta: float, alpha: float) -> Tensor:
        """Do target = beta * target + alpha * (gradient of the summed loss); return the scores."""

    def scores(self, x: Tensor) -> Tensor:
        """Return the scores in evaluation mode, without changing any state."""


def network_of(module: nn.Module, loss: Loss) -> Network:
    """Return the fastest network that can train this module."""
    if isinstance(module, nn.Sequential) and is_fusable(module):
        return FusedSequential(module, loss)
    return Autograd(module, loss)


@final
class Autograd:
    """A `Network` for any module, whose parameters and gradients become views of flat vectors."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        """Move the module's parameters and buffers into one flat vector."""
        self._loss = loss
        self.layout = Layout.of(module)
        self.state = self.layout.read(module)
        self.chunk = chunk_of(module)
        self._module = module
        self._gradient = torch.zeros(self.layout.learned)
        self._target = self._gradient
        self._bind()

    def context(self) -> AbstractContextManager[Any]:
        """Return a context that does nothing."""
        return nullcontext()

    def aim(self, target: Tensor) -> None:
        """Send the gradients to this vector."""
        self._target = target

    def accumulate(self, x: Tensor, y: Tensor, beta: float, alpha: float) -> Tensor:
        """Compute one flat gradient by autograd and add it to the target."""
        self._gradient.zero_()
        scores = self._forward(x)
        self._loss.total(scores, y).backward()  # type: ignore[no-untyped-call] # not annotated
        with torch.no_grad():
            self._target.mul_(beta).add_(self._gradient, alpha=alpha)
        return scores.detach()

    def scores(self, x: Tensor) -> Tensor:
        """Return the scores in the module's evaluation mode."""
        self._module.eval()
        self._read_counts()
        with torch.no_grad():
            scores: Tensor = self._module(x)
        return scores

    def _forward(self, x: Tensor) -> Tensor:
        self._module.train()
        self._read_counts()
        scores: Tensor = self._module(x)
        self._write_counts()
        return scores

    def _bind(self) -> None:
        """Make the module's tensors views of the flat vectors, except whole-number buffers."""
        for slot in self.layout.parameters:
            parameter = self._module.get_parameter(slot.name)
            parameter.data = slot.view(self.state)
            parameter.grad = slot.view(self._gradient)
        for slot in self.layout.buffers:
            self._module.get_buffer(slot.name).data = slot.view(self.state)

    def _read_counts(self) -> None:
        for slot in self.layout.counts:
            self._module.get_buffer(slot.name).copy_(slot.view(self.state).round())

    def _write_counts(self) -> None:
        for slot in self.layout.counts:
            slot.view(self.state).copy_(self._module.get_buffer(slot.name))

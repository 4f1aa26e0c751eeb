"""A model as local training sees it: over one flat vector, by autograd or by hand-written kernels."""

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
        layout: what is where in the vector.
        state: the vector the model computes with: written before training, moved by it.
        chunk: how much of a full batch to take at once; None where it cannot be divided, because
            the samples of a batch may influence each other (batch norm; of a user's own module
            nothing is known).
    """

    layout: Layout
    state: Tensor
    chunk: int | None

    def context(self) -> AbstractContextManager[Any]:
        """What everything below is done in: entered once a client, because entering costs as much as a layer."""

    def aim(self, target: Tensor) -> None:
        """Let `accumulate` write to this flat vector of parameters; it may be the state's own."""

    def accumulate(self, x: Tensor, y: Tensor, beta: float, alpha: float) -> Tensor:
        """Do target = beta * target + alpha * gradient of the batch's summed loss; return the scores."""

    def scores(self, x: Tensor) -> Tensor:
        """The scores as evaluation sees them: nothing is remembered, nothing moves."""


def network_of(module: nn.Module, loss: Loss) -> Network:
    """The fastest network that can train this module."""
    if isinstance(module, nn.Sequential) and is_fusable(module):
        return FusedSequential(module, loss)
    return Autograd(module, loss)


@final
class Autograd:
    """A `Network` for any `torch.nn.Module`: its parameters and gradients are views into flat vectors."""

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
        """Nothing special."""
        return nullcontext()

    def aim(self, target: Tensor) -> None:
        """Let the gradients go there."""
        self._target = target

    def accumulate(self, x: Tensor, y: Tensor, beta: float, alpha: float) -> Tensor:
        """Backward into one flat gradient, then one pass over the target."""
        self._gradient.zero_()
        scores = self._forward(x)
        self._loss.total(scores, y).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            self._target.mul_(beta).add_(self._gradient, alpha=alpha)
        return scores.detach()

    def scores(self, x: Tensor) -> Tensor:
        """In the module's evaluation mode."""
        self._module.eval()
        self._read_counts()
        with torch.no_grad():
            return self._module(x)  # type: ignore[no-any-return]

    def _forward(self, x: Tensor) -> Tensor:
        self._module.train()
        self._read_counts()
        scores: Tensor = self._module(x)
        self._write_counts()
        return scores

    def _bind(self) -> None:
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

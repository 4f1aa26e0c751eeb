"""Networks: models over one flat vector, computed by autograd or by hand-written kernels.

The kernels serve a plain sequence of known layers. Besides them, two things make that fast: no
gradient is stored (see `_kernels`), and the first layer never computes the gradient of the samples
themselves.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, final

import torch
from torch import Tensor, nn

from bara.simulator._batches import CHUNK
from bara.simulator._kernels import (
    BatchNorm,
    Convolution,
    Flatten,
    Kernel,
    Linear,
    MaxPool,
    Relu,
    Tensors,
)
from bara.simulator._layout import Layout, Slot
from bara.simulator.losses import Loss

KERNELS: dict[type[nn.Module], Callable[[Any, Tensors], Kernel]] = {
    nn.Linear: Linear,
    nn.Conv2d: Convolution,
    nn.ReLU: Relu,
    nn.MaxPool2d: MaxPool,
    nn.BatchNorm2d: BatchNorm,
    nn.Flatten: Flatten,
}


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


def is_fusable(module: nn.Module) -> bool:
    """Return whether the kernels can compute this module: an `nn.Sequential` of usual layers.

    Each layer must occur once only, because a module names a repeated child only once.
    """
    if type(module) is not nn.Sequential or len(module) == 0:
        return False
    repeats = len(set(module)) < len(module)
    return not repeats and all(map(_usual, module))


def chunk_of(module: nn.Module) -> int | None:
    """Return the number of samples of a full batch to take at once, or None for all of them.

    Matrix products are fast on large chunks, convolutions on chunks that fit the cache.
    """
    kinds = {type(layer) for layer in module.modules()}
    if not is_fusable(module) or nn.BatchNorm2d in kinds:
        return None
    return CHUNK if nn.Conv2d in kinds else 4 * CHUNK


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


@final
class FusedSequential:
    """A `Network` for every module that `is_fusable`."""

    def __init__(self, module: nn.Sequential, loss: Loss) -> None:
        """Copy the module's values; the module itself is not used afterwards."""
        self._loss = loss
        self.layout = Layout.of(module)
        self.state = self.layout.read(module)
        self.chunk = chunk_of(module)
        self._kernels: list[Kernel] = []
        self._slots: list[dict[str, Slot]] = []
        for name, layer in _pool_first(list(module.named_children())):
            slots = self._slots_of(name)
            held = {within: slot.view(self.state) for within, slot in slots.items()}
            self._kernels.append(KERNELS[type(layer)](layer, held))
            self._slots.append(slots)
        self._forwards = [kernel.forward for kernel in self._kernels]
        # Backward goes from the top down to the lowest layer that learns. That layer need not
        # compute the gradient of its input; those above must.
        lowest = min((i for i, slots in enumerate(self._slots) if slots), default=0)
        self._backwards: list[tuple[Callable[..., Tensor], bool]] = []
        for i in reversed(range(lowest, len(self._kernels))):
            self._backwards.append((self._kernels[i].backward, i > lowest))

    def context(self) -> AbstractContextManager[Any]:
        """Return a context without autograd."""
        return torch.inference_mode()

    def aim(self, target: Tensor) -> None:
        """Send each kernel's gradients to its own slots of the target."""
        for kernel, slots in zip(self._kernels, self._slots, strict=True):
            targets = {}
            for name, slot in slots.items():
                if slot in self.layout.parameters:
                    targets[name] = slot.view(target)
            kernel.aim(targets)

    def accumulate(self, x: Tensor, y: Tensor, beta: float, alpha: float) -> Tensor:
        """Compute the scores, then send every kernel's gradients to the target."""
        scores = self._forward(x, training=True)
        g = self._loss.gradient(scores, y)
        for backward, wanted in self._backwards:
            g = backward(g, beta, alpha, wanted=wanted)
        return scores

    def scores(self, x: Tensor) -> Tensor:
        """Return the scores in evaluation mode."""
        return self._forward(x, training=False)

    def _forward(self, x: Tensor, *, training: bool) -> Tensor:
        for forward in self._forwards:
            x = forward(x, training=training)
        return x

    def _slots_of(self, layer: str) -> dict[str, Slot]:
        """Return the slots of a layer, by the tensors' names within the layer."""
        prefix = f"{layer}."
        slots = {}
        for slot in self.layout:
            if slot.name.startswith(prefix):
                slots[slot.name.removeprefix(prefix)] = slot
        return slots


def _pool_first(layers: list[tuple[str, nn.Module]]) -> list[tuple[str, nn.Module]]:
    """Swap ReLU and max pooling where they meet: the same numbers, a quarter of the work."""
    layers = layers.copy()
    for i in range(len(layers) - 1):
        if isinstance(layers[i][1], nn.ReLU) and isinstance(layers[i + 1][1], nn.MaxPool2d):
            layers[i], layers[i + 1] = layers[i + 1], layers[i]
    return layers


def _usual(layer: nn.Module) -> bool:
    """Return whether a kernel can compute this layer with its options."""
    match layer:
        case nn.Linear():
            return type(layer) is nn.Linear and layer.bias is not None
        case nn.Conv2d():
            return type(layer) is nn.Conv2d and layer.bias is not None and _zero_padded(layer)
        case nn.BatchNorm2d():
            return layer.affine and layer.track_running_stats and layer.momentum is not None
        case nn.MaxPool2d():
            return not layer.return_indices
        case nn.Flatten():
            return (layer.start_dim, layer.end_dim) == (1, -1)
    return type(layer) is nn.ReLU


def _zero_padded(layer: nn.Conv2d) -> bool:
    return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)

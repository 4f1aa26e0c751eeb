"""The fast network: a plain sequence of known layers, computed by hand-written kernels.

Besides the kernels, two things make it fast: no gradient is stored (see `kernels`), and the first
layer never computes the gradient of the samples themselves.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, final

import torch
from torch import Tensor, nn

from bara.simulator._batches import CHUNK
from bara.simulator._fused.kernels import (
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

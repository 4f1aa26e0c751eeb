"""The fast network: a plain sequence of known layers, computed by hand-written kernels.

Two things make it fast beside the kernels: no gradient is stored (see `kernels`), and the first
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
    """Whether the kernels can compute this module: an `nn.Sequential` of layers they know, in their usual form.

    Each layer stands once: a module names its children once, however often it calls them.
    """
    return (
        type(module) is nn.Sequential
        and 0 < len(module) == len(set(module))
        and all(map(_usual, module))
    )


def chunk_of(module: nn.Module) -> int | None:
    """How much of a full batch to take at once: products like it large, convolutions in the cache."""
    kinds = {type(layer) for layer in module.modules()}
    if not is_fusable(module) or nn.BatchNorm2d in kinds:
        return None
    return CHUNK if nn.Conv2d in kinds else 4 * CHUNK


@final
class FusedSequential:
    """A `Network` for every module that `is_fusable`."""

    def __init__(self, module: nn.Sequential, loss: Loss) -> None:
        """Take over the module's values; the module itself is not touched afterwards."""
        self._loss = loss
        self.layout = Layout.of(module)
        self.state = self.layout.read(module)
        self.chunk = chunk_of(module)
        self._kernels, self._names = self._compile(_pool_first(list(module.named_children())))
        first = next((i for i, slots in enumerate(self._names) if slots), 0)
        self._forwards = [kernel.forward for kernel in self._kernels]
        # From the top down to the first layer that learns; each of them but that one owes the one
        # below its gradient.
        self._backwards = [
            (kernel.backward, i > 0) for i, kernel in enumerate(self._kernels[first:])
        ][::-1]

    def context(self) -> AbstractContextManager[Any]:
        """No autograd at all."""
        return torch.inference_mode()

    def aim(self, target: Tensor) -> None:
        """Each kernel writes to its own place in the target."""
        for kernel, slots in zip(self._kernels, self._names, strict=True):
            kernel.aim(
                {
                    name: slot.view(target)
                    for name, slot in slots.items()
                    if slot in self.layout.parameters
                }
            )

    def accumulate(self, x: Tensor, y: Tensor, beta: float, alpha: float) -> Tensor:
        """Forward, the gradient of the loss by the scores, backward."""
        scores = self._forward(x, training=True)
        g = self._loss.gradient(scores, y)
        for backward, wanted in self._backwards:
            g = backward(g, beta, alpha, wanted=wanted)
        return scores

    def scores(self, x: Tensor) -> Tensor:
        """Forward only."""
        return self._forward(x, training=False)

    def _forward(self, x: Tensor, *, training: bool) -> Tensor:
        for forward in self._forwards:
            x = forward(x, training=training)
        return x

    def _compile(
        self, layers: list[tuple[str, nn.Module]]
    ) -> tuple[list[Kernel], list[dict[str, Slot]]]:
        names = [
            {
                s.name.removeprefix(f"{name}."): s
                for s in self.layout
                if s.name.startswith(f"{name}.")
            }
            for name, _ in layers
        ]
        kernels = [
            KERNELS[type(layer)](
                layer, {name: slot.view(self.state) for name, slot in slots.items()}
            )
            for (_, layer), slots in zip(layers, names, strict=True)
        ]
        return kernels, names


def _pool_first(layers: list[tuple[str, nn.Module]]) -> list[tuple[str, nn.Module]]:
    """Swap ReLU and max pooling where they meet: the same numbers, a quarter of the work."""
    layers = layers.copy()
    for i in range(len(layers) - 1):
        if isinstance(layers[i][1], nn.ReLU) and isinstance(layers[i + 1][1], nn.MaxPool2d):
            layers[i], layers[i + 1] = layers[i + 1], layers[i]
    return layers


def _usual(layer: nn.Module) -> bool:
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

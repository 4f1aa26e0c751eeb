"""One layer each: forward, and a backward that writes its gradient where it is wanted in the same product.

A kernel's `aim` names the tensors its gradients go to; `backward` then does, for each of them,

    target = beta * target + alpha * gradient

inside the matrix product itself (BLAS's own alpha and beta). Aimed at its own weights with alpha =
-rate / batch that *is* the SGD step: no gradient is ever stored, no pass over the weights is made.
So that a layer's old weights are still there when they are needed, the gradient for the layer below
is computed first.
"""

from typing import Protocol, Self, final

import torch
from torch import Tensor, nn

from bara.simulator._batches import Scratch

Tensors = dict[str, Tensor]
aten = torch.ops.aten

BLOCK = 10
"""Pictures that are unfolded at once: their windows stay in the cache until they are multiplied."""


class Kernel(Protocol):
    """A layer that computes by hand; `forward` remembers what `backward` needs."""

    def aim(self, targets: Tensors) -> None:
        """Send gradients to these tensors, by the parameter's name in its layer."""

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """This layer's output."""

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Send the gradients off; the input's gradient is returned, and only computed when wanted."""


@final
class Linear:
    """y = x W' + b."""

    def __init__(self, layer: nn.Linear, held: Tensors) -> None:
        """Compute with the held weights."""
        self._weight, self._turned, self._bias = held["weight"], held["weight"].t(), held["bias"]
        self._scratch = Scratch(layer.out_features), Scratch(layer.in_features)
        self._g = self._turned_g = torch.empty(0)
        self._allot(0)

    def aim(self, targets: Tensors) -> None:
        """Gradients of weight and bias."""
        self._to_weight, self._to_bias = targets["weight"], targets["bias"]

    def forward(self, x: Tensor, *, training: bool) -> Tensor:  # noqa: ARG002 - the kernels' common shape
        """One product, the bias inside it."""
        self._x = x
        if len(x) != self._rows:
            self._allot(len(x))
        return torch.addmm(self._bias, x, self._turned, out=self._y)

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Two products and one with a vector of ones, which is the sum over the batch."""
        if g is not self._g:  # it mostly is: the layer above writes to the same memory every time
            self._g, self._turned_g = g, g.t()
        back = torch.mm(g, self._weight, out=self._back) if wanted else g
        self._to_weight.addmm_(self._turned_g, self._x, beta=beta, alpha=alpha)
        self._to_bias.addmv_(self._turned_g, self._ones, beta=beta, alpha=alpha)
        return back

    def _allot(self, rows: int) -> None:
        """Memory for a batch of this size: asked for once, a small product would notice every question."""
        self._rows = rows
        self._y, self._back = (scratch.rows(rows) for scratch in self._scratch)
        self._ones = torch.ones(rows)


@final
class Convolution:
    """A two-dimensional convolution; its input and output are channels last."""

    def __init__(self, layer: nn.Conv2d, held: Tensors) -> None:
        """Compute with the held weights and the layer's stride and padding."""
        self._weight, self._bias = held["weight"], held["bias"]
        self._how = (
            list(layer.stride),
            list(layer.padding),
            list(layer.dilation),
            False,
            [0, 0],
            layer.groups,
        )
        # measured: large windows over many channels are faster channels first, converting there and
        # back included
        self._inside = torch.contiguous_format if _is_wide(layer) else torch.channels_last
        self._unfolding = Unfolding.where_faster(layer)

    def aim(self, targets: Tensors) -> None:
        """Gradients of weight and bias."""
        self._to_weight, self._to_bias = targets["weight"], targets["bias"]

    def forward(self, x: Tensor, *, training: bool) -> Tensor:  # noqa: ARG002 - the kernels' common shape
        """The library's own kernel; it is fast only when the weights are channels-last too."""
        self._x = x.contiguous(memory_format=self._inside)
        self._now = self._weight.contiguous(memory_format=self._inside)
        y: Tensor = aten.convolution.default(self._x, self._now, self._bias, *self._how)
        return y.contiguous(memory_format=torch.channels_last)

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """The library's own kernel, or products over windows; the passes over its small weights cost nothing beside."""
        g = g.contiguous(memory_format=self._inside)
        if self._unfolding is None:
            back, weight, bias = self._library(g, [wanted, True, True])
        else:
            back = self._library(g, [True, False, False])[0] if wanted else g
            weight, bias = self._unfolding.gradient(self._x, g), g.sum((0, 2, 3))
        self._to_weight.mul_(beta).add_(weight, alpha=alpha)
        self._to_bias.mul_(beta).add_(bias, alpha=alpha)
        return back.contiguous(memory_format=torch.channels_last) if wanted else g

    def _library(self, g: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor, Tensor]:
        """Which of the gradients of input, weight and bias are wanted."""
        back: tuple[Tensor, Tensor, Tensor] = aten.convolution_backward.default(
            g, self._x, self._now, [len(self._bias)], *self._how, wanted
        )
        return back


@final
class Unfolding:
    """The weight gradient of a convolution as matrix products over the unfolded windows of its input.

    For 3x3 windows over many channels the library's own kernel takes a third longer, measured at
    batches of 50. Elsewhere it is as fast, and is used. Each position of the output is a row.
    """

    def __init__(self, layer: nn.Conv2d) -> None:
        """For this layer's windows."""
        self._layer = layer
        self._shape = torch.Size()

    @classmethod
    def where_faster(cls, layer: nn.Conv2d) -> Self | None:
        """One for a layer that the library's kernel is slow for, else none."""
        small = layer.kernel_size == (3, 3) and layer.dilation == (1, 1)
        return cls(layer) if small and layer.in_channels >= 16 and layer.groups == 1 else None

    def gradient(self, x: Tensor, g: Tensor) -> Tensor:
        """The weights' gradient, from the input and the gradient of the output, both with the channels last."""
        if x.shape != self._shape:
            self._allot(x)
        self._inside.copy_(x.permute(0, 2, 3, 1))
        for i, (windows, unfolded) in enumerate(self._blocks):
            unfolded.copy_(windows)
            here = g[i * BLOCK : (i + 1) * BLOCK].permute(0, 2, 3, 1).flatten(0, 2)
            self._sum.addmm_(unfolded.view(len(here), -1).t(), here, beta=float(i > 0))
        return self._result

    def _allot(self, x: Tensor) -> None:
        """Memory and views for a batch of this shape."""
        count, channels, height, width = x.shape
        (high, wide), (down, right) = self._layer.kernel_size, self._layer.stride
        top, left = (int(edge) for edge in self._layer.padding)
        padded = x.new_zeros(count, height + 2 * top, width + 2 * left, channels)
        windows = padded.unfold(1, high, down).unfold(2, wide, right).permute(0, 1, 2, 4, 5, 3)
        memory = x.new_empty(windows[:BLOCK].shape)
        self._blocks = [(block, memory[: len(block)]) for block in torch.split(windows, BLOCK)]
        self._inside = padded[:, top : top + height, left : left + width]
        self._sum = x.new_empty(high * wide * channels, self._layer.out_channels)
        self._result = self._sum.view(high, wide, channels, -1).permute(3, 2, 0, 1)
        self._shape = x.shape


@final
class Relu:
    """max(x, 0), in place: no layer below needs its own output."""

    def __init__(self, layer: nn.ReLU, held: Tensors) -> None:
        """Nothing to hold."""

    def aim(self, targets: Tensors) -> None:
        """Nothing to aim."""

    def forward(self, x: Tensor, *, training: bool) -> Tensor:  # noqa: ARG002 - the kernels' common shape
        """In place."""
        self._y = x.relu_()
        return self._y

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:  # noqa: ARG002
        """Nothing where the output was nothing: in place, for the layer above has done with it."""
        back: Tensor = aten.threshold_backward.grad_input(g, self._y, 0, grad_input=g)
        return back


@final
class MaxPool:
    """The largest of each window."""

    def __init__(self, layer: nn.MaxPool2d, held: Tensors) -> None:  # noqa: ARG002 - the kernels' common shape
        """Take over the layer's window."""
        window, step, edge = (_pair(n) for n in (layer.kernel_size, layer.stride, layer.padding))
        self._how = (window, step, edge, _pair(layer.dilation), layer.ceil_mode)
        self._back = torch.empty(0)

    def aim(self, targets: Tensors) -> None:
        """Nothing to aim."""

    def forward(self, x: Tensor, *, training: bool) -> Tensor:  # noqa: ARG002 - the kernels' common shape
        """Remember which one was the largest."""
        if self._back.shape != x.shape:
            self._allot(x)
        aten.max_pool2d_with_indices.out(x, *self._how, out=self._out, indices=self._where)
        return self._out

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:  # noqa: ARG002
        """The largest one takes the gradient; its memory format is the one that comes out."""
        last = g.is_contiguous(memory_format=torch.channels_last)
        where, back = (self._where, self._back) if last else (self._where.contiguous(), self._first)
        return aten.max_pool2d_with_indices_backward.grad_input(  # type: ignore[no-any-return]
            g, back, *self._how, where, grad_input=back
        )

    def _allot(self, x: Tensor) -> None:
        """Memory for a batch of this size, used again for the next: fresh pages would cost more than the pooling."""
        made: tuple[Tensor, Tensor] = aten.max_pool2d_with_indices.default(x, *self._how)
        self._out, self._where = made
        self._back, self._first = torch.empty_like(x), torch.empty(x.shape)


@final
class BatchNorm:
    """Batch normalisation; while training it moves the running statistics and counts the batch."""

    def __init__(self, layer: nn.BatchNorm2d, held: Tensors) -> None:
        """Compute with the held scale, shift and statistics."""
        self._weight, self._bias = held["weight"], held["bias"]
        self._mean, self._var, self._count = (
            held[n] for n in ("running_mean", "running_var", "num_batches_tracked")
        )
        self._momentum, self._eps = float(layer.momentum or 0), float(layer.eps)
        self._how_back = (True, self._eps, [True, True, True])

    def aim(self, targets: Tensors) -> None:
        """Gradients of scale and shift."""
        self._to_weight, self._to_bias = targets["weight"], targets["bias"]

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """By the batch's own statistics while training, by the running ones otherwise."""
        self._x = x
        if training:
            self._count.add_(1)
        y, self._m, self._s = aten.native_batch_norm.default(
            x, self._weight, self._bias, self._mean, self._var, training, self._momentum, self._eps
        )
        return y  # type: ignore[no-any-return]

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:  # noqa: ARG002
        """The library's own kernel."""
        g = g.contiguous(memory_format=torch.channels_last)
        back, weight, bias = aten.native_batch_norm_backward.default(
            g, self._x, self._weight, self._mean, self._var, self._m, self._s, *self._how_back
        )
        self._to_weight.mul_(beta).add_(weight, alpha=alpha)
        self._to_bias.mul_(beta).add_(bias, alpha=alpha)
        return back  # type: ignore[no-any-return]


@final
class Flatten:
    """All but the first dimension in one."""

    def __init__(self, layer: nn.Flatten, held: Tensors) -> None:
        """Nothing to hold."""

    def aim(self, targets: Tensors) -> None:
        """Nothing to aim."""

    def forward(self, x: Tensor, *, training: bool) -> Tensor:  # noqa: ARG002 - the kernels' common shape
        """In torch's order (channels, height, width), whatever the order in memory."""
        self._shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:  # noqa: ARG002
        """Back into pictures, channels first; a kernel below that wants them otherwise makes them so."""
        return g.view(self._shape)


def _is_wide(layer: nn.Conv2d) -> bool:
    return layer.in_channels >= 16 and min(layer.kernel_size) >= 5


def _pair(number: int | tuple[int, ...]) -> list[int]:
    return [number, number] if isinstance(number, int) else list(number)

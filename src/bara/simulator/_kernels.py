"""The kernels: one class per kind of layer, with a forward and a backward pass by hand.

A kernel's `aim` sets the tensors that its gradients go to; `backward` then does, for each of them,

    target = beta * target + alpha * gradient

inside the matrix product itself (BLAS's own alpha and beta). When a kernel is aimed at its own
weights with alpha = -rate / batch, that *is* the SGD step: no gradient is ever stored, and no pass
over the weights is made. The gradient for the layer below needs the old weights, so it is computed
first.
"""

# ruff: noqa: ARG002 - all kernels have the same methods, and some do not use every argument

from typing import Protocol, Self, final

import torch
from torch import Tensor, nn

from bara.simulator._batches import Scratch

Tensors = dict[str, Tensor]
aten = torch.ops.aten

BLOCK = 10
"""The number of pictures unfolded at once, whose windows stay in the cache until multiplied."""


class Kernel(Protocol):
    """A layer computed by hand; `forward` remembers what `backward` needs."""

    def aim(self, targets: Tensors) -> None:
        """Send the gradients to these tensors, named like the layer's parameters."""

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """Return the layer's output."""

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Send the parameters' gradients to their targets; return the input's gradient if wanted.

        Args:
            g: The gradient of the layer's output.
            beta: The factor of a target's old value.
            alpha: The factor of a parameter's gradient.
            wanted: Whether the input's gradient is needed; if not, any tensor may be returned.
        """


@final
class Linear:
    """A linear layer: y = x W' + b."""

    def __init__(self, layer: nn.Linear, held: Tensors) -> None:
        """Compute with the held weights."""
        self._weight = held["weight"]
        self._turned = self._weight.t()
        self._bias = held["bias"]
        self._outputs = Scratch(layer.out_features)
        self._input_gradients = Scratch(layer.in_features)
        self._g = self._turned_g = torch.empty(0)
        self._allot(0)

    def aim(self, targets: Tensors) -> None:
        """Send the gradients of weight and bias to these tensors."""
        self._to_weight = targets["weight"]
        self._to_bias = targets["bias"]

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """Return the output by one product that includes the bias."""
        self._x = x
        if len(x) != self._rows:
            self._allot(len(x))
        return torch.addmm(self._bias, x, self._turned, out=self._y)

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Do two products, and one with a vector of ones for the sum over the batch."""
        if g is not self._g:  # mostly it is, for the layer above reuses its memory
            self._g = g
            self._turned_g = g.t()
        back = torch.mm(g, self._weight, out=self._back) if wanted else g
        self._to_weight.addmm_(self._turned_g, self._x, beta=beta, alpha=alpha)
        self._to_bias.addmv_(self._turned_g, self._ones, beta=beta, alpha=alpha)
        return back

    def _allot(self, rows: int) -> None:
        """Allocate memory for batches of this size, once: small products would notice each call."""
        self._rows = rows
        self._y = self._outputs.rows(rows)
        self._back = self._input_gradients.rows(rows)
        self._ones = torch.ones(rows)


@final
class Convolution:
    """A two-dimensional convolution, with input and output in the channels-last format."""

    def __init__(self, layer: nn.Conv2d, held: Tensors) -> None:
        """Compute with the held weights and the layer's stride and padding."""
        self._weight = held["weight"]
        self._bias = held["bias"]
        self._how = (
            list(layer.stride),
            list(layer.padding),
            list(layer.dilation),
            False,
            [0, 0],
            layer.groups,
        )
        # Measurements show that large windows over many channels are faster with channels first,
        # even counting the conversion there and back.
        self._inside = torch.contiguous_format if _is_wide(layer) else torch.channels_last
        self._unfolding = Unfolding.where_faster(layer)

    def aim(self, targets: Tensors) -> None:
        """Send the gradients of weight and bias to these tensors."""
        self._to_weight = targets["weight"]
        self._to_bias = targets["bias"]

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """Return the output by torch's kernel, fast only if the weights have the same format."""
        self._x = x.contiguous(memory_format=self._inside)
        self._now = self._weight.contiguous(memory_format=self._inside)
        y: Tensor = aten.convolution.default(self._x, self._now, self._bias, *self._how)
        return y.contiguous(memory_format=torch.channels_last)

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Use torch's kernel, or products over windows; the passes over the weights are cheap."""
        g = g.contiguous(memory_format=self._inside)
        back = g
        if self._unfolding is None:
            back, weight, bias = self._library(g, [wanted, True, True])
        else:
            if wanted:
                back, _, _ = self._library(g, [True, False, False])
            weight = self._unfolding.gradient(self._x, g)
            bias = g.sum((0, 2, 3))
        self._to_weight.mul_(beta).add_(weight, alpha=alpha)
        self._to_bias.mul_(beta).add_(bias, alpha=alpha)
        return back.contiguous(memory_format=torch.channels_last) if wanted else g

    def _library(self, g: Tensor, wanted: list[bool]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the wanted ones of the gradients of input, weight and bias, by torch's kernel."""
        gradients: tuple[Tensor, Tensor, Tensor] = aten.convolution_backward.default(
            g, self._x, self._now, [len(self._bias)], *self._how, wanted
        )
        return gradients


@final
class Unfolding:
    """The weight gradient of a convolution, by matrix products over its input's windows.

    For 3x3 windows over many channels, torch's own kernel takes a third longer, measured at batches
    of 50. Elsewhere it is as fast, and is used. Each position of the output is a row.
    """

    def __init__(self, layer: nn.Conv2d) -> None:
        """Prepare for this layer's windows."""
        self._layer = layer
        self._shape = torch.Size()

    @classmethod
    def where_faster(cls, layer: nn.Conv2d) -> Self | None:
        """Return an unfolding for a layer for which torch's kernel is slow, otherwise None."""
        small = layer.kernel_size == (3, 3) and layer.dilation == (1, 1)
        if small and layer.in_channels >= 16 and layer.groups == 1:
            return cls(layer)
        return None

    def gradient(self, x: Tensor, g: Tensor) -> Tensor:
        """Return the weights' gradient from the input and the output's gradient, channels last."""
        if x.shape != self._shape:
            self._allot(x)
        self._inside.copy_(x.permute(0, 2, 3, 1))
        beta = 0.0  # the first block replaces the old sum, the others add to it
        for i, (windows, unfolded) in enumerate(self._blocks):
            unfolded.copy_(windows)
            here = g[i * BLOCK : (i + 1) * BLOCK].permute(0, 2, 3, 1).flatten(0, 2)
            self._sum.addmm_(unfolded.view(len(here), -1).t(), here, beta=beta)
            beta = 1.0
        return self._result

    def _allot(self, x: Tensor) -> None:
        """Allocate memory and views for batches of this shape."""
        count, channels, height, width = x.shape
        high, wide = self._layer.kernel_size
        down, right = self._layer.stride
        top, left = map(int, self._layer.padding)
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
    """The function max(x, 0), in place, since no layer below needs its own output."""

    def __init__(self, layer: nn.ReLU, held: Tensors) -> None:
        """Accept the common arguments; this layer holds no tensors."""

    def aim(self, targets: Tensors) -> None:
        """Ignore the targets; this layer has no gradients of its own."""

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """Return the output, in the input's memory."""
        self._y = x.relu_()
        return self._y

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Return the gradient with 0 where the output was 0, in the memory of `g`."""
        back: Tensor = aten.threshold_backward.grad_input(g, self._y, 0, grad_input=g)
        return back


@final
class MaxPool:
    """The maximum of each window of a picture."""

    def __init__(self, layer: nn.MaxPool2d, held: Tensors) -> None:
        """Use the layer's window, stride and padding."""
        self._how = (
            _pair(layer.kernel_size),
            _pair(layer.stride),
            _pair(layer.padding),
            _pair(layer.dilation),
            layer.ceil_mode,
        )
        self._back = torch.empty(0)

    def aim(self, targets: Tensors) -> None:
        """Ignore the targets; this layer has no gradients of its own."""

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """Return the maxima and remember their places."""
        if self._back.shape != x.shape:
            self._allot(x)
        aten.max_pool2d_with_indices.out(x, *self._how, out=self._out, indices=self._where)
        return self._out

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Send each window's gradient to its maximum; the result has the memory format of `g`."""
        where = self._where
        back = self._back
        if not g.is_contiguous(memory_format=torch.channels_last):
            where = where.contiguous()
            back = self._first
        aten.max_pool2d_with_indices_backward.grad_input(
            g, back, *self._how, where, grad_input=back
        )
        return back

    def _allot(self, x: Tensor) -> None:
        """Allocate memory for batches of this size; fresh pages would cost more than the pooling.

        `_back` has the memory format of `x`, channels last; `_first` has the channels first.
        """
        pooled: tuple[Tensor, Tensor] = aten.max_pool2d_with_indices.default(x, *self._how)
        self._out, self._where = pooled
        self._back = torch.empty_like(x)
        self._first = torch.empty(x.shape)


@final
class BatchNorm:
    """Batch normalisation, which updates the running statistics and the count while training."""

    def __init__(self, layer: nn.BatchNorm2d, held: Tensors) -> None:
        """Compute with the held scale, shift and statistics."""
        self._weight = held["weight"]
        self._bias = held["bias"]
        self._mean = held["running_mean"]
        self._var = held["running_var"]
        self._count = held["num_batches_tracked"]
        self._momentum = float(layer.momentum or 0)
        self._eps = float(layer.eps)
        self._how_back = (True, self._eps, [True, True, True])

    def aim(self, targets: Tensors) -> None:
        """Send the gradients of scale and shift to these tensors."""
        self._to_weight = targets["weight"]
        self._to_bias = targets["bias"]

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """Normalise by the batch's own statistics while training, otherwise by the running ones."""
        self._x = x
        if training:
            self._count.add_(1)
        normed: tuple[Tensor, Tensor, Tensor] = aten.native_batch_norm.default(
            x, self._weight, self._bias, self._mean, self._var, training, self._momentum, self._eps
        )
        y, self._m, self._s = normed
        return y

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Compute all gradients by torch's kernel."""
        g = g.contiguous(memory_format=torch.channels_last)
        gradients: tuple[Tensor, Tensor, Tensor] = aten.native_batch_norm_backward.default(
            g, self._x, self._weight, self._mean, self._var, self._m, self._s, *self._how_back
        )
        back, weight, bias = gradients
        self._to_weight.mul_(beta).add_(weight, alpha=alpha)
        self._to_bias.mul_(beta).add_(bias, alpha=alpha)
        return back


@final
class Flatten:
    """A layer that flattens all dimensions but the first into one."""

    def __init__(self, layer: nn.Flatten, held: Tensors) -> None:
        """Accept the common arguments; this layer holds no tensors."""

    def aim(self, targets: Tensors) -> None:
        """Ignore the targets; this layer has no gradients of its own."""

    def forward(self, x: Tensor, *, training: bool) -> Tensor:
        """Flatten in torch's order (channels, height, width), whatever the order in memory."""
        self._shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, g: Tensor, beta: float, alpha: float, *, wanted: bool) -> Tensor:
        """Return the gradient in the shape of the input, with the channels first."""
        return g.view(self._shape)


def _is_wide(layer: nn.Conv2d) -> bool:
    """Return whether a convolution has large windows over many channels."""
    return layer.in_channels >= 16 and min(layer.kernel_size) >= 5


def _pair(number: int | tuple[int, ...]) -> list[int]:
    return [number, number] if isinstance(number, int) else list(number)

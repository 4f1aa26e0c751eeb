"""A client's training with local differential privacy: clipped gradients and Laplace noise (FL-Market).

Notation:
    L       the bound of a gradient's L1 norm
    d       the client's samples
    eps     its privacy budget for one round

`client` level: the mean gradient over all samples, clipped to L, changes by at most 2 L in L1 norm
when the client's data are replaced: Laplace(2 L / eps) on every coordinate makes one round
eps-differentially private for the whole client. `record` level: every sample's own gradient is
clipped to L, so that their mean changes by at most 2 L / d when one sample is replaced: Laplace(2 L
/ (d eps)) protects each sample. (Zheng et al. 2022; the record level is ours.)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import linear

from bara.errors import ConfigError
from bara.protocols import Protection
from bara.randomness import stream
from bara.simulator._batches import CHUNK, Indices, Samples, Turn
from bara.simulator._fused.sequential import is_fusable
from bara.simulator._layout import Layout
from bara.simulator.losses import Loss, Own

MEMORY = 2**23
"""Numbers that the gradients of one chunk of samples may hold."""

Weights = dict[str, Tensor]
ClippedSum = Callable[[Weights, Tensor, Tensor, float], Tensor]
"""Of weights, samples, labels and the bound: the sum of the samples' clipped gradients."""


@final
@dataclass(frozen=True)
class Privacy:
    """Who is protected how much.

    Attributes:
        protection: The level and the bound.
        epsilons: Each client's privacy budget a round, by its number.
    """

    protection: Protection
    epsilons: tuple[float, ...]

    def scale(self, client: int, samples: int) -> float:
        """The scale of the Laplace noise on each coordinate of this client's gradient."""
        bound = 2 * self.protection.clip / self.epsilons[client]
        return bound / samples if self.protection.level == "record" else bound


@final
class PrivateGradient:
    """One client's gradient after another, clipped and with noise, from a module that is called as a function."""

    def __init__(self, module: nn.Module, privacy: Privacy, loss: Loss) -> None:
        """Refuse a module whose samples influence each other: batch norm would carry one's data past the clipping."""
        if any(isinstance(layer, nn.modules.batchnorm._NormBase) for layer in module.modules()):  # noqa: SLF001
            raise ConfigError(
                "training.model has batch norm, which clipping cannot protect; use one without (cifar-cnn-private)"
            )
        self._layout = Layout.of(module)
        self._privacy = privacy
        self._gradients = grad(_loss_of(module, loss))
        by_layer = is_dense(module) and not isinstance(
            loss, Own
        )  # a loss of one's own might mix the samples
        self._clipped_sum = _by_layer(module, loss) if by_layer else _by_sample(module, loss)
        self._at_once = (
            4 * CHUNK if by_layer else max(1, min(CHUNK, MEMORY // max(self._layout.learned, 1)))
        )

    def __call__(self, state: Tensor, samples: Samples, part: Indices, turn: Turn) -> Tensor:
        """The gradient that leaves the client; the noise depends on the turn alone."""
        gradient = self.clipped(state, samples, part)
        scale = self._privacy.scale(turn.client, len(part))
        noise = stream(turn.seed, "privacy", turn.round, turn.client).laplace(
            0.0, scale, len(gradient)
        )
        return gradient + torch.from_numpy(noise.astype(np.float32))

    def clipped(self, state: Tensor, samples: Samples, part: Indices) -> Tensor:
        """The mean over the samples, before noise; its L1 norm is at most the bound."""
        weights = {slot.name: slot.view(state) for slot in self._layout.parameters}
        bound = self._privacy.protection.clip
        total = torch.zeros(self._layout.learned)
        if self._privacy.protection.level == "record":
            for x, y in samples.batches(part, self._at_once):
                total += self._clipped_sum(weights, x, y, bound)
            return total / len(part)
        for x, y in samples.batches(part, CHUNK):
            total += torch.cat(
                [gradient.reshape(-1) for gradient in self._gradients(weights, x, y).values()]
            )
        return bounded_sum([total[None] / len(part)], bound)


def is_dense(module: nn.Module) -> bool:
    """Whether a module is a chain of linear layers with nothing but ReLU between them."""
    return is_fusable(module) and all(
        isinstance(layer, nn.Flatten | nn.Linear | nn.ReLU) for layer in module.children()
    )


def bounded_sum(gradients: Iterable[Tensor], bound: float) -> Tensor:
    """The sum of the rows, each scaled down to an L1 norm of at most the bound; one that is not finite counts nothing.

    Args:
        gradients: One tensor a parameter, a row a sample.
        bound: L.
    """
    parts = [gradient.flatten(1) for gradient in gradients]
    factors = _factors(torch.stack([_norms(part) for part in parts]).sum(0), bound)
    if not factors.all():
        parts = [_finite(part) for part in parts]
    return torch.cat([factors @ part for part in parts])


def _by_sample(module: nn.Module, loss: Loss) -> ClippedSum:
    """Make every sample's own gradient, and clip it."""
    gradients = vmap(grad(_loss_of(module, loss)), in_dims=(None, 0, 0))

    def clipped_sum(weights: Weights, x: Tensor, y: Tensor, bound: float) -> Tensor:
        return bounded_sum(gradients(weights, x[:, None], y[:, None]).values(), bound)

    return clipped_sum


def _by_layer(module: nn.Module, loss: Loss) -> ClippedSum:
    """Clip without making any sample's gradient, where it is an outer product in every layer.

    In a linear layer it is d x', with x the layer's input and d the gradient at its output: its L1 norm is |d| |x|, and
    |d| more for the bias; the scaled sum over all samples is one product of two matrices.
    """

    def clipped_sum(weights: Weights, x: Tensor, y: Tensor, bound: float) -> Tensor:
        inputs, outputs = [], []
        for name, layer in module.named_children():
            if isinstance(layer, nn.Linear):
                inputs.append(x.detach())
                outputs.append(
                    linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"]).requires_grad_()
                )
                x = outputs[-1]
            else:
                x = x.relu() if isinstance(layer, nn.ReLU) else x.flatten(1)
        slopes = torch.autograd.grad(loss.total(x, y), outputs)
        pairs = list(zip(slopes, inputs, strict=True))
        factors = _factors(
            torch.stack([_norms(d) * (_norms(x) + 1) for d, x in pairs]).sum(0), bound
        )
        if not factors.all():
            pairs = [(_finite(d), _finite(x)) for d, x in pairs]
        scaled = [(d.t() * factors, x) for d, x in pairs]
        return torch.cat([part for d, x in scaled for part in ((d @ x).flatten(), d.sum(1))])

    return clipped_sum


def _norms(rows: Tensor) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(rows, ord=1, dim=1)
    return found


def _factors(norms: Tensor, bound: float) -> Tensor:
    """What to multiply each row by; nothing where its norm is not finite."""
    return torch.where(
        torch.isfinite(norms), bound / norms.clamp(min=bound), torch.zeros_like(norms)
    )


def _finite(rows: Tensor) -> Tensor:
    return rows.nan_to_num(0.0, 0.0, 0.0)


def _loss_of(module: nn.Module, loss: Loss) -> Callable[[Weights, Tensor, Tensor], Tensor]:
    def total(weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        return loss.total(functional_call(module, weights, (x,)), y)

    return total

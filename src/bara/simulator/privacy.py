"""Local differential privacy: clipped gradients with Laplace noise (FL-Market).

Notation:
    L       the bound of a gradient's L1 norm
    d       the number of the client's samples
    eps     the client's privacy budget for one round

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
from bara.simulator._layout import Layout
from bara.simulator._networks import is_fusable
from bara.simulator.losses import Loss, Own

MEMORY = 2**23
"""The most numbers that the gradients of one chunk of samples may hold together."""

Weights = dict[str, Tensor]
ClippedSum = Callable[[Weights, Tensor, Tensor, float], Tensor]
"""A function of weights, samples, labels and L to the sum of the samples' clipped gradients."""


@final
@dataclass(frozen=True)
class Privacy:
    """The protection of gradients, and every client's privacy budget.

    Attributes:
        protection: The level and the bound.
        epsilons: Each client's privacy budget for one round, by the client's number.
    """

    protection: Protection
    epsilons: tuple[float, ...]

    def scale(self, client: int, samples: int) -> float:
        """Return the scale of the Laplace noise on each coordinate of this client's gradient."""
        scale = 2 * self.protection.clip / self.epsilons[client]
        if self.protection.level == "record":
            return scale / samples
        return scale


@final
class PrivateGradient:
    """A function that returns a client's gradient, clipped and with noise."""

    def __init__(self, module: nn.Module, privacy: Privacy, loss: Loss) -> None:
        """Refuse batch norm, through which a sample's data would bypass the clipping."""
        norms = nn.modules.batchnorm._NormBase  # noqa: SLF001 - torch has no public base class
        if any(isinstance(layer, norms) for layer in module.modules()):
            raise ConfigError(
                "training.model has batch norm, which clipping cannot protect; "
                "use one without (cifar-cnn-private)"
            )
        self._layout = Layout.of(module)
        self._privacy = privacy
        self._gradients = grad(_loss_of(module, loss))
        if is_dense(module) and not isinstance(loss, Own):  # a user's loss might mix the samples
            self._clipped_sum = _by_layer(module, loss)
            self._at_once = 4 * CHUNK
        else:
            self._clipped_sum = _by_sample(module, loss)
            self._at_once = max(1, min(CHUNK, MEMORY // max(self._layout.learned, 1)))

    def __call__(self, state: Tensor, samples: Samples, indices: Indices, turn: Turn) -> Tensor:
        """Return the noisy gradient that leaves the client; the noise depends on the turn alone."""
        gradient = self.clipped(state, samples, indices)
        scale = self._privacy.scale(turn.client, len(indices))
        random = stream(turn.seed, "privacy", turn.round, turn.client)
        noise = random.laplace(0.0, scale, len(gradient))
        return gradient + torch.from_numpy(noise.astype(np.float32))

    def clipped(self, state: Tensor, samples: Samples, indices: Indices) -> Tensor:
        """Return the mean gradient before noise; its L1 norm is at most the bound."""
        weights = {slot.name: slot.view(state) for slot in self._layout.parameters}
        bound = self._privacy.protection.clip
        total = torch.zeros(self._layout.learned)
        if self._privacy.protection.level == "record":
            for x, y in samples.batches(indices, self._at_once):
                total += self._clipped_sum(weights, x, y, bound)
            return total / len(indices)
        for x, y in samples.batches(indices, CHUNK):
            gradients = self._gradients(weights, x, y).values()
            total += torch.cat([gradient.reshape(-1) for gradient in gradients])
        return bounded_sum([total[None] / len(indices)], bound)


def is_dense(module: nn.Module) -> bool:
    """Return whether a module is a chain of linear layers with nothing but ReLU between them."""
    simple = nn.Flatten | nn.Linear | nn.ReLU
    return is_fusable(module) and all(isinstance(layer, simple) for layer in module.children())


def bounded_sum(gradients: Iterable[Tensor], bound: float) -> Tensor:
    """Return the sum of the samples' gradients, each scaled to an L1 norm of at most the bound.

    A gradient that is not finite counts as zero.

    Args:
        gradients: One tensor for each parameter, with one row for each sample.
        bound: L.
    """
    flat = [gradient.flatten(1) for gradient in gradients]
    norms = torch.stack(list(map(_norms, flat))).sum(0)
    factors = _factors(norms, bound)
    if not factors.all():
        flat = list(map(_finite, flat))
    return torch.cat([factors @ rows for rows in flat])


def _by_sample(module: nn.Module, loss: Loss) -> ClippedSum:
    """Clip by computing every sample's own gradient."""
    gradients = vmap(grad(_loss_of(module, loss)), in_dims=(None, 0, 0))

    def clipped_sum(weights: Weights, x: Tensor, y: Tensor, bound: float) -> Tensor:
        return bounded_sum(gradients(weights, x[:, None], y[:, None]).values(), bound)

    return clipped_sum


def _by_layer(module: nn.Module, loss: Loss) -> ClippedSum:
    """Clip without computing any sample's own gradient, in a chain of linear layers.

    There, a sample's gradient is the outer product d x' of the gradient d at the layer's output and
    the layer's input x. Its L1 norm is |d| |x|, plus |d| for the bias, and the scaled sum over all
    samples is one product of two matrices.
    """

    def clipped_sum(weights: Weights, samples: Tensor, labels: Tensor, bound: float) -> Tensor:
        inputs: list[Tensor] = []
        outputs: list[Tensor] = []
        value = samples
        for name, layer in module.named_children():
            if isinstance(layer, nn.Linear):
                inputs.append(value.detach())
                value = linear(value, weights[f"{name}.weight"], weights[f"{name}.bias"])
                outputs.append(value.requires_grad_())
            elif isinstance(layer, nn.ReLU):
                value = value.relu()
            else:
                value = value.flatten(1)
        slopes = torch.autograd.grad(loss.total(value, labels), outputs)
        pairs = list(zip(slopes, inputs, strict=True))
        norms = torch.stack([_norms(d) * (_norms(x) + 1) for d, x in pairs]).sum(0)
        factors = _factors(norms, bound)
        if not factors.all():
            pairs = [(_finite(d), _finite(x)) for d, x in pairs]
        gradients: list[Tensor] = []
        for d, x in pairs:
            scaled = d.t() * factors
            gradients += [(scaled @ x).flatten(), scaled.sum(1)]
        return torch.cat(gradients)

    return clipped_sum


def _norms(rows: Tensor) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(rows, ord=1, dim=1)
    return found


def _factors(norms: Tensor, bound: float) -> Tensor:
    """Return the factor that clips each row to the bound, and 0 where its norm is not finite."""
    clipping = bound / norms.clamp(min=bound)
    return torch.where(torch.isfinite(norms), clipping, torch.zeros_like(norms))


def _finite(rows: Tensor) -> Tensor:
    return rows.nan_to_num(0.0, 0.0, 0.0)


def _loss_of(module: nn.Module, loss: Loss) -> Callable[[Weights, Tensor, Tensor], Tensor]:
    """Return the summed loss as a function of the weights, samples and labels."""

    def total(weights: Weights, x: Tensor, y: Tensor) -> Tensor:
        return loss.total(functional_call(module, weights, (x,)), y)

    return total

"""A client's training with local differential privacy: clipped gradients and Laplace noise (FL-Market).

Notation:
    L       the bound of a gradient's L1 norm
    d       the client's samples
    eps     its privacy budget for one round

`client` level: the mean gradient over all samples, clipped to L, changes by at most 2 L in L1 norm when the client's
data are replaced: Laplace(2 L / eps) on every coordinate makes one round eps-differentially private for the whole
client. `record` level: every sample's own gradient is clipped to L, so that their mean changes by at most 2 L / d when
one sample is replaced: Laplace(2 L / (d eps)) protects each sample. (Zheng et al. 2022; the record level is ours.)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from bara.errors import ConfigError
from bara.federations.simulator._batches import CHUNK, Indices, Samples, Turn
from bara.federations.simulator._layout import Layout
from bara.federations.simulator.losses import Loss
from bara.protocols import Protection
from bara.randomness import stream

MEMORY = 2**23
"""Numbers that the gradients of one chunk of samples may hold."""


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
        self._one = vmap(grad(_loss_of(module, loss)), in_dims=(None, 0, 0))
        self._all = grad(_loss_of(module, loss))
        self._at_once = max(1, min(CHUNK, MEMORY // max(self._layout.learned, 1)))

    def __call__(self, state: Tensor, samples: Samples, part: Indices, turn: Turn) -> Tensor:
        """The gradient that leaves the client; the noise depends on the turn alone."""
        gradient = self.clipped(state, samples, part)
        scale = self._privacy.scale(turn.client, len(part))
        noise = stream(turn.seed, "privacy", turn.round, turn.client).laplace(0.0, scale, len(gradient))
        return gradient + torch.from_numpy(noise.astype(np.float32))

    def clipped(self, state: Tensor, samples: Samples, part: Indices) -> Tensor:
        """The mean over the samples, before noise; its L1 norm is at most the bound."""
        weights = {slot.name: slot.view(state) for slot in self._layout.parameters}
        bound = self._privacy.protection.clip
        total = torch.zeros(self._layout.learned)
        if self._privacy.protection.level == "record":
            for x, y in samples.batches(part, self._at_once):
                total += bounded_sum(self._one(weights, x[:, None], y[:, None]).values(), bound)
            return total / len(part)
        for x, y in samples.batches(part, CHUNK):
            total += torch.cat([gradient.reshape(-1) for gradient in self._all(weights, x, y).values()])
        return bounded_sum([total[None] / len(part)], bound)


def bounded_sum(gradients: Iterable[Tensor], bound: float) -> Tensor:
    """The sum of the rows, each scaled down to an L1 norm of at most the bound; one that is not finite counts nothing.

    Args:
        gradients: One tensor a parameter, a row a sample.
        bound: L.
    """
    parts = [gradient.flatten(1) for gradient in gradients]
    norms = torch.stack([torch.linalg.vector_norm(part, ord=1, dim=1) for part in parts]).sum(0)
    sound = torch.isfinite(norms)
    factors = torch.where(sound, bound / norms.clamp(min=bound), torch.zeros_like(norms))
    if not sound.all():
        parts = [part.nan_to_num(0.0, 0.0, 0.0) for part in parts]
    return torch.cat([factors @ part for part in parts])


def _loss_of(module: nn.Module, loss: Loss) -> Callable[[dict[str, Tensor], Tensor, Tensor], Tensor]:
    def total(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return loss.total(functional_call(module, weights, (x,)), y)

    return total

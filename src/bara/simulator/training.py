"""How a client trains: the paper's ClientUpdate and FedAvg's, over a `Network`."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from bara.errors import ConfigError
from bara.simulator._batches import Indices, Samples, Turn, orders
from bara.simulator._networks import Network
from bara.simulator.losses import Loss
from bara.simulator.privacy import Privacy, PrivateGradient


@final
@dataclass(frozen=True, kw_only=True)
class Training:
    """Local training, the same for every client and round.

    Attributes:
        algorithm: `fedsgd`, one full-batch gradient step (Yang et al. 2023, Algorithm 1,
            ClientUpdate), or `fedavg`, `local_epochs` of minibatch SGD.
        learning_rate: of every step.
        local_epochs: FedAvg's passes over a client's own data.
        batch_size: FedAvg's; the last batch of an epoch may be smaller. FedSGD always takes all a
            client has.
        momentum: FedAvg's; starts at zero in every round, so nothing of it outlives a round.
        weight_decay: FedAvg's L2 term, on every parameter, as `torch.optim.SGD` has it.
        proximal: FedProx's mu: adds mu/2 ||w - w_round||^2 to FedAvg's local loss.
        privacy: Local differential privacy of the one gradient that FedSGD sends; None for none.
        loss: The import path of a loss of one's own; None for the task's.
    """

    algorithm: Literal["fedsgd", "fedavg"]
    learning_rate: float
    local_epochs: int
    batch_size: int
    momentum: float
    weight_decay: float
    proximal: float
    privacy: Privacy | None
    loss: str | None = None

    def __post_init__(self) -> None:
        """Refuse a private update that is more than one gradient."""
        if self.privacy is not None and self.algorithm != "fedsgd":
            raise ConfigError(
                f"training.algorithm must be 'fedsgd' with privacy, got {self.algorithm!r}"
            )


@final
class Local:
    """Trains one client after another, reusing the same memory."""

    def __init__(
        self,
        network: Network,
        training: Training,
        samples: Samples,
        loss: Loss,
        private: PrivateGradient | None = None,
    ) -> None:
        """Train this network on parts of these samples; with privacy, on gradients that are private already."""
        self._private = private
        self._loss = loss
        self._network = network
        self._training = training
        self._samples = samples
        self._learned = network.layout.learned
        self._velocity = torch.zeros(self._learned if training.momentum else 0)

    def train(self, start: Tensor, part: Indices, turn: Turn, result: Tensor) -> float | None:
        """Train from `start` on a client's part into `result`; FedSGD knows the loss before, for free."""
        if self._private is not None:
            gradient = self._private(start, self._samples, part, turn)
            result.copy_(start)
            result[: self._learned].sub_(gradient, alpha=self._training.learning_rate)
            return None
        self._network.state.copy_(start)
        with self._network.context():
            if self._training.algorithm == "fedsgd":
                return self._step_once(start, part, result)
            self._descend(start[: self._learned], part, turn)
        result.copy_(self._network.state)
        return None

    def _step_once(self, start: Tensor, part: Indices, result: Tensor) -> float:
        """Go to w - rate * gradient of the mean loss over all samples, summed straight into the result."""
        result.copy_(start)
        self._network.aim(result[: self._learned])
        loss = 0.0
        for x, y in self._samples.batches(part, self._network.chunk or len(part)):
            scores = self._network.accumulate(x, y, 1.0, -self._training.learning_rate / len(part))
            loss += self._loss.total(scores, y).item()
        result[self._learned :] = self._network.state[self._learned :]
        return loss / len(part)

    def _descend(self, start: Tensor, part: Indices, turn: Turn) -> None:
        weights = self._network.state[: self._learned]
        self._network.aim(self._velocity.zero_() if self._training.momentum else weights)
        step = self._heavy_step if self._training.momentum else self._plain_step
        for order in orders(part, turn, self._training.local_epochs):
            for x, y in self._samples.batches(order, self._training.batch_size):
                step(x, y, weights, start)

    def _plain_step(self, x: Tensor, y: Tensor, weights: Tensor, start: Tensor) -> None:
        """Do w = (1 - rate (decay + mu)) w - rate gradient + rate mu w_0, the first two inside the products."""
        t = self._training
        shrink = 1.0 - t.learning_rate * (t.weight_decay + t.proximal)
        self._network.accumulate(x, y, shrink, -t.learning_rate / len(y))
        if t.proximal:
            weights.add_(start, alpha=t.learning_rate * t.proximal)

    def _heavy_step(self, x: Tensor, y: Tensor, weights: Tensor, start: Tensor) -> None:
        """Do v = momentum v + gradient + decay w + mu (w - w_0), the first two inside the products; w = w - rate v."""
        t = self._training
        self._network.accumulate(x, y, t.momentum, 1.0 / len(y))
        if t.weight_decay or t.proximal:
            self._velocity.add_(weights, alpha=t.weight_decay + t.proximal)
        if t.proximal:
            self._velocity.add_(start, alpha=-t.proximal)
        weights.add_(self._velocity, alpha=-t.learning_rate)

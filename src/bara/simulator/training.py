"""Local training of a client over a `Network`: the paper's ClientUpdate and that of FedAvg."""

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
    """The options of local training, the same for every client and round.

    Attributes:
        algorithm: `fedsgd`, one full-batch gradient step (Yang et al. 2023, Algorithm 1,
            ClientUpdate), or `fedavg`, `local_epochs` of minibatch SGD.
        learning_rate: The learning rate of every step.
        local_epochs: The number of passes over a client's own data (FedAvg).
        batch_size: The size of a batch (FedAvg); the last batch of an epoch may be smaller. FedSGD
            always takes all samples of a client.
        momentum: The momentum (FedAvg); it starts at zero in every round.
        weight_decay: The L2 term on every parameter (FedAvg), as in `torch.optim.SGD`.
        proximal: FedProx's mu: adds mu/2 ||w - w_round||^2 to FedAvg's local loss.
        privacy: Local differential privacy of the one gradient that FedSGD sends; None for none.
        loss: The import path of a user's own loss; None for the task's loss.
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
    """A trainer of one client after another, in memory that is reused."""

    def __init__(
        self,
        network: Network,
        training: Training,
        samples: Samples,
        loss: Loss,
        private: PrivateGradient | None = None,
    ) -> None:
        """Train a network on these samples; `private` replaces its gradients by private ones."""
        self._private = private
        self._loss = loss
        self._network = network
        self._training = training
        self._samples = samples
        self._learned = network.layout.learned
        self._velocity = torch.zeros(self._learned if training.momentum else 0)

    def train(self, start: Tensor, indices: Indices, turn: Turn, result: Tensor) -> float | None:
        """Train a client and return its mean loss before training where FedSGD computed it anyway.

        Args:
            start: The state to train from.
            indices: The client's samples.
            turn: The client and the round, on which all randomness depends.
            result: The vector that the trained state is written to.
        """
        if self._private is not None:
            gradient = self._private(start, self._samples, indices, turn)
            result.copy_(start)
            result[: self._learned].sub_(gradient, alpha=self._training.learning_rate)
            return None
        self._network.state.copy_(start)
        with self._network.context():
            if self._training.algorithm == "fedsgd":
                return self._step_once(start, indices, result)
            self._descend(start[: self._learned], indices, turn)
        result.copy_(self._network.state)
        return None

    def _step_once(self, start: Tensor, indices: Indices, result: Tensor) -> float:
        """Do FedSGD's step w - rate * (mean gradient), summed in `result`; return the mean loss."""
        result.copy_(start)
        self._network.aim(result[: self._learned])
        count = len(indices)
        loss = 0.0
        for x, y in self._samples.batches(indices, self._network.chunk or count):
            scores = self._network.accumulate(x, y, 1.0, -self._training.learning_rate / count)
            loss += self._loss.total(scores, y).item()
        result[self._learned :] = self._network.state[self._learned :]
        return loss / count

    def _descend(self, start: Tensor, indices: Indices, turn: Turn) -> None:
        """Do FedAvg's epochs of minibatch SGD in the network's own state."""
        weights = self._network.state[: self._learned]
        if self._training.momentum:
            self._network.aim(self._velocity.zero_())
            step = self._heavy_step
        else:
            self._network.aim(weights)
            step = self._plain_step
        for order in orders(indices, turn, self._training.local_epochs):
            for x, y in self._samples.batches(order, self._training.batch_size):
                step(x, y, weights, start)

    def _plain_step(self, x: Tensor, y: Tensor, weights: Tensor, start: Tensor) -> None:
        """Do w = (1 - rate (decay + mu)) w - rate gradient + rate mu w_0.

        The network's own matrix products compute the first two terms.
        """
        t = self._training
        shrink = 1.0 - t.learning_rate * (t.weight_decay + t.proximal)
        self._network.accumulate(x, y, shrink, -t.learning_rate / len(y))
        if t.proximal:
            weights.add_(start, alpha=t.learning_rate * t.proximal)

    def _heavy_step(self, x: Tensor, y: Tensor, weights: Tensor, start: Tensor) -> None:
        """Do v = momentum v + gradient + decay w + mu (w - w_0), then w = w - rate v.

        The network's own matrix products compute the first two terms of v.
        """
        t = self._training
        self._network.accumulate(x, y, t.momentum, 1.0 / len(y))
        if t.weight_decay or t.proximal:
            self._velocity.add_(weights, alpha=t.weight_decay + t.proximal)
        if t.proximal:
            self._velocity.add_(start, alpha=-t.proximal)
        weights.add_(self._velocity, alpha=-t.learning_rate)

"""How a client trains: one validated record."""

import math
from dataclasses import dataclass
from typing import Literal, final

from bara.errors import ConfigError
from bara.federations.simulator.privacy import Privacy

ALGORITHMS = ("fedsgd", "fedavg")


@final
@dataclass(frozen=True, kw_only=True)
class Training:
    """Local training, the same for every client and round.

    Attributes:
        algorithm: `fedsgd`, one full-batch gradient step (Yang et al. 2023, Algorithm 1, ClientUpdate), or `fedavg`,
            `local_epochs` of minibatch SGD.
        learning_rate: of every step.
        local_epochs: FedAvg's passes over a client's own data.
        batch_size: FedAvg's; the last batch of an epoch may be smaller. FedSGD always takes all a client has.
        momentum: FedAvg's; starts at zero in every round, so nothing of it outlives a round.
        weight_decay: FedAvg's L2 term, on every parameter, as `torch.optim.SGD` has it.
        proximal: FedProx's mu: adds mu/2 ||w - w_round||^2 to FedAvg's local loss.
        privacy: Local differential privacy of the one gradient that FedSGD sends; None for none.
    """

    algorithm: Literal["fedsgd", "fedavg"] = "fedavg"
    learning_rate: float = 0.05
    local_epochs: int = 1
    batch_size: int = 50
    momentum: float = 0.0
    weight_decay: float = 0.0
    proximal: float = 0.0
    privacy: Privacy | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        _one_of("algorithm", self.algorithm, ALGORITHMS)
        _require("learning_rate", self.learning_rate, "a finite number above 0", ok=_finite(self.learning_rate) > 0)
        for name in ("local_epochs", "batch_size"):
            value = getattr(self, name)
            _require(name, value, "a whole number of at least 1", ok=type(value) is int and value >= 1)
        _require("momentum", self.momentum, "a number in [0, 1)", ok=0 <= _finite(self.momentum) < 1)
        for name in ("weight_decay", "proximal"):
            value = getattr(self, name)
            _require(name, value, "a finite number of at least 0", ok=_finite(value) >= 0)
        self._refuse_what_fedsgd_has_not()
        private = self.privacy is not None
        _require("algorithm", self.algorithm, "fedsgd with privacy", ok=not private or self.algorithm == "fedsgd")

    def _refuse_what_fedsgd_has_not(self) -> None:
        if self.algorithm != "fedsgd":
            return
        for name, neutral in (("local_epochs", 1), ("momentum", 0), ("weight_decay", 0), ("proximal", 0)):
            value = getattr(self, name)
            _require(name, value, f"{neutral} with fedsgd, which takes a single plain step", ok=value == neutral)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    _require(name, value, f"one of {', '.join(allowed)}", ok=value in allowed)


def _finite(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if number else -math.inf  # type: ignore[arg-type]


def _require(name: str, value: object, what: str, *, ok: bool) -> None:
    if not ok:
        raise ConfigError(f"training.{name} is {value!r}; it must be {what}")

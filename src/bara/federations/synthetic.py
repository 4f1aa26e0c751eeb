"""A federation without a model: accuracy from a closed-form learning curve with selection noise, in microseconds.

Notation:
    S       progress: the sum over rounds of rho(n) = (1 + kappa / N) n / (n + kappa), so that rho(N) = 1
    E       recent selection noise: an exponential average, with memory phi, of 1/n - 1/N
    curve   a_max - (a_max - a_0) (1 + S / s)^(-p)

accuracy = curve(S) - delta E + noise, the noise's variance being v_0 + v_1 (1/n - 1/N), clipped to [0, 1].
The loss is that of a classifier of this accuracy: -log of it.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

from bara.errors import ConfigError
from bara.federations.bidding import Bidders
from bara.randomness import stream
from bara.records import Award, Bids, Delivery, Evaluation, Evidence
from bara.surrogates import gap_left, progress, spread


@dataclass(frozen=True)
class LearningCurve:
    """The task: how accuracy grows with progress and suffers from selecting few. See the module's notation."""

    a_0: float = 0.1
    a_max: float = 0.85
    s: float = 12.0
    p: float = 0.8
    kappa: float = 4.0
    delta: float = 0.3
    phi: float = 0.7
    v_0: float = 1e-5
    v_1: float = 4e-3

    def __post_init__(self) -> None:
        """Refuse a curve that leaves [0, 1] or does not rise."""
        positive = {name: getattr(self, name) for name in ("s", "p")}
        rest = {name: getattr(self, name) for name in ("kappa", "delta", "v_0", "v_1")}
        if not 0 <= self.a_0 <= self.a_max <= 1:
            raise ConfigError(f"a curve from {self.a_0} to {self.a_max}; required is 0 <= a_0 <= a_max <= 1")
        for name, value in positive.items():
            if not value > 0:
                raise ConfigError(f"the curve has {name} = {value}; required is more than zero")
        for name, value in rest.items():
            if not value >= 0:
                raise ConfigError(f"the curve has {name} = {value}; required is zero or more")
        if not 0 <= self.phi < 1:
            raise ConfigError(f"the curve has phi = {self.phi}; required is at least 0 and below 1")


class CurveFederation(ABC):
    """Bidders on a learning curve.

    Args:
        bidders: Who bids what.
        start: The accuracy of the initial model.
        seed: Noise and failures depend on nothing but (seed, round).
        failure_rate: The probability that a winner does not deliver.
    """

    protects = True
    """It has no data that could be told."""

    purpose: ClassVar[str]
    """What its stream of random numbers is for."""

    def __init__(self, bidders: Bidders, start: float, seed: int, failure_rate: float) -> None:
        if not 0 <= failure_rate <= 1:
            raise ConfigError(f"clients.failure_rate is {failure_rate}; required is a probability")
        self.bidders = bidders
        self._seed = seed
        self._failure_rate = failure_rate
        self._progress = 0.0
        self._selection = 0.0
        self._accuracy = start

    def evaluate(self) -> Evaluation:
        """The model as it is now; at first, the initial one."""
        return Evaluation(self._accuracy, loss=-math.log(max(self._accuracy, 1e-6)))

    def bids(self, round: int) -> Bids:  # noqa: A002 - a round is a round
        """What each client asks."""
        return self.bidders.bids(round)

    def train(self, round: int, award: Award) -> Delivery:  # noqa: A002
        """Move along the curve by what those who deliver are worth."""
        rng = stream(self._seed, self.purpose, round)
        failed = rng.random(award.n) < self._failure_rate
        noise = rng.standard_normal()
        self.bidders.tell(round, award)
        delivered = [client for client, out in zip(award.clients, failed, strict=True) if not out]
        if delivered:
            self._accuracy = self._after(len(delivered), noise)
        void = {client: "it did not answer" for client in award.clients if client not in delivered}
        return Delivery(self.evaluate(), {client: Evidence() for client in delivered}, void)

    def _advance(self, n: int, kappa: float, phi: float) -> float:
        """Add n clients' progress, and fade the selection's noise; returns how far apart such a selection is."""
        clients = len(self.bidders.clients)
        apart = float(spread(n, clients))
        self._progress += progress(n, clients, kappa)
        self._selection = phi * self._selection + (1 - phi) * apart
        return apart

    @abstractmethod
    def _after(self, n: int, noise: float) -> float:
        """The accuracy after a round of n clients; the noise is standard normal."""


@final
class SyntheticFederation(CurveFederation):
    """A task in closed form.

    Args:
        bidders: Who bids what.
        curve: The task.
        seed: Noise and failures depend on nothing but (seed, round).
        failure_rate: The probability that a winner does not deliver.
    """

    purpose = "training"

    def __init__(self, bidders: Bidders, curve: LearningCurve, seed: int, failure_rate: float = 0.0) -> None:
        super().__init__(bidders, curve.a_0, seed, failure_rate)
        self._curve = curve

    def _after(self, n: int, noise: float) -> float:
        c = self._curve
        apart = self._advance(n, c.kappa, c.phi)
        learned = c.a_max - (c.a_max - c.a_0) * gap_left(self._progress, c.s, c.p)
        value = learned - c.delta * self._selection + noise * math.sqrt(c.v_0 + c.v_1 * apart)
        return float(min(max(value, 0.0), 1.0))

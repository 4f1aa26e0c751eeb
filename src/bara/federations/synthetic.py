"""A federation without a model: accuracy from a closed-form learning curve with selection noise, in microseconds.

Notation:
    S       progress: the sum over rounds of rho(n) = (1 + kappa / N) n / (n + kappa), so that rho(N) = 1
    E       recent selection noise: an exponential average, with memory phi, of 1/n - 1/N
    curve   a_max - (a_max - a_0) (1 + S / s)^(-p)

accuracy = curve(S) - delta E + noise, the noise's variance being v_0 + v_1 (1/n - 1/N), clipped to [0, 1].
The loss is that of a classifier of this accuracy: -log of it.
"""

import math
from dataclasses import dataclass
from typing import Protocol, final

from bara.errors import ConfigError
from bara.federations.bidding import Bidders
from bara.protocols import Capabilities
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

    @property
    def start(self) -> float:
        """The accuracy of the initial model."""
        return self.a_0

    def accuracy(self, progress: float, selection: float, apart: float, noise: float) -> float:
        """What a round comes to; see `Curve`."""
        learned = self.a_max - (self.a_max - self.a_0) * gap_left(progress, self.s, self.p)
        value = learned - self.delta * selection + noise * math.sqrt(self.v_0 + self.v_1 * apart)
        return float(min(max(value, 0.0), 1.0))


class Curve(Protocol):
    """A task as a federation without a model needs it.

    Attributes:
        start: The accuracy of the initial model.
        kappa: See the module's notation.
        phi: Likewise.
    """

    @property
    def start(self) -> float: ...  # noqa: D102
    @property
    def kappa(self) -> float: ...  # noqa: D102
    @property
    def phi(self) -> float: ...  # noqa: D102

    def accuracy(self, progress: float, selection: float, apart: float, noise: float) -> float:
        """What a round comes to.

        Args:
            progress: S, this round's included.
            selection: E, likewise.
            apart: This round's own 1/n - 1/N.
            noise: Standard normal.
        """
        ...


@final
class SyntheticFederation:
    """Bidders on a learning curve.

    Args:
        bidders: Who bids what.
        curve: The task.
        seed: Noise and failures depend on nothing but (seed, round).
        failure_rate: The probability that a winner does not deliver.
        purpose: What its random numbers are for; another one's are others.
    """

    capabilities = Capabilities(protects=True)
    """It has no data that could be told."""

    def __init__(
        self, bidders: Bidders, curve: Curve, seed: int, failure_rate: float = 0.0, purpose: str = "training"
    ) -> None:
        self.bidders = bidders
        self._curve = curve
        self._seed = seed
        self._failure_rate = failure_rate
        self._purpose = purpose
        self._progress = 0.0
        self._selection = 0.0
        self._accuracy = curve.start

    def evaluate(self) -> Evaluation:
        """The model as it is now; at first, the initial one."""
        return Evaluation(self._accuracy, loss=-math.log(max(self._accuracy, 1e-6)))

    def bids(self, round: int) -> Bids:  # noqa: A002 - a round is a round
        """What each client asks."""
        return self.bidders.bids(round)

    def train(self, round: int, award: Award) -> Delivery:  # noqa: A002
        """Move along the curve by what those who deliver are worth."""
        rng = stream(self._seed, self._purpose, round)
        failed = rng.random(award.n) < self._failure_rate
        noise = rng.standard_normal()
        self.bidders.tell(round, award)
        delivered = {client: Evidence() for client, out in zip(award.clients, failed, strict=True) if not out}
        if delivered:
            self._learn(len(delivered), noise)
        void = {client: "it did not answer" for client in award.clients if client not in delivered}
        return Delivery(self.evaluate(), delivered, void)

    def _learn(self, n: int, noise: float) -> None:
        c, N = self._curve, len(self.bidders.clients)
        apart = float(spread(n, N))
        self._progress += progress(n, N, c.kappa)
        self._selection = c.phi * self._selection + (1 - c.phi) * apart
        self._accuracy = c.accuracy(self._progress, self._selection, apart, noise)

"""A federation without a model: accuracy from a closed-form learning curve with selection noise, in microseconds.

Notation:
    S       progress: the sum over rounds of rho(n) = (1 + kappa / N) n / (n + kappa), so that rho(N) = 1
    E       recent selection noise: an exponential average, with memory phi, of 1/n - 1/N
    curve   a_max - (a_max - a_0) (1 + S / s)^(-p)

accuracy = curve(S) - delta E + noise, the noise's variance being v_0 + v_1 (1/n - 1/N), clipped to
[0, 1]. The loss is that of a classifier of this accuracy: -log of it.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Protocol, final

from bara.clients.bidding import Bidders
from bara.errors import ConfigError
from bara.plugins import Within, check_fields
from bara.protocols import Capabilities
from bara.randomness import stream
from bara.records import Award, Bids, Delivery, Evaluation, Evidence
from bara.surrogates import gap_left, progress, spread


@dataclass(frozen=True)
class LearningCurve:
    """The task: how accuracy grows with progress and suffers from selecting few. See the module's notation.

    Attributes:
        a_0: The accuracy of the initial model.
        a_max: What it tends to when everybody takes part.
        s: The scale of progress: at S = s the gap to `a_max` is 2^-p of what it was.
        p: The power with which the gap closes.
        kappa: From about how many clients on more of them add little progress.
        delta: How much accuracy selecting few costs.
        phi: Which part of that stays from round to round.
        v_0: The variance of noise when everybody takes part.
        v_1: What selecting few adds to it.
    """

    a_0: Annotated[float, Within(at_least=0, at_most=1)] = 0.1
    a_max: Annotated[float, Within(at_least=0, at_most=1)] = 0.85
    s: Annotated[float, Within(above=0)] = 12.0
    p: Annotated[float, Within(above=0)] = 0.8
    kappa: Annotated[float, Within(at_least=0)] = 4.0
    delta: Annotated[float, Within(at_least=0)] = 0.3
    phi: Annotated[float, Within(at_least=0, below=1)] = 0.7
    v_0: Annotated[float, Within(at_least=0)] = 1e-5
    v_1: Annotated[float, Within(at_least=0)] = 4e-3

    def __post_init__(self) -> None:
        """Refuse a curve that leaves [0, 1] or does not rise."""
        check_fields("the synthetic federation", self)
        if self.a_0 > self.a_max:
            raise ConfigError(
                f"the curve must rise: a_0 must be at most a_max, got {self.a_0} and {self.a_max}"
            )

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
        samples: How many samples the server measures accuracies on, all of them on the same; None
            where it measures exactly.
    """

    capabilities = Capabilities(protects=True)
    """It has no data that could be told."""

    def __init__(
        self,
        bidders: Bidders,
        curve: Curve,
        seed: int,
        failure_rate: float = 0.0,
        purpose: str = "training",
        samples: int | None = None,
    ) -> None:
        self.bidders = bidders
        self._curve = curve
        self._seed = seed
        self._failure_rate = failure_rate
        self._purpose = purpose
        self._progress = 0.0
        self._selection = 0.0
        self._accuracy = curve.start
        self._samples = samples
        self._off = stream(seed, f"{purpose}, measured").standard_normal() if samples else 0.0

    def evaluate(self) -> Evaluation:
        """The model as it is now; at first, the initial one."""
        if self._samples is None:
            return Evaluation(self._accuracy, loss=_loss(self._accuracy))
        error = self._off * math.sqrt(self._accuracy * (1 - self._accuracy) / self._samples)
        measured = min(max(self._accuracy + error, 0.0), 1.0)
        return Evaluation(
            measured, _loss(measured), self._accuracy, _loss(self._accuracy), self._samples
        )

    def bids(self, round: int) -> Bids:
        """What each client asks."""
        return self.bidders.bids(round)

    def train(self, round: int, award: Award) -> Delivery:
        """Move along the curve by what those who deliver are worth."""
        rng = stream(self._seed, self._purpose, round)
        failed = rng.random(award.n) < self._failure_rate
        noise = rng.standard_normal()
        self.bidders.tell(round, award)
        delivered = {
            client: Evidence() for client, out in zip(award.clients, failed, strict=True) if not out
        }
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


def _loss(accuracy: float) -> float:
    return -math.log(max(accuracy, 1e-6))

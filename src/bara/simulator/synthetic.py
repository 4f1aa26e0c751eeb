"""A federation without a model: its accuracy follows a learning curve, computed in microseconds.

Notation:
    N, n    the number of clients, and of those that delivered in the round
    S       progress: the sum over rounds of rho(n) = (1 + kappa / N) n / (n + kappa); rho(N) = 1
    E       recent selection noise: an exponential average, with memory phi, of 1/n - 1/N
    curve   a_max - (a_max - a_0) (1 + S / s)^(-p)
    U       the share of the clients that have never delivered

The accuracy is a_0 + (curve(S) - a_0) (1 - variety U) - delta E + noise, clipped to [0, 1]; the
noise has the variance v_0 + v_1 (1/n - 1/N). The loss is -log(accuracy). With a variety of 0 it
matters only how many deliver; with 1, all that clients know is their own.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Protocol, final

from bara.clients.bidding import Bidders
from bara.errors import ConfigError
from bara.options import Within, check_fields
from bara.protocols import Capabilities
from bara.randomness import stream
from bara.records import Award, Bids, Delivery, Evaluation, Evidence
from bara.surrogates import gap_left, progress, spread


@dataclass(frozen=True)
class LearningCurve:
    """A task: accuracy grows with progress and suffers from selecting few (see the module).

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
        variety: The part of what is learned that only hearing every client brings.
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
    variety: Annotated[float, Within(at_least=0, at_most=1)] = 0.0

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

    def accuracy(
        self, progress: float, selection: float, apart: float, noise: float, unheard: float = 0.0
    ) -> float:
        """Return the accuracy after a round; `Curve` describes the arguments."""
        learned = self.a_max - (self.a_max - self.a_0) * gap_left(progress, self.s, self.p)
        learned -= self.variety * unheard * (learned - self.a_0)
        value = learned - self.delta * selection + noise * math.sqrt(self.v_0 + self.v_1 * apart)
        return float(min(max(value, 0.0), 1.0))


class Curve(Protocol):
    """A learning task as a federation without a model needs it; the module explains the symbols."""

    @property
    def start(self) -> float:
        """The accuracy of the initial model."""

    @property
    def kappa(self) -> float:
        """The number of clients from which on more of them add little progress."""

    @property
    def phi(self) -> float:
        """The fraction of the selection noise that stays from round to round."""

    def accuracy(
        self, progress: float, selection: float, apart: float, noise: float, unheard: float = 0.0
    ) -> float:
        """Return the accuracy after a round.

        Args:
            progress: S, including this round.
            selection: E, including this round.
            apart: This round's own 1/n - 1/N.
            noise: A standard normal random number.
            unheard: U, the share of the clients that have never delivered.
        """


@final
class SyntheticFederation:
    """A federation of bidders whose accuracy follows a learning curve.

    Args:
        bidders: The clients and their bids.
        curve: The learning task.
        seed: The seed of noise and failures, which depend on nothing but (seed, purpose, round).
        failure_rate: The probability that a winner does not deliver.
        purpose: The name of the random streams; under another name, other numbers are drawn.
        samples: The number of held-out samples that every accuracy is measured on, or None to
            measure exactly.
    """

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
        # Privacy needs no protection here, since there are no data.
        self.capabilities = Capabilities(protects=True, lacks=bidders.lacks)
        self._curve = curve
        self._seed = seed
        self._failure_rate = failure_rate
        self._purpose = purpose
        self._progress = 0.0
        self._selection = 0.0
        self._heard: set[str] = set()
        self._accuracy = curve.start
        self._samples = samples
        self._measured_noise = 0.0
        if samples:
            self._measured_noise = stream(seed, f"{purpose}, measured").standard_normal()

    def evaluate(self) -> Evaluation:
        """Return the current accuracy and loss; before the first round, those at the start."""
        exact = self._accuracy
        if self._samples is None:
            return Evaluation(exact, loss=_loss(exact))
        error = self._measured_noise * math.sqrt(exact * (1 - exact) / self._samples)
        measured = min(max(exact + error, 0.0), 1.0)
        return Evaluation(measured, _loss(measured), exact, _loss(exact), self._samples)

    def bids(self, round: int) -> Bids:
        """Return the clients' bids in this round."""
        return self.bidders.bids(round)

    def train(self, round: int, award: Award) -> Delivery:
        """Move along the curve according to the number of winners that deliver."""
        rng = stream(self._seed, self._purpose, round)
        failed = rng.random(award.n) < self._failure_rate
        noise = rng.standard_normal()
        self.bidders.tell(round, award)
        delivered: dict[str, Evidence] = {}
        void: dict[str, str] = {}
        for client, has_failed in zip(award.clients, failed, strict=True):
            if has_failed:
                void[client] = "it did not answer"
            else:
                delivered[client] = Evidence()
        if delivered:
            self._heard |= delivered.keys()
            self._learn(len(delivered), noise)
        return Delivery(self.evaluate(), delivered, void)

    def _learn(self, n: int, noise: float) -> None:
        """Add a round in which n clients delivered."""
        curve = self._curve
        N = len(self.bidders.clients)
        apart = float(spread(n, N))
        self._progress += progress(n, N, curve.kappa)
        self._selection = curve.phi * self._selection + (1 - curve.phi) * apart
        unheard = 1 - len(self._heard) / N
        self._accuracy = curve.accuracy(self._progress, self._selection, apart, noise, unheard)


def _loss(accuracy: float) -> float:
    return -math.log(max(accuracy, 1e-6))

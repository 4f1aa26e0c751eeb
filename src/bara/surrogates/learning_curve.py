"""A learning curve with selection noise, learned online: exact Bayesian regression on a grid of shapes.

The model (one round t with n of N clients):

    y_t = y_max - gap g(S_t) - delta E_t + noise,     g(S) = (1 + S / s)^(-p)

Notation:
    y       log-odds of the accuracy: what no curve can leave, and where a point means more the fewer are left
    S       progress: the sum over rounds of rho(n) = (1 + kappa / N) n / (n + kappa), so that rho(N) = 1
    E       recent selection noise: exponential average, with memory phi, of the spread 1/n - 1/N
    noise   variance v (1 + r * spread)
    x       features (1, -g, -E): given (s, p, kappa, phi, r) the model is linear in (y_max, gap, delta), so each cell
            of a grid over the five is a conjugate regression
    c       recency: at round t, round k weighs (k / t)^c, but the last twenty or so always count

What selection costs cannot be learned before n has varied. But it makes the accuracy swing from
round to round, and over real tasks (label shards, Dirichlet, IID; 10 to 100 clients) the two are
about as large: delta's prior mean is such that delta E is the swing seen so far.

Real curves start slowly, or jump, and no curve with few parameters fits all of one; what is to come
looks like what was last. The weights forget in proportion to how long a run has lasted, so nothing
about them depends on the task.

What a cell needs of the past are a few sums, so a round costs the same whether it is the tenth or
the ten-thousandth, nothing is iterated to convergence and there is no local optimum to fall into.
Draws from the posterior are exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from bara.records import FloatArray

S_SCALES = np.geomspace(5.0, 3000.0, 12)
POWERS = np.array([0.5, 1.0, 2.0])
KAPPAS = np.array([0.0, 0.05, 0.2, 0.6])  # parts of N
MEMORIES = np.array([0.0, 0.5, 0.8, 0.93])
NOISES = np.array([0.0, 30.0])

RECENCY = 4.0
SHORTEST_MEMORY = 20
PRIOR_TOP, PRIOR_GAP = (1.5, 1.5), (3.0, 2.0)
"""Mean and deviation of y_max and gap."""

COST_OF_SWING, COST_DEVIATION = 1.0, 0.8
"""delta E in swings, and how far off that may be in parts of it."""

PRIOR_START = 1.5
"""How far the curve's own start may be from the initial model: recent rounds say little about it."""

PRIOR_SHAPE, PRIOR_NOISE = 2.0, 0.1**2

OUTLIER = 3.5
"""Standard deviations beyond which a round counts as that far off and no further."""

Numbers = Any
"""A number, or an array of them."""


def progress(n: Numbers, clients: int, kappa: Numbers) -> Numbers:
    """rho(n): how far a round with n of N clients comes, in parts of one with all of them."""
    return (1 + kappa / clients) * n / (n + kappa)


def spread(n: Numbers, clients: int) -> Numbers:
    """1/n - 1/N: how much a selection of n may differ from the whole; none where all take part."""
    return np.maximum(1 / n - 1 / clients, 0.0)


def interval(draws: Sequence[float] | FloatArray) -> tuple[float, float]:
    """Low and high, between which a next draw lies nine times in ten; from 19 draws on, fewer cannot say.

    >>> interval(range(1, 20))
    (1.0, 19.0)
    """
    # Weibull's: a next draw lies below the k-th smallest of n with probability k / (n + 1).
    low, high = np.quantile(np.asarray(draws, float), [0.05, 0.95], method="weibull")
    return float(low), float(high)


def log_odds(accuracy: Numbers) -> Numbers:
    """y; what is nearly sure counts as 1 in 250."""
    return scipy.special.logit(np.clip(accuracy, 0.004, 0.996))


def gap_left(S: Numbers, s: Numbers, p: Numbers) -> Numbers:
    """g(S): which part of a curve's way up is still to go."""
    return np.exp(-p * np.log1p(S / s))


@dataclass(frozen=True)
class Shapes:
    """Draws from the posterior, a column each; see the module's notation.

    Attributes:
        clients: N.
        level: y now, without this round's noise.
        gap: How much the curve rises in all; never negative.
        delta: What selection noise costs; never negative.
        s: The scale of progress.
        p: The power of the curve.
        kappa: How soon more clients bring no more progress.
        phi: How long selection noise is remembered.
        progress: S now.
        selection: E now.
        noise: v, the noise's variance where all take part.
        noise_ratio: r, how it grows with the spread.
    """

    clients: int
    level: FloatArray
    gap: FloatArray
    delta: FloatArray
    s: FloatArray
    p: FloatArray
    kappa: FloatArray
    phi: FloatArray
    progress: FloatArray
    selection: FloatArray
    noise: FloatArray
    noise_ratio: FloatArray

    def after(self, n: Numbers, rounds: Numbers, end_n: Numbers, end_rounds: Numbers) -> FloatArray:
        """The accuracy after some rounds with n clients and some more with another number; [plans, draws]."""
        n, rounds, end_n, end_rounds = (
            np.asarray(x, dtype=float)[:, None] for x in (n, rounds, end_n, end_rounds)
        )
        S = self.progress + rounds * progress(n, self.clients, self.kappa)
        S = S + end_rounds * progress(end_n, self.clients, self.kappa)
        kept, kept_at_end = self.phi**rounds, self.phi**end_rounds
        E = kept * self.selection + (1 - kept) * spread(n, self.clients)
        E = kept_at_end * E + (1 - kept_at_end) * spread(end_n, self.clients)
        risen = gap_left(self.progress, self.s, self.p) - gap_left(S, self.s, self.p)
        return np.asarray(
            scipy.special.expit(self.level + self.gap * risen - self.delta * (E - self.selection))
        )

    def rounds_to(
        self, accuracy: Numbers, n: Numbers, end_n: Numbers, end_rounds: Numbers
    ) -> FloatArray:
        """How many rounds with n clients, before some more with another number, bring the curve there; [plans, draws].

        Infinitely many where the curve ends below it. What was selected before is taken as
        forgotten by then.
        """
        n, end_n, end_rounds = (np.asarray(x, dtype=float)[:, None] for x in (n, end_n, end_rounds))
        kept_at_end = self.phi**end_rounds
        E = kept_at_end * spread(n, self.clients) + (1 - kept_at_end) * spread(end_n, self.clients)
        rise = (
            log_odds(np.asarray(accuracy, dtype=float)[:, None])
            - self.level
            + self.delta * (E - self.selection)
        )
        gap = gap_left(self.progress, self.s, self.p) - rise / np.maximum(self.gap, 1e-9)
        with np.errstate(over="ignore"):
            S = self.s * np.expm1(-np.log(np.clip(gap, 1e-300, 1.0)) / self.p)
        end = end_rounds * progress(end_n, self.clients, self.kappa)
        needed = np.maximum(S - self.progress - end, 0.0) / progress(n, self.clients, self.kappa)
        return np.where(gap > 0, needed, np.inf)

    def fresh(self) -> "Shapes":
        """The same curves at the initial model."""
        risen = gap_left(self.progress, self.s, self.p) - gap_left(0.0, self.s, self.p)
        level = self.level + self.gap * risen + self.delta * self.selection
        none = np.zeros_like(self.progress)
        return replace(self, level=level, progress=none, selection=none)

    def deviation(self, n: Numbers) -> FloatArray:
        """The standard deviation of the accuracy in a round with n clients at this level; one for each n."""
        apart = np.atleast_1d(spread(np.asarray(n, dtype=float), self.clients))[:, None]
        slope = (self.accuracy * (1 - self.accuracy)) ** 2
        return np.asarray(
            np.sqrt((slope * self.noise * (1 + self.noise_ratio * apart)).mean(axis=1))
        )

    @property
    def accuracy(self) -> FloatArray:
        """The accuracy now, without this round's noise."""
        return np.asarray(scipy.special.expit(self.level))


@dataclass(frozen=True)
class _Posterior:
    """Each cell's weight, mean of (y_max, gap, delta), precision in units of the noise, and noise variance."""

    weights: FloatArray
    mean: FloatArray
    precision: FloatArray
    noise: FloatArray
    shape: float


class LearningCurveBelief:
    """What has been learned about the curve, updated a round at a time.

    Args:
        clients: N.
        initial: The accuracy of the initial model.
    """

    def __init__(self, clients: int, initial: float) -> None:
        self._clients = clients
        grid = np.meshgrid(S_SCALES, POWERS, KAPPAS * clients, MEMORIES, NOISES, indexing="ij")
        self._s, self._p, self._kappa, self._phi, self._ratio = (axis.ravel() for axis in grid)
        cells = len(self._s)
        self._progress, self._selection = np.zeros(cells), np.zeros(cells)
        self._xx, self._xy, self._yy = (
            np.zeros((cells, 3, 3)),
            np.zeros((cells, 3)),
            np.zeros(cells),
        )
        self._log_weight, self._count = np.zeros(cells), 0.0
        self._start = float(log_odds(initial))
        self._last = self._start
        self._swing, self._swings = 2 * PRIOR_NOISE, 2.0
        self._spread = 0.0
        self._known: _Posterior | None = None
        self.rounds = 0

    def tell(self, n: int, accuracy: float) -> None:
        """Learn from one round with n clients."""
        y = self._tamed(n, accuracy)
        self.rounds += 1
        self._known = None
        apart = spread(n, self._clients)
        self._progress += progress(n, self._clients, self._kappa)
        self._selection += (1 - self._phi) * (apart - self._selection)
        x, variance = self._features(self._progress, self._selection), 1 + self._ratio * apart
        kept = max((1 - 1 / self.rounds) ** RECENCY, 1 - 1 / SHORTEST_MEMORY)
        self._xx = kept * self._xx + x[:, :, None] * x[:, None, :] / variance[:, None, None]
        self._xy = kept * self._xy + x * (y / variance)[:, None]
        self._yy = kept * self._yy + y**2 / variance
        self._log_weight = kept * self._log_weight - 0.5 * np.log(variance)
        self._count = kept * self._count + 1
        self._spread = kept * self._spread + apart
        if self.rounds > 1:
            self._swing, self._swings = (
                kept * self._swing + (y - self._last) ** 2 / 2,
                kept * self._swings + 1,
            )
        self._last = y

    def expected(self, n: int, rounds: int, *, fresh: bool = False) -> float:
        """The accuracy that so many more rounds with n clients each would come to.

        Args:
            n: How many clients take part in each.
            rounds: How many rounds.
            fresh: From the initial model instead of from here.
        """
        return float(
            self._posterior().weights @ scipy.special.expit(self._after(n, rounds, fresh=fresh))
        )

    def surprise(self, n: int, accuracy: float) -> float:
        """How many standard deviations a next round with n clients and this accuracy would be off."""
        mean, deviation = self._next(n)
        return (float(log_odds(accuracy)) - mean) / deviation

    def draw(self, rng: np.random.Generator, count: int) -> Shapes:
        """So many exact draws from the posterior."""
        known = self._posterior()
        cells = rng.choice(len(known.weights), count, p=known.weights)
        # Student's t through the noise's own posterior
        noise = known.noise[cells] * known.shape / rng.gamma(known.shape, size=count)
        root = np.linalg.cholesky(known.precision[cells])
        away = np.linalg.solve(root.transpose(0, 2, 1), rng.standard_normal((count, 3, 1)))[:, :, 0]
        y_max, gap, delta = (known.mean[cells] + np.sqrt(noise)[:, None] * away).T
        S, E = self._progress[cells], self._selection[cells]
        here = gap_left(S, self._s[cells], self._p[cells])
        return Shapes(
            clients=self._clients,
            level=y_max
            - gap * here
            - delta * E,  # of all three draws, the one thing the data pin down
            gap=np.maximum(gap, 0.0),
            delta=np.maximum(delta, 0.0),
            s=self._s[cells],
            p=self._p[cells],
            kappa=self._kappa[cells],
            phi=self._phi[cells],
            progress=S,
            selection=E,
            noise=noise,
            noise_ratio=self._ratio[cells],
        )

    def _next(self, n: int) -> tuple[float, float]:
        """Mean and deviation of y in a next round with n clients."""
        known = self._posterior()
        variance = known.weights @ (known.noise * (1 + self._ratio * spread(n, self._clients)))
        return float(known.weights @ self._after(n, 1, fresh=False)), math.sqrt(variance)

    def _tamed(self, n: int, accuracy: float) -> float:
        """y, drawn in towards what was expected where it is absurdly far off."""
        y = float(log_odds(accuracy))
        if self.rounds < 8:
            return y
        mean, deviation = self._next(n)
        return min(max(y, mean - OUTLIER * deviation), mean + OUTLIER * deviation)

    def _after(self, n: int, rounds: int, *, fresh: bool) -> FloatArray:
        """Where each cell's mean curve comes to."""
        kept = self._phi**rounds
        S = (0.0 if fresh else self._progress) + rounds * progress(n, self._clients, self._kappa)
        E = kept * (0.0 if fresh else self._selection) + (1 - kept) * spread(n, self._clients)
        return np.asarray((self._features(S, E) * self._posterior().mean).sum(axis=1))

    def _features(self, S: FloatArray, E: FloatArray) -> FloatArray:
        g = gap_left(S, self._s, self._p)
        return np.stack([np.ones_like(g), -g, -E], axis=1)

    def _prior(self) -> tuple[FloatArray, FloatArray, float]:
        """X'X, X'y and y'y of what is believed without data, in units of the noise's variance, which is the swing's."""
        apart = self._spread / self._count if self._count else 0.1
        swing = self._swing / self._swings
        delta = COST_OF_SWING * math.sqrt(swing) / max(apart, 1e-3)
        mean = np.array([PRIOR_TOP[0], PRIOR_GAP[0], delta])
        own = np.diag(swing / np.array([PRIOR_TOP[1], PRIOR_GAP[1], COST_DEVIATION * delta]) ** 2)
        start, strength = np.array([1.0, -1.0, 0.0]), swing / PRIOR_START**2
        return (
            own + strength * np.outer(start, start),
            own @ mean + strength * self._start * start,
            float(mean @ own @ mean) + strength * self._start**2,
        )

    def _posterior(self) -> _Posterior:
        if self._known is None:
            xx, xy, yy = self._prior()
            precision, right = self._xx + xx, self._xy + xy
            mean = np.asarray(
                np.linalg.solve(precision, right[:, :, None])[:, :, 0], dtype=np.float64
            )
            rest = np.maximum(self._yy + yy - (mean * right).sum(axis=1), 0)
            shape = PRIOR_SHAPE + self._count / 2
            scale = PRIOR_SHAPE * self._swing / self._swings + rest / 2
            evidence = (
                self._log_weight - 0.5 * np.linalg.slogdet(precision)[1] - shape * np.log(scale)
            )
            weights = np.exp(evidence - evidence.max())
            self._known = _Posterior(
                weights / math.fsum(weights), mean, precision, scale / shape, shape
            )
        return self._known

"""A learning curve with selection noise, learned online by exact Bayesian regression on a grid.

The model (one round t with n of N clients):

    y_t = y_max - gap g(S_t) - delta E_t + noise,     g(S) = (1 + S / s)^(-p)

Notation:
    y       log-odds of the accuracy, which keep every curve within (0, 1) and make a point of
            accuracy count for more the fewer are left
    S       progress: the sum over rounds of rho(n) = (1 + kappa / N) n / (n + kappa), so that
            rho(N) = 1
    E       recent selection noise: exponential average, with memory phi, of the spread 1/n - 1/N
    noise   variance v (1 + r * spread)
    x       features (1, -g, -E): given (s, p, kappa, phi, r) the model is linear in (y_max, gap,
            delta), so each cell of a grid over the five is a conjugate regression
    c       recency: at round t, round k weighs (k / t)^c, but the last twenty or so always count

The cost of selecting few clients cannot be learned before n has varied. But selection also makes
the accuracy swing from round to round, and on real tasks (label shards, Dirichlet, IID; 10 to 100
clients) cost and swing are about equally large. The prior mean of delta is therefore chosen such
that delta E equals the swing seen so far.

Real curves start slowly, or jump, and no curve with few parameters fits all of one; the next rounds
resemble the last ones. The weights forget in proportion to how long a run has lasted, so nothing
about them depends on the task.

A cell needs only a few sums over the past. So a round costs the same whether it is the tenth or the
ten-thousandth, nothing is iterated to convergence, and there is no local optimum to fall into.
Draws from the posterior are exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from bara.records import FloatArray

S_SCALES = np.geomspace(5.0, 3000.0, 12)
POWERS = np.array([0.5, 1.0, 2.0])
KAPPAS = np.array([0.0, 0.05, 0.2, 0.6])  # fractions of N
MEMORIES = np.array([0.0, 0.5, 0.8, 0.93])
NOISES = np.array([0.0, 30.0])

RECENCY = 4.0
SHORTEST_MEMORY = 20
PRIOR_TOP = (1.5, 1.5)
"""The prior mean and standard deviation of y_max."""

PRIOR_GAP = (3.0, 2.0)
"""The prior mean and standard deviation of gap."""

COST_OF_SWING = 1.0
"""The prior mean of delta E, in swings."""

COST_DEVIATION = 0.8
"""The prior standard deviation of delta, as a fraction of its mean."""

PRIOR_START = 1.5
"""The standard deviation of the curve's start around the initial model's y.

It is wide because recent rounds say little about the start.
"""

PRIOR_SHAPE = 2.0
"""The shape of the inverse gamma prior of the noise variance."""

PRIOR_NOISE = 0.1**2
"""The noise variance that is assumed before any round."""

OUTLIER = 3.5
"""The most standard deviations by which a round may be off; rounds further off are moved there."""

Numbers = Any
"""A number, or an array of numbers."""


def progress(n: Numbers, clients: int, kappa: Numbers) -> Numbers:
    """Return rho(n): the progress of a round with n of N clients, as a fraction of one with all."""
    return (1 + kappa / clients) * n / (n + kappa)


def spread(n: Numbers, clients: int) -> Numbers:
    """Return 1/n - 1/N: how much n of N clients may differ from all; 0 if all take part."""
    return np.maximum(1 / n - 1 / clients, 0.0)


def interval(draws: Sequence[float] | FloatArray) -> tuple[float, float]:
    """Return the bounds between which a further draw lies with a probability of 90 %.

    At least 19 draws are needed; with fewer, the bounds are the extremes and too narrow.

    >>> interval(range(1, 20))
    (1.0, 19.0)
    """
    # Weibull's method: a further draw is below the k-th smallest of n with probability k / (n + 1).
    low, high = np.quantile(np.asarray(draws, float), [0.05, 0.95], method="weibull")
    return float(low), float(high)


def log_odds(accuracy: Numbers) -> Numbers:
    """Return y, the log-odds of an accuracy, which is first clipped to [0.004, 0.996]."""
    return scipy.special.logit(np.clip(accuracy, 0.004, 0.996))


def gap_left(S: Numbers, s: Numbers, p: Numbers) -> Numbers:
    """Return g(S): the fraction of a curve's rise that is still to come."""
    return np.exp(-p * np.log1p(S / s))


@dataclass(frozen=True)
class Shapes:
    """A sample of learning curves from the posterior, a column per parameter, as in the module.

    Attributes:
        clients: N, the number of clients.
        level: y now, without this round's noise.
        gap: How much the curve rises in all; never negative.
        delta: What selection noise costs; never negative.
        s: The scale of progress.
        p: The power of the curve.
        kappa: The number of clients at which a round makes half of the progress that it could make
            with infinitely many.
        phi: The memory of selection noise, in [0, 1).
        progress: S now.
        selection: E now.
        noise: v, the variance of the noise in a round with all clients.
        noise_ratio: r, by which the variance grows with the spread.
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
        """Return the accuracies after each of several plans, as an array [plans, draws].

        Args:
            n: For each plan, the number of clients in its first rounds.
            rounds: How many such rounds there are.
            end_n: The number of clients in the rounds after them.
            end_rounds: How many rounds follow.
        """
        n = _column(n)
        rounds = _column(rounds)
        end_n = _column(end_n)
        end_rounds = _column(end_rounds)
        S = self.progress + rounds * progress(n, self.clients, self.kappa)
        S = S + end_rounds * progress(end_n, self.clients, self.kappa)
        fading = self.phi**rounds
        end_fading = self.phi**end_rounds
        E = fading * self.selection + (1 - fading) * spread(n, self.clients)
        E = end_fading * E + (1 - end_fading) * spread(end_n, self.clients)
        risen = gap_left(self.progress, self.s, self.p) - gap_left(S, self.s, self.p)
        y = self.level + self.gap * risen - self.delta * (E - self.selection)
        return np.asarray(scipy.special.expit(y))

    def rounds_to(
        self, accuracy: Numbers, n: Numbers, end_n: Numbers, end_rounds: Numbers
    ) -> FloatArray:
        """Return how many rounds with n clients lead to an accuracy, as an array [plans, draws].

        The number is infinite where a curve never gets there. Selection noise of earlier rounds is
        taken to have faded by then.

        Args:
            accuracy: For each plan, the accuracy to reach at the end of all its rounds.
            n: The number of clients in its first rounds, which are counted.
            end_n: The number of clients in the rounds after them.
            end_rounds: How many rounds follow.
        """
        n = _column(n)
        end_n = _column(end_n)
        end_rounds = _column(end_rounds)
        end_fading = self.phi**end_rounds
        E = end_fading * spread(n, self.clients) + (1 - end_fading) * spread(end_n, self.clients)
        rise = log_odds(_column(accuracy)) - self.level + self.delta * (E - self.selection)
        gap = gap_left(self.progress, self.s, self.p) - rise / np.maximum(self.gap, 1e-9)
        with np.errstate(over="ignore"):
            S = self.s * np.expm1(-np.log(np.clip(gap, 1e-300, 1.0)) / self.p)
        end = end_rounds * progress(end_n, self.clients, self.kappa)
        needed = np.maximum(S - self.progress - end, 0.0) / progress(n, self.clients, self.kappa)
        return np.where(gap > 0, needed, np.inf)

    def deviation(self, n: Numbers) -> FloatArray:
        """Return, for each n, the standard deviation of the accuracy in a round with n clients."""
        spreads = np.atleast_1d(spread(np.asarray(n, dtype=float), self.clients))[:, None]
        slope = (self.accuracy * (1 - self.accuracy)) ** 2
        variances = slope * self.noise * (1 + self.noise_ratio * spreads)
        return np.asarray(np.sqrt(variances.mean(axis=1)))

    @property
    def accuracy(self) -> FloatArray:
        """The accuracy now, without this round's noise."""
        return np.asarray(scipy.special.expit(self.level))


def _column(values: Numbers) -> FloatArray:
    """Return one number per plan as a column, to combine with a row of draws."""
    return np.asarray(values, dtype=float)[:, None]


@dataclass(frozen=True)
class _Posterior:
    """The posterior of the parameters, for every cell of the grid.

    Attributes:
        weights: The probability of each cell.
        mean: The mean of (y_max, gap, delta) in each cell.
        precision: The precision of (y_max, gap, delta), in units of the noise variance.
        noise: An estimate of the noise variance in each cell.
        shape: The shape of the inverse gamma distribution of the noise variance, in all cells.
    """

    weights: FloatArray
    mean: FloatArray
    precision: FloatArray
    noise: FloatArray
    shape: float


class LearningCurveBelief:
    """A belief about a run's learning curve, updated round by round.

    Args:
        clients: N, the number of clients.
        initial: The accuracy of the initial model.

    Attributes:
        rounds: The number of rounds told so far.
    """

    def __init__(self, clients: int, initial: float) -> None:
        self._clients = clients
        grid = np.meshgrid(S_SCALES, POWERS, KAPPAS * clients, MEMORIES, NOISES, indexing="ij")
        self._s, self._p, self._kappa, self._phi, self._ratio = (axis.ravel() for axis in grid)
        cells = len(self._s)
        self._progress = np.zeros(cells)  # S
        self._selection = np.zeros(cells)  # E
        # Weighted sums over the past rounds, for each cell or for all of them:
        self._xx = np.zeros((cells, 3, 3))
        self._xy = np.zeros((cells, 3))
        self._yy = np.zeros(cells)
        self._log_weight = np.zeros(cells)
        self._count = 0.0
        self._spread = 0.0
        self._swing = 2 * PRIOR_NOISE  # half the squared differences between successive rounds
        self._swings = 2.0  # how many they are
        self._start = float(log_odds(initial))
        self._last = self._start
        self._known: _Posterior | None = None
        self.rounds = 0

    def tell(self, n: int, accuracy: float) -> None:
        """Learn from one round with n clients."""
        y = self._tamed(n, accuracy)
        self.rounds += 1
        self._known = None
        new_spread = spread(n, self._clients)
        self._progress += progress(n, self._clients, self._kappa)
        self._selection += (1 - self._phi) * (new_spread - self._selection)
        x = self._features(self._progress, self._selection)
        variance = 1 + self._ratio * new_spread
        fading = max((1 - 1 / self.rounds) ** RECENCY, 1 - 1 / SHORTEST_MEMORY)
        self._xx = fading * self._xx + x[:, :, None] * x[:, None, :] / variance[:, None, None]
        self._xy = fading * self._xy + x * (y / variance)[:, None]
        self._yy = fading * self._yy + y**2 / variance
        self._log_weight = fading * self._log_weight - 0.5 * np.log(variance)
        self._count = fading * self._count + 1
        self._spread = fading * self._spread + new_spread
        if self.rounds > 1:
            self._swing = fading * self._swing + (y - self._last) ** 2 / 2
            self._swings = fading * self._swings + 1
        self._last = y

    def expected(self, n: int, rounds: int, *, fresh: bool = False) -> float:
        """Return the expected accuracy after further rounds with n clients each.

        Args:
            n: The number of clients in each round.
            rounds: The number of rounds.
            fresh: Whether to start from the initial model instead of the current one.
        """
        accuracies = scipy.special.expit(self._after(n, rounds, fresh=fresh))
        return float(self._posterior().weights @ accuracies)

    def surprise(self, n: int, accuracy: float) -> float:
        """Return by how many standard deviations a next round with this accuracy would be off."""
        mean, deviation = self._next(n)
        return (float(log_odds(accuracy)) - mean) / deviation

    def draw(self, rng: np.random.Generator, count: int) -> Shapes:
        """Draw `count` learning curves from the exact posterior."""
        known = self._posterior()
        cells = rng.choice(len(known.weights), count, p=known.weights)
        # The noise is drawn from its own posterior, so that the parameters follow Student's t.
        noise = known.noise[cells] * known.shape / rng.gamma(known.shape, size=count)
        root = np.linalg.cholesky(known.precision[cells])
        away = np.linalg.solve(root.transpose(0, 2, 1), rng.standard_normal((count, 3, 1)))[:, :, 0]
        y_max, gap, delta = (known.mean[cells] + np.sqrt(noise)[:, None] * away).T
        S = self._progress[cells]
        E = self._selection[cells]
        here = gap_left(S, self._s[cells], self._p[cells])
        return Shapes(
            clients=self._clients,
            # The data determine the level well, and its three terms only together: so the level is
            # taken before negative draws of gap and delta are cut off.
            level=y_max - gap * here - delta * E,
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
        """Return the mean and the standard deviation of y in a next round with n clients."""
        known = self._posterior()
        variance = known.weights @ (known.noise * (1 + self._ratio * spread(n, self._clients)))
        mean = float(known.weights @ self._after(n, 1, fresh=False))
        return mean, math.sqrt(variance)

    def _tamed(self, n: int, accuracy: float) -> float:
        """Return y of an accuracy, moved towards the expected value if it is an outlier."""
        y = float(log_odds(accuracy))
        if self.rounds < 8:
            return y
        mean, deviation = self._next(n)
        return min(max(y, mean - OUTLIER * deviation), mean + OUTLIER * deviation)

    def _after(self, n: int, rounds: int, *, fresh: bool) -> FloatArray:
        """Return y of each cell's mean curve after further rounds; `expected` has the arguments."""
        S = np.zeros_like(self._progress) if fresh else self._progress
        E = np.zeros_like(self._selection) if fresh else self._selection
        fading = self._phi**rounds
        S = S + rounds * progress(n, self._clients, self._kappa)
        E = fading * E + (1 - fading) * spread(n, self._clients)
        return np.asarray((self._features(S, E) * self._posterior().mean).sum(axis=1))

    def _features(self, S: FloatArray, E: FloatArray) -> FloatArray:
        """Return x for each cell."""
        g = gap_left(S, self._s, self._p)
        return np.stack([np.ones_like(g), -g, -E], axis=1)

    def _prior(self) -> tuple[FloatArray, FloatArray, float]:
        """Return the prior as if it were data: X'X, X'y and y'y, in units of the noise variance.

        The noise variance is taken to be that of the swing.
        """
        mean_spread = self._spread / self._count if self._count else 0.1
        swing = self._swing / self._swings
        delta = COST_OF_SWING * math.sqrt(swing) / max(mean_spread, 1e-3)
        mean = np.array([PRIOR_TOP[0], PRIOR_GAP[0], delta])
        deviation = np.array([PRIOR_TOP[1], PRIOR_GAP[1], COST_DEVIATION * delta])
        own = np.diag(swing / deviation**2)
        # The curve starts near the initial model: y_max - gap is about y of that model.
        start = np.array([1.0, -1.0, 0.0])
        strength = swing / PRIOR_START**2
        xx = own + strength * np.outer(start, start)
        xy = own @ mean + strength * self._start * start
        yy = float(mean @ own @ mean) + strength * self._start**2
        return xx, xy, yy

    def _posterior(self) -> _Posterior:
        """Return the posterior after the rounds told so far, computed once for each."""
        if self._known is not None:
            return self._known
        xx, xy, yy = self._prior()
        precision = self._xx + xx
        right = self._xy + xy
        solved = np.linalg.solve(precision, right[:, :, None])[:, :, 0]
        mean = np.asarray(solved, dtype=np.float64)
        residual = np.maximum(self._yy + yy - (mean * right).sum(axis=1), 0)
        shape = PRIOR_SHAPE + self._count / 2
        scale = PRIOR_SHAPE * self._swing / self._swings + residual / 2
        log_determinant = np.linalg.slogdet(precision)[1]
        evidence = self._log_weight - 0.5 * log_determinant - shape * np.log(scale)
        weights = np.exp(evidence - evidence.max())
        weights /= math.fsum(weights)
        self._known = _Posterior(weights, mean, precision, scale / shape, shape)
        return self._known

"""A learning curve with selection noise, learned online: exact Bayesian regression on a grid of shapes.

The model (one round t with n of N clients):

    accuracy_t = a_max - (a_max - a_0) g(S_t) - delta E_t + noise,     g(S) = (1 + S / s)^(-p)

Notation:
    S       progress: the sum over rounds of rho(n) = (1 + kappa / N) n / (n + kappa), so that rho(N) = 1
    E       recent selection noise: exponential average, with memory phi, of the spread 1/n - 1/N
    noise   variance v (1 + r * spread)
    x, z    features (1 - g, -E) and target accuracy - a_0 g: given (s, p, kappa, phi, r) the model is linear in
            (a_max, delta), so each cell of a grid over the five is a conjugate regression

What a cell needs of the past are six sums, so a round costs the same whether it is the tenth or the ten-thousandth,
nothing is iterated to convergence and there is no local optimum to fall into. Draws from the posterior are exact.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bara.records import FloatArray

S_SCALES = np.geomspace(1.5, 3000.0, 20)
POWERS = np.array([0.3, 0.6, 1.0, 1.6, 2.6])
KAPPAS = np.array([0.0, 0.05, 0.15, 0.4, 1.0])  # parts of N
MEMORIES = np.array([0.0, 0.4, 0.7, 0.87])
NOISES = np.array([0.0, 10.0, 60.0])

PRIOR_MEAN = np.array([0.8, 0.25])  # a_max, delta
PRIOR_DEVIATION = np.array([0.3, 0.3])
PRIOR_SHAPE, PRIOR_NOISE = 2.0, 0.02**2
Numbers = Any
"""A number, or an array of them."""

OUTLIER = 3.5
"""Standard deviations beyond which a round counts as that far off and no further."""


def progress(n: Numbers, clients: int, kappa: Numbers) -> Numbers:
    """rho(n): how far a round with n of N clients comes, in parts of one with all of them."""
    return (1 + kappa / clients) * n / (n + kappa)


def spread(n: Numbers, clients: int) -> Numbers:
    """1/n - 1/N: how much a selection of n may differ from the whole; none where all take part."""
    return np.maximum(1 / n - 1 / clients, 0.0)


def gap_left(S: Numbers, s: Numbers, p: Numbers) -> Numbers:
    """g(S): which part of the way to a_max is still to go."""
    return np.exp(-p * np.log1p(S / s))


@dataclass(frozen=True)
class Shapes:
    """Draws from the posterior, a column each; see the module's notation."""

    a_max: FloatArray
    delta: FloatArray
    s: FloatArray
    p: FloatArray
    kappa: FloatArray
    phi: FloatArray
    progress: FloatArray
    selection: FloatArray
    noise: FloatArray
    noise_ratio: FloatArray


class LearningCurveBelief:
    """What has been learned about the curve, updated a round at a time.

    Args:
        clients: N.
        initial: The accuracy of the initial model.
    """

    def __init__(self, clients: int, initial: float) -> None:
        self._clients = clients
        self.initial = initial
        grid = np.meshgrid(S_SCALES, POWERS, KAPPAS * clients, MEMORIES, NOISES, indexing="ij")
        self._s, self._p, self._kappa, self._phi, self._ratio = (axis.ravel() for axis in grid)
        cells = len(self._s)
        self._progress = np.zeros(cells)
        self._selection = np.zeros(cells)
        precision = 1 / PRIOR_DEVIATION**2
        # The prior is in units of the noise variance: a first guess of it, refined by the posterior.
        self._xx = np.zeros((cells, 3))
        self._xz = np.zeros((cells, 2))
        self._zz = np.zeros(cells)
        self._log_weight = np.zeros(cells)
        self._precision = precision
        self.rounds = 0

    def tell(self, n: int, accuracy: float) -> None:
        """Learn from one round with n clients."""
        here = spread(n, self._clients)
        self._progress += progress(n, self._clients, self._kappa)
        self._selection += (1 - self._phi) * (here - self._selection)
        variance = 1 + self._ratio * here
        g = gap_left(self._progress, self._s, self._p)
        x1, x2 = 1 - g, -self._selection
        z = self._tamed(accuracy, x1, x2, g, variance) - self.initial * g
        self._xx += np.stack([x1 * x1, x1 * x2, x2 * x2], 1) / variance[:, None]
        self._xz += np.stack([x1 * z, x2 * z], 1) / variance[:, None]
        self._zz += z * z / variance
        self._log_weight -= 0.5 * np.log(variance)
        self.rounds += 1

    def expected(self, n: int, rounds: int, *, fresh: bool = False) -> float:
        """The accuracy that so many more rounds with n clients each would come to.

        Args:
            n: How many clients take part in each.
            rounds: How many rounds.
            fresh: From the initial model instead of from here.
        """
        weights, mean, _, _ = self._posterior()
        kept = self._phi**rounds
        S = (0.0 if fresh else self._progress) + rounds * progress(n, self._clients, self._kappa)
        E = kept * (0.0 if fresh else self._selection) + (1 - kept) * spread(n, self._clients)
        g = gap_left(S, self._s, self._p)
        return float(weights @ (mean[:, 0] * (1 - g) + self.initial * g - mean[:, 1] * E))

    def draw(self, rng: np.random.Generator, count: int) -> Shapes:
        """So many exact draws from the posterior."""
        weights, mean, (v11, v12, v22), noise = self._posterior()
        cells = rng.choice(len(weights), count, p=weights)
        # Cholesky of each cell's 2 x 2 covariance, and Student's t through the noise's own posterior
        scale = np.sqrt(noise[cells] * (self._shape() / rng.gamma(self._shape(), size=count)))
        one, two = rng.standard_normal((2, count))
        low = np.sqrt(v11[cells])
        across = v12[cells] / low
        rest = np.sqrt(np.maximum(v22[cells] - across**2, 0))
        a_max = mean[cells, 0] + scale * low * one
        delta = mean[cells, 1] + scale * (across * one + rest * two)
        return Shapes(
            a_max=np.clip(a_max, self.initial, 1.0),
            delta=np.maximum(delta, 0.0),
            s=self._s[cells],
            p=self._p[cells],
            kappa=self._kappa[cells],
            phi=self._phi[cells],
            progress=self._progress[cells],
            selection=self._selection[cells],
            noise=scale**2,
            noise_ratio=self._ratio[cells],
        )

    def _shape(self) -> float:
        return PRIOR_SHAPE + self.rounds / 2

    def _tamed(
        self, accuracy: float, x1: FloatArray, x2: FloatArray, g: FloatArray, variance: FloatArray
    ) -> FloatArray | float:
        """The accuracy, drawn in towards what each cell expects where it is absurdly far off."""
        if self.rounds < 8:
            return accuracy
        _, mean, _, noise = self._cells()
        expected = mean[:, 0] * x1 + mean[:, 1] * x2 + self.initial * g
        reach = OUTLIER * np.sqrt(noise * variance)
        return np.asarray(np.clip(accuracy, expected - reach, expected + reach))

    def _cells(self) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray, FloatArray], FloatArray]:
        """Each cell's log evidence, mean of (a_max, delta), covariance in units of the noise, and noise variance."""
        prior = PRIOR_NOISE * self._precision  # the prior's precision in units of the noise
        a = self._xx[:, 0] + prior[0]
        b = self._xx[:, 1]
        d = self._xx[:, 2] + prior[1]
        y1 = self._xz[:, 0] + prior[0] * PRIOR_MEAN[0]
        y2 = self._xz[:, 1] + prior[1] * PRIOR_MEAN[1]
        determinant = a * d - b * b
        mean = np.stack([(d * y1 - b * y2) / determinant, (a * y2 - b * y1) / determinant], 1)
        start = float((prior * PRIOR_MEAN**2).sum())
        rest = self._zz + start - mean[:, 0] * y1 - mean[:, 1] * y2
        scale = PRIOR_SHAPE * PRIOR_NOISE + np.maximum(rest, 0) / 2
        evidence = self._log_weight - 0.5 * np.log(determinant) - self._shape() * np.log(scale)
        noise = scale / self._shape()
        return evidence, mean, (d / determinant, -b / determinant, a / determinant), noise

    def _posterior(self) -> tuple[FloatArray, FloatArray, tuple[FloatArray, FloatArray, FloatArray], FloatArray]:
        evidence, mean, covariance, noise = self._cells()
        weights = np.exp(evidence - evidence.max())
        return weights / math.fsum(weights), mean, covariance, noise

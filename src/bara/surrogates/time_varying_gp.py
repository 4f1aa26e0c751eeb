"""The time-varying Gaussian process over finitely many arms (Yang et al. 2023, Eqs. 9 to 12).

The kernel is (1 - forgetting)^(|t - t'| / 2) * K[a, a']: any covariance K over the arms,
Ornstein-Uhlenbeck in time. That factor is Markov and the arms are finite, so the posterior is an
exact Kalman filter over the arms, whose cost does not depend on how many rounds there were.
`tests/reference` compares it with the formulas as printed.

Notation:
    K       covariance over arms [A, A]
    m, P    mean [A] and covariance [A, A] of all arms now; with columns m is [A, A], a mean each
    a, y    the arm observed and the value seen; with columns y is [A]
    t       rounds elapsed; a prediction is for round t + ahead
"""

import numpy as np

from bara.records import FloatArray


def squared_exponential(points: FloatArray, length_scale: float) -> FloatArray:
    """Return the covariance exp(-|x - x'|^2 / (2 l^2)) between points on a line."""
    gaps = points[:, None] - points[None, :]
    return np.asarray(np.exp(-(gaps**2) / (2 * length_scale**2)))


class KalmanGP:
    """The time-varying Gaussian process as an exact Kalman filter, at a cost of O(A^2) per round.

    Args:
        covariance: K, the covariance over the arms.
        forgetting: How fast the past loses weight, in [0, 1] (the paper's lambda).
        noise: The variance of an observation (the paper's sigma^2).
        columns: Whether every arm n has a vector of observed values of its own, y_1(n) .. y_t(n),
            as the paper's text after Eq. 12 says, in place of one vector for all arms. The arms
            observed, and so the covariance, are the same for all.
    """

    def __init__(
        self, covariance: FloatArray, forgetting: float, noise: float, *, columns: bool = False
    ) -> None:
        self._prior = covariance
        self._forgetting = forgetting
        self._noise = noise
        self._mean = np.zeros(covariance.shape if columns else len(covariance))
        self._covariance = covariance.copy()

    def observe(self, arm: int, value: float | FloatArray) -> None:
        """Age by a round, then condition on y at arm a; columns whose y is not finite only age."""
        self.pass_round()
        k = self._covariance[:, arm].copy()
        S = k[arm] + self._noise
        surprise = np.where(np.isfinite(value), value - self._mean[..., arm], 0.0)
        self._mean += np.multiply.outer(surprise / S, k)
        self._covariance -= np.outer(k, k / S)

    def pass_round(self) -> None:
        """Age by a round: m <- sqrt(1 - f) m, P <- (1 - f) P + f K; a prior stays as it is."""
        self._mean *= np.sqrt(1 - self._forgetting)
        self._covariance *= 1 - self._forgetting
        self._covariance += self._forgetting * self._prior

    def predict(self, ahead: int = 1) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the standard deviation of every arm, `ahead` rounds from now."""
        fading = (1 - self._forgetting) ** ahead
        variance = fading * np.diagonal(self._covariance) + (1 - fading) * np.diagonal(self._prior)
        mean = self._mean if self._mean.ndim == 1 else np.diagonal(self._mean)
        return mean * np.sqrt(fading), np.sqrt(np.maximum(variance, 0))

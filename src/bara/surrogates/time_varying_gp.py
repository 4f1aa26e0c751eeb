"""The time-varying Gaussian process over finitely many arms (Yang et al. 2023, Eqs. 9 to 12).

The kernel is (1 - forgetting)^(|t - t'| / 2) * K[a, a']: any covariance K over the arms,
Ornstein-Uhlenbeck in time. That factor is Markov and the arms are finite, so the posterior is an
exact Kalman filter over the arms, whose cost does not depend on how many rounds there were.
`tests/reference` compares it with the formulas as printed.

Notation:
    K       covariance over arms                        [A, A]
    m, P    mean and covariance of all arms now         [A], [A, A]; with columns m is [A, A], a mean for each column
    a, y    the arm observed and the value seen; with columns y is [A]
    t       rounds elapsed; a prediction is for round t + ahead
"""

import numpy as np

from bara.records import FloatArray


def squared_exponential(points: FloatArray, length_scale: float) -> FloatArray:
    """The covariance exp(-|x - x'|^2 / (2 l^2)) between points on a line."""
    gaps = points[:, None] - points[None, :]
    return np.asarray(np.exp(-(gaps**2) / (2 * length_scale**2)))


class KalmanGP:
    """The exact filter: O(A^2) a round, whatever the round.

    Args:
        covariance: K, over the arms.
        forgetting: How fast the past loses weight, in [0, 1] (the paper's lambda).
        noise: The variance of an observation (the paper's sigma^2).
        columns: Every arm n reads its own vector of values, y_1(n) .. y_t(n), in place of one that
            all share: the text's words after Eq. 12. Where it was looked, and so the covariance, is
            the same for all.
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
        """Age by a round, then condition on y at arm a; a column whose y is not finite keeps its mean."""
        self.pass_round()
        k = self._covariance[:, arm].copy()
        S = k[arm] + self._noise
        surprise = np.where(np.isfinite(value), value - self._mean[..., arm], 0.0)
        self._mean += np.multiply.outer(surprise / S, k)
        self._covariance -= np.outer(k, k / S)

    def pass_round(self) -> None:
        """Age by a round: m <- sqrt(1 - f) m, P <- (1 - f) P + f K (which leaves the prior as it is)."""
        self._mean *= np.sqrt(1 - self._forgetting)
        self._covariance *= 1 - self._forgetting
        self._covariance += self._forgetting * self._prior

    def predict(self, ahead: int = 1) -> tuple[FloatArray, FloatArray]:
        """Mean and deviation of every arm that many rounds from now."""
        kept = (1 - self._forgetting) ** ahead
        variance = kept * np.diagonal(self._covariance) + (1 - kept) * np.diagonal(self._prior)
        mean = self._mean if self._mean.ndim == 1 else np.diagonal(self._mean)
        return mean * np.sqrt(kept), np.sqrt(np.maximum(variance, 0))

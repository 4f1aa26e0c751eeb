"""The time-varying Gaussian process as the paper prints it (Eqs. 11 and 12).

The reference for `KalmanGP`.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve


class DenseGP:
    """All observations, by Cholesky; cost grows with the rounds. Arguments as of `KalmanGP`."""

    def __init__(self, covariance, forgetting, noise):
        self._prior = covariance
        self._forgetting = forgetting
        self._noise = noise
        self._seen = []  # round, arm, value
        self._round = 0

    def observe(self, arm, value):
        """Append one observation."""
        self._round += 1
        self._seen.append((self._round, arm, value))

    def pass_round(self):
        """A round without one."""
        self._round += 1

    def predict(self, ahead=1):
        """Eqs. 11 and 12 that many rounds from now."""
        if not self._seen:
            return np.zeros(len(self._prior)), np.sqrt(np.diagonal(self._prior))
        rounds = np.array([seen[0] for seen in self._seen])
        arms = np.array([seen[1] for seen in self._seen])
        values = np.array([seen[2] for seen in self._seen])
        K = self._prior[np.ix_(arms, arms)] * self._decay(np.abs(rounds[:, None] - rounds[None, :]))
        k = self._prior[arms, :] * self._decay(self._round + ahead - rounds)[:, None]
        factor = cho_factor(K + self._noise * np.eye(len(values)), lower=True)
        mean = k.T @ cho_solve(factor, values)
        variance = np.diagonal(self._prior) - np.einsum("ta,ta->a", k, cho_solve(factor, k))
        return mean, np.sqrt(np.maximum(variance, 0))

    def _decay(self, gaps):
        return np.asarray((1 - self._forgetting) ** (gaps / 2))

"""One decision of the time-varying Gaussian process, 19 arms, after more and more rounds.

The rivals are measured as far as they go.
"""

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from bara.surrogates import KalmanGP, squared_exponential

sys.path.append(str(Path(__file__).parents[1] / "tests" / "reference"))
from dense_gp import DenseGP

ARMS = np.linspace(0, 1, 19)
DENSE_LIMIT = 3000  # rounds; beyond, the dense forms need gigabytes


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def scikit_learn(seen):
    """The product of two RBF kernels stands in for its cost.

    The values are compared in tests/reference.
    """
    X = np.array([(t / len(seen), ARMS[arm]) for t, (arm, _) in enumerate(seen)])
    regressor = GaussianProcessRegressor(RBF([10.0, 0.2]), alpha=0.01, optimizer=None)
    regressor.fit(X, np.array([value for _, value in seen]))
    regressor.predict(np.column_stack([np.ones(19), ARMS]), return_std=True)


def kalman_seconds(covariance, seen):
    gp = KalmanGP(covariance, 0.001, 0.01)
    for arm, value in seen[:-1]:
        gp.observe(arm, value)
    return min(timed(lambda: (gp.observe(*seen[-1]), gp.predict())) for _ in range(20))


def dense_seconds(covariance, seen):
    gp = DenseGP(covariance, 0.001, 0.01)
    for arm, value in seen:
        gp.observe(arm, value)
    return timed(gp.predict)


def main():
    rng = np.random.default_rng(0)
    covariance = squared_exponential(ARMS, 0.2)
    print(
        f"{'rounds':>8} {'Kalman':>12} {'dense':>12} {'scikit-learn':>14}   (one observation and "
        f"one prediction)"
    )
    for rounds in (100, 1_000, 3_000, 10_000, 100_000):
        seen = [(int(rng.integers(19)), float(rng.normal(0.7, 0.1))) for _ in range(rounds)]
        row = f"{rounds:>8,} {1e6 * kalman_seconds(covariance, seen):>10.1f}us"
        if rounds <= DENSE_LIMIT:
            scikit = timed(lambda seen=seen: scikit_learn(seen))
            row += f" {1e6 * dense_seconds(covariance, seen):>10.0f}us {1e6 * scikit:>12.0f}us"
        print(row)


if __name__ == "__main__":
    main()

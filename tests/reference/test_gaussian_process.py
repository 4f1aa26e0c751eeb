"""The Gaussian process three times: dense formulas, Kalman filter, scikit-learn."""

import numpy as np
import pytest
from dense_gp import DenseGP
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Kernel

from bara.surrogates import KalmanGP, squared_exponential

ARMS = np.linspace(0, 1, 19)


class OrnsteinUhlenbeckByRBF(Kernel):
    """(1 - forgetting)^(|t - t'| / 2) * RBF(x):
    scikit-learn's own RBF over column 1, time in column 0.
    """

    def __init__(self, length_scale=0.2, forgetting=0.001):
        self.length_scale = length_scale
        self.forgetting = forgetting

    def __call__(self, X, Y=None, eval_gradient=False):  # noqa: ARG002, FBT002 - scikit-learn's signature
        Y = X if Y is None else Y
        time = (1 - self.forgetting) ** (np.abs(X[:, :1] - Y[:, :1].T) / 2)
        return time * RBF(self.length_scale)(X[:, 1:], Y[:, 1:])

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return True


def observations(rounds, seed=0):
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(19)), float(rng.normal(0.7, 0.1))) for _ in range(rounds)]


@pytest.mark.parametrize(("rounds", "ahead"), [(1, 1), (40, 1), (200, 1), (40, 0), (40, 5)])
@pytest.mark.parametrize("forgetting", [0.001, 0.1])
def test_dense_kalman_and_scikit_learn_agree_to_nine_digits(rounds, ahead, forgetting):
    covariance = squared_exponential(ARMS, 0.2)
    kalman, dense = KalmanGP(covariance, forgetting, 0.01), DenseGP(covariance, forgetting, 0.01)
    seen = observations(rounds)
    for arm, value in seen:
        kalman.observe(arm, value)
        dense.observe(arm, value)
    reference = GaussianProcessRegressor(
        OrnsteinUhlenbeckByRBF(0.2, forgetting), alpha=0.01, optimizer=None
    )
    X = np.array([(t, ARMS[arm]) for t, (arm, _) in enumerate(seen, 1)])
    reference.fit(X, np.array([value for _, value in seen]))
    mean, deviation = reference.predict(
        np.column_stack([np.full(19, rounds + ahead), ARMS]), return_std=True
    )
    for gp in (kalman, dense):
        np.testing.assert_allclose(gp.predict(ahead)[0], mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(gp.predict(ahead)[1], deviation, rtol=1e-9, atol=1e-9)


@settings(max_examples=60)
@given(
    st.lists(st.none() | st.tuples(st.integers(0, 4), st.floats(-2, 2)), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.001, 0.3]),
)
def test_property_the_filter_is_the_dense_posterior_with_rounds_that_saw_nothing(
    rounds, forgetting
):
    covariance = squared_exponential(np.linspace(0, 1, 5), 0.2)
    kalman, dense = KalmanGP(covariance, forgetting, 0.01), DenseGP(covariance, forgetting, 0.01)
    for seen in rounds:
        for gp in (kalman, dense):
            gp.pass_round() if seen is None else gp.observe(*seen)
    for one, other in zip(kalman.predict(), dense.predict(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.floats(-2, 2), min_size=5, max_size=5)),
        min_size=1,
        max_size=25,
    ),
    st.sampled_from([0.0, 0.001, 0.3]),
)
def test_property_columns_are_a_posterior_for_each_arm_over_its_own_values(rounds, forgetting):
    """The words after Eq. 12, one n at a time:
    Eq. 11 with a-hat_1(n) .. a-hat_t(n), of which mu(n) is kept.
    """
    covariance = squared_exponential(np.linspace(0, 1, 5), 0.2)
    together = KalmanGP(covariance, forgetting, 0.01, columns=True)
    alone = [DenseGP(covariance, forgetting, 0.01) for _ in range(5)]
    for arm, values in rounds:
        together.observe(arm, np.array(values))
        for gp, value in zip(alone, values, strict=True):
            gp.observe(arm, value)
    mean, deviation = together.predict()
    np.testing.assert_allclose(
        mean, [gp.predict()[0][n] for n, gp in enumerate(alone)], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(deviation, alone[0].predict()[1], rtol=1e-9, atol=1e-9)


def test_a_column_without_a_value_keeps_its_mean():
    gp = KalmanGP(np.eye(2), 0.0, 1.0, columns=True)
    gp.observe(0, np.array([1.0, 1.0]))
    before = gp.predict()[0][0]
    gp.observe(0, np.array([np.nan, 1.0]))
    assert gp.predict()[0][0] == before == 0.5


def test_two_observations_by_hand():
    """One arm, K = 1, noise 1, no forgetting:
    after y = 1 and y = 0 the mean is 1/3 and the variance 1/3.
    """
    for gp in (KalmanGP(np.ones((1, 1)), 0.0, 1.0), DenseGP(np.ones((1, 1)), 0.0, 1.0)):
        gp.observe(0, 1.0)
        gp.observe(0, 0.0)
        mean, deviation = gp.predict()
        assert mean[0] == pytest.approx(1 / 3)
        assert deviation[0] ** 2 == pytest.approx(1 / 3)


def test_forgetting_by_hand():
    """One arm, noise 1, forgetting 3/4: y = 1 once gives mean 1/2.

    A round on, sqrt(1/4) of it; two on, 1/4 of it.
    """
    gp = KalmanGP(np.ones((1, 1)), 0.75, 1.0)
    gp.observe(0, 1.0)
    assert gp.predict(ahead=0)[0][0] == pytest.approx(0.5)
    assert gp.predict(ahead=1)[0][0] == pytest.approx(0.25)
    assert gp.predict(ahead=2)[0][0] == pytest.approx(0.125)
    assert gp.predict(ahead=1)[1][0] ** 2 == pytest.approx(0.25 * 0.5 + 0.75)


def test_ten_thousand_rounds_keep_the_filter_sane():
    gp = KalmanGP(squared_exponential(ARMS, 0.2), 0.001, 0.01)
    for arm, value in observations(10_000):
        gp.observe(arm, value)
    mean, deviation = gp.predict()
    assert np.all(np.abs(mean - 0.7) < 0.2)
    assert np.all((deviation > 0) & (deviation < 0.2))

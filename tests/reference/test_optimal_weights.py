"""OptAggr's weights beside scipy's general solver of the same quadratic program."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from bara.mechanisms.fl_market import optimal_weights


def objective(weights, shares, v):
    return float(v @ weights**2 + np.abs(weights - shares).sum() ** 2)


def general_solver(shares, v):
    """lambda = w + up - down with up, down >= 0: smooth, so that a general solver can be asked."""
    n = len(shares)

    def split(x):
        return shares + x[:n] - x[n:]

    def cost(x):
        return float(v @ split(x) ** 2 + x.sum() ** 2)

    eye = np.eye(n)
    simplex = [
        LinearConstraint(np.concatenate([np.ones(n), -np.ones(n)]), 0, 0),
        LinearConstraint(np.hstack([eye, -eye]), -shares, np.inf),
    ]
    done = minimize(
        cost,
        np.zeros(2 * n),
        method="SLSQP",
        bounds=[(0, 1)] * (2 * n),
        constraints=simplex,
        options={"ftol": 1e-12},
    )
    return split(done.x)


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0.2, 5)), min_size=1, max_size=6),
)
@settings(max_examples=100)
def test_property_no_general_solver_finds_better_weights(clients):
    data, precision = (np.array(column, float) for column in zip(*clients, strict=True))
    shares, v = data / data.sum(), 8 / precision**2
    ours, theirs = optimal_weights(data, precision), general_solver(shares, v)
    assert abs(ours.sum() - 1) < 1e-12
    assert ours.min() >= 0
    assert objective(ours, shares, v) <= objective(theirs, shares, v) + 1e-6
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_a_hundred_thousand_winners_are_no_problem():
    rng = np.random.default_rng(0)
    weights = optimal_weights(rng.uniform(1, 100, 10**5), rng.uniform(0.1, 1, 10**5))
    assert abs(weights.sum() - 1) < 1e-9
    assert weights.min() > 0

import numpy as np
import pytest

from bara.surrogates.learning_curve import PRIOR_DEVIATION, PRIOR_MEAN, PRIOR_NOISE, LearningCurveBelief

N = 20


def accuracy(progress, selection, a_0=0.1, a_max=0.85, s=12.0, p=0.8, delta=0.3):
    return a_max - (a_max - a_0) * (1 + progress / s) ** -p - delta * selection


def teach(belief, rounds, noise=0.0, kappa=3.0, phi=0.7, seed=0, **curve):
    rng = np.random.default_rng(seed)
    S = E = 0.0
    for _ in range(rounds):
        n = int(rng.integers(2, 19))
        S += (1 + kappa / N) * n / (n + kappa)
        E += (1 - phi) * (1 / n - 1 / N - E)
        belief.tell(n, float(np.clip(accuracy(S, E, **curve) + noise * rng.standard_normal(), 0, 1)))
    return belief


def test_the_curve_is_recovered_from_noisy_rounds():
    """kappa = 3 is one of the grid's values for 20 clients; s and p trade off, a_max and delta must be right."""
    shapes = teach(LearningCurveBelief(N, 0.1), 200, noise=0.005).draw(np.random.default_rng(0), 400)
    assert shapes.a_max.mean() == pytest.approx(0.85, abs=0.05)
    assert shapes.delta.mean() == pytest.approx(0.3, abs=0.08)
    assert shapes.noise.mean() ** 0.5 == pytest.approx(0.005, abs=0.003)


def test_a_task_without_selection_noise_is_recognised():
    shapes = teach(LearningCurveBelief(N, 0.1), 60, noise=0.002, delta=0.0).draw(np.random.default_rng(0), 400)
    assert shapes.delta.mean() < 0.12


def test_more_rounds_leave_less_doubt():
    early = teach(LearningCurveBelief(N, 0.1), 10, noise=0.01).draw(np.random.default_rng(0), 400)
    late = teach(LearningCurveBelief(N, 0.1), 150, noise=0.01).draw(np.random.default_rng(0), 400)
    assert late.a_max.std() < early.a_max.std() / 2
    assert late.delta.std() < early.delta.std()


def test_one_absurd_round_does_not_move_the_belief_far():
    calm, shaken = (teach(LearningCurveBelief(N, 0.1), 100, noise=0.005) for _ in range(2))
    calm.tell(8, 0.75)
    shaken.tell(8, 0.05)
    one, two = (belief.draw(np.random.default_rng(0), 400) for belief in (calm, shaken))
    assert one.a_max.mean() == pytest.approx(two.a_max.mean(), abs=0.03)


def test_draws_come_from_their_generator_alone():
    belief = teach(LearningCurveBelief(N, 0.1), 20)
    one, two = (belief.draw(np.random.default_rng(5), 8) for _ in range(2))
    assert np.array_equal(one.a_max, two.a_max)
    assert np.array_equal(one.delta, two.delta)


def test_a_cell_is_ordinary_regression():
    """Against numpy's least squares, with the prior's weight taken into account as two more observations."""
    belief = teach(LearningCurveBelief(N, 0.1), 6)
    again = LearningCurveBelief(N, 0.1)
    rng = np.random.default_rng(0)
    S = E = 0.0
    rows, targets = [], []
    cell = 1234
    s, p, kappa, phi, ratio = (getattr(again, name)[cell] for name in ("_s", "_p", "_kappa", "_phi", "_ratio"))
    true_S = true_E = 0.0
    for _ in range(6):
        n = int(rng.integers(2, 19))
        true_S += (1 + 3.0 / N) * n / (n + 3.0)
        true_E += 0.3 * (1 / n - 1 / N - true_E)
        S += (1 + kappa / N) * n / (n + kappa)
        E += (1 - phi) * (1 / n - 1 / N - E)
        rng.standard_normal()
        g = (1 + S / s) ** -p
        weight = (1 + ratio * (1 / n - 1 / N)) ** -0.5
        rows.append(weight * np.array([1 - g, -E]))
        targets.append(weight * (accuracy(true_S, true_E) - 0.1 * g))
    prior = PRIOR_NOISE**0.5 / PRIOR_DEVIATION
    X = np.vstack([*rows, np.diag(prior)])
    z = np.append(targets, prior * PRIOR_MEAN)
    expected = np.linalg.lstsq(X, z, rcond=None)[0]
    assert belief._cells()[1][cell] == pytest.approx(expected, rel=1e-6)

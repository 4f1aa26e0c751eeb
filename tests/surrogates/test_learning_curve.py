import numpy as np
import pytest
from scipy.special import expit, logit

from bara.surrogates import LearningCurveBelief
from bara.surrogates.learning_curve import PRIOR_NOISE, gap_left, log_odds, progress, spread

N = 20


def teach(
    belief,
    rounds,
    noise=0.0,
    kappa=4.0,
    phi=0.8,
    seed=0,
    y_max=1.8,
    gap=3.5,
    s=20.0,
    p=1.0,
    delta=2.0,
):
    """Rounds of the model itself, with n drawn from 2 .. 18."""
    rng = np.random.default_rng(seed)
    S = E = 0.0
    for _ in range(rounds):
        n = int(rng.integers(2, 19))
        S += progress(n, N, kappa)
        E += (1 - phi) * (spread(n, N) - E)
        belief.tell(
            n,
            float(
                expit(y_max - gap * gap_left(S, s, p) - delta * E + noise * rng.standard_normal())
            ),
        )
    return belief


def draws(belief, count=400):
    return belief.draw(np.random.default_rng(0), count)


def test_the_parts_of_the_model_by_hand():
    assert progress(20, N, 5.0) == pytest.approx(1.0)
    assert progress(5, N, 5.0) == pytest.approx(1.25 * 5 / 10)
    assert spread(4, N) == pytest.approx(0.2)
    assert spread(30, N) == 0.0
    assert gap_left(10.0, 10.0, 1.0) == pytest.approx(0.5)
    assert log_odds(0.75) == pytest.approx(np.log(3))
    assert log_odds(1.0) == pytest.approx(np.log(249))


def test_the_curve_is_recovered_from_noisy_rounds():
    shapes = draws(teach(LearningCurveBelief(N, 0.1), 200, noise=0.03))
    assert shapes.delta.mean() == pytest.approx(
        2.0, abs=0.7
    )  # its prior draws it towards the swing
    assert shapes.noise.mean() ** 0.5 == pytest.approx(0.03, abs=0.015)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_what_is_to_come_is_foreseen(noise):
    """A hundred rounds later the model itself is where it was expected, within a point or two."""
    belief = teach(LearningCurveBelief(N, 0.1), 100, noise=noise)
    foreseen = belief.expected(10, 100)
    S = progress(10, N, 4.0) * 100 + sum(progress(int(n), N, 4.0) for n in _sizes(100))
    truth = expit(1.8 - 3.5 * gap_left(S, 20.0, 1.0) - 2.0 * spread(10, N))
    assert foreseen == pytest.approx(truth, abs=0.02)


def _sizes(rounds):
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        yield rng.integers(2, 19)
        rng.standard_normal()


def test_a_draw_s_path_is_the_curve_it_was_drawn_from():
    """`after` with one phase and with two phases of the same size are the same."""
    shapes = draws(teach(LearningCurveBelief(N, 0.1), 60, noise=0.05), 16)
    whole = shapes.after([7.0], [30], [7.0], [0])
    halves = shapes.after([7.0], [18], [7.0], [12])
    assert whole == pytest.approx(halves)
    assert shapes.after([7.0], [0], [7.0], [0])[0] == pytest.approx(shapes.accuracy)


def test_larger_rounds_at_the_end_help_where_selection_costs():
    shapes = draws(teach(LearningCurveBelief(N, 0.1), 100, noise=0.03))
    few, many = shapes.after([5.0, 5.0], [20, 10], [5.0, 19.0], [0, 10]).mean(axis=1)
    assert many > few + 0.01


def test_a_task_without_selection_noise_is_recognised():
    shapes = draws(teach(LearningCurveBelief(N, 0.1), 60, noise=0.02, delta=0.0))
    assert shapes.delta.mean() < 0.5  # against 2 where it is there


def test_before_n_has_varied_selection_is_taken_to_cost_about_what_the_accuracy_swings():
    calm, wild = LearningCurveBelief(N, 0.1), LearningCurveBelief(N, 0.1)
    rng = np.random.default_rng(0)
    for t in range(60):
        level = logit(0.8 - 0.6 / (1 + t / 10))
        calm.tell(7, float(expit(level + 0.02 * rng.standard_normal())))
        wild.tell(7, float(expit(level + 0.3 * rng.standard_normal())))
    assert draws(wild).delta.mean() > 4 * draws(calm).delta.mean()


def test_more_rounds_leave_less_doubt():
    early, late = (
        draws(teach(LearningCurveBelief(N, 0.1), rounds, noise=0.1)) for rounds in (10, 150)
    )
    assert late.level.std() < early.level.std() / 1.5


def test_one_absurd_round_does_not_move_the_belief_far():
    calm, shaken = (teach(LearningCurveBelief(N, 0.1), 100, noise=0.03) for _ in range(2))
    calm.tell(8, calm.expected(8, 1))
    shaken.tell(8, 0.02)
    assert shaken.expected(8, 50) == pytest.approx(calm.expected(8, 50), abs=0.03)
    assert abs(shaken.surprise(8, 0.02)) > 3.5


def test_a_fall_that_lasts_is_believed():
    belief = teach(LearningCurveBelief(N, 0.1), 60, noise=0.03)
    for _ in range(40):
        belief.tell(8, 0.3)
    assert belief.expected(8, 1) == pytest.approx(0.3, abs=0.05)


def test_draws_come_from_their_generator_alone():
    belief = teach(LearningCurveBelief(N, 0.1), 20)
    one, two = (belief.draw(np.random.default_rng(5), 8) for _ in range(2))
    assert np.array_equal(one.level, two.level)
    assert np.array_equal(one.delta, two.delta)


class MiddleOfCell:
    """A generator that draws the middle of one cell of the grid."""

    def __init__(self, cell):
        self.cell = cell

    def choice(self, _cells, count, **_weights):
        return np.full(count, self.cell)

    def gamma(self, shape, size):
        return np.full(size, shape)

    def standard_normal(self, size):
        return np.zeros(size)


def test_a_cell_is_ordinary_weighted_regression():
    """Against numpy's least squares: the prior is three more observations,
    a round weighs its memory over its noise.
    """
    belief = LearningCurveBelief(N, 0.1)
    drawn = belief.draw(MiddleOfCell(777), 1)
    s, p, kappa, phi, ratio = (
        column.item() for column in (drawn.s, drawn.p, drawn.kappa, drawn.phi, drawn.noise_ratio)
    )
    S = E = 0.0
    rows, targets = [], []
    for t, (n, accuracy) in enumerate(
        [(3, 0.2), (9, 0.35), (5, 0.4), (12, 0.55), (7, 0.52), (4, 0.5)], 1
    ):
        belief.tell(n, accuracy)
        S += progress(n, N, kappa)
        E += (1 - phi) * (spread(n, N) - E)
        kept = max((1 - 1 / t) ** 4, 0.95)
        rows = [row * kept**0.5 for row in rows]
        targets = [target * kept**0.5 for target in targets]
        weight = (1 + ratio * spread(n, N)) ** -0.5
        rows.append(weight * np.array([1.0, -gap_left(S, s, p), -E]))
        targets.append(weight * logit(accuracy))
    xx, xy, _ = belief._prior()
    root = np.linalg.cholesky(xx).T
    rows += list(root)
    targets += list(np.linalg.solve(root.T, xy))
    solved = np.linalg.lstsq(np.array(rows), np.array(targets), rcond=None)[0]
    drawn = belief.draw(MiddleOfCell(777), 1)
    gap, delta = drawn.gap.item(), drawn.delta.item()
    assert gap > 0
    assert delta > 0
    assert [drawn.level.item() + gap * gap_left(S, s, p) + delta * E, gap, delta] == pytest.approx(
        solved
    )
    assert np.linalg.eigvalsh(xx).min() > 0
    assert PRIOR_NOISE > 0

"""Algorithm 1, a few rounds of it by hand in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dense_gp import DenseGP
from refusals import refused

from bara import AwardedRound, Bids, Delivery, Evaluation, Evidence, Offer, Purse, RoundRecord
from bara.allocators import Bara, NewtonEstimator
from bara.allocators.estimators import (
    BoundedEstimator,
    CurveEstimator,
    LastEstimator,
    MeanEstimator,
    PiecewiseEstimator,
)
from bara.errors import ConfigError, InvalidRecordError
from bara.mechanisms import bid_price_first
from bara.surrogates import squared_exponential

BIDS = Bids.of({"a": 1, "b": 1, "c": 1, "d": 1})  # B(n) = n: every n costs n
TOTAL = 12


def settle(purse, n, accuracy, bids=BIDS):
    awarded = AwardedRound.of(purse, Offer.recruit(n), bid_price_first().menu(bids))
    assert awarded.award.n == n
    return awarded.settle(
        Delivery(Evaluation(accuracy), dict.fromkeys(awarded.award.clients, Evidence()))
    )


def history(steps, purse=None):
    """Round 0 at accuracy 1/8, then (n, accuracy) a round."""
    purse = purse or Purse.of(TOTAL, 6)
    records = [RoundRecord.initial(purse, Evaluation(0.125))]
    for n, accuracy in steps:
        records.append(settle(records[-1].purse_after, n, accuracy))
    return records


STEPS = [(2, 0.25), (1, 0.375), (2, 0.5), (3, 0.625)]


def test_newtons_estimate_by_hand():
    """Column 2: gains 1/8 in round 1 and 1/8 in round 3: p = 1/8.
    a_hat(2) = 1/8 + 6/8 after T(2) = 12/2 = 6 rounds.

    Column 1 has gain 1/8 in round 2 only; T(1) = 12, capped at 6: 1/8 + 6/8. Column 3: T = 4: 1/8 +
    4/8.
    """
    estimator = NewtonEstimator()
    for record in history(STEPS):
        estimator.tell(record)
    assert estimator.estimate(2, 6) == 0.875
    assert estimator.estimate(1, 6) == 0.875
    assert estimator.estimate(1, 12) == 1.625
    assert estimator.estimate(3, 4) == 0.625
    assert estimator.estimate(4, 4) is None


def test_newton_extrapolates_a_slope_by_hand():
    """Column 2: gains 1/8 (round 1) and 1/16 (round 2): p(t) = 1/8 - (t - 1)/16.

    Over 6 rounds: 6/8 - 15/16 = -3/16.
    """
    estimator = NewtonEstimator()
    for record in history([(2, 0.25), (2, 0.3125)]):
        estimator.tell(record)
    assert Fraction(estimator.estimate(2, 6)) == Fraction(1, 8) - Fraction(3, 16)


def test_algorithm_one_by_hand():
    """Observations in order: a_hat = .875 (n=2: 1 node, 6 rounds),
    .875 (n=1), .875 (n=2), .625 (n=3).
    """
    allocator = Bara(clients=4, exploration_rounds=0, exploration_share=1.0)
    records = history(STEPS)
    gp = DenseGP(squared_exponential(np.array([0, 0.5, 1.0]), 0.2), 0.001, 0.01)
    for record in records:
        allocator.tell(record)
    for n, value in ((2, 0.875), (1, 0.875), (2, 0.875), (3, 0.625)):
        gp.observe(n - 1, value)
    mean, deviation = gp.predict()
    belief = allocator.belief()
    assert belief.arms == (1, 2, 3)
    assert belief.mean == pytest.approx(mean, rel=1e-9)
    assert belief.deviation == pytest.approx(deviation, rel=1e-9)
    assert belief.estimate == 0.625
    upper = mean + 0.8 * math.log(0.4 * 5) * deviation
    assert allocator.ask(records[-1].purse_after).limit == int(np.argmax(upper)) + 1


def test_a_single_observation_moves_the_mean_as_the_formula_says():
    """K = exp(-d^2 / .08): after y = .875 at n = 2, mu(2) = sqrt(.999) .875 / 1.01,
    mu(1) that times exp(-3.125).
    """
    allocator = Bara(clients=4)
    for record in history(STEPS[:1]):
        allocator.tell(record)
    middle = math.sqrt(0.999) * 0.875 / 1.01
    assert allocator.belief().mean == pytest.approx(
        [middle * math.exp(-3.125), middle, middle * math.exp(-3.125)]
    )


def test_stage_one_draws_before_t0_and_stage_two_decides_from_t0_on():
    allocator = Bara(clients=20, seed=3, exploration_rounds=10)
    draws = [
        allocator.ask(Purse.of(1500, 200).__class__(1500_000_000, 200, 0, t)).limit
        for t in range(1, 12)
    ]
    assert len(set(draws[:9])) > 3
    assert (
        draws[9] == draws[10] == 1
    )  # nothing observed: all bounds equal, a tie goes to the smaller n
    assert allocator.belief().stage == "explore"


def test_stage_one_ends_early_when_its_share_is_spent():
    allocator = Bara(clients=4, exploration_rounds=100, exploration_share=0.5)
    purse = Purse(12_000_000, 200, spent=6_000_000, round=5)
    allocator.tell(RoundRecord.initial(Purse.of(12, 200), Evaluation(0.1)))
    assert allocator.ask(purse).limit == 1
    assert Bara(clients=4, preset="paper").reading.exploration_share == 1.0


def test_raw_numbers_share_nothing_and_normalised_ones_do():
    records = history(STEPS[:1])
    raw, shared = Bara(clients=4, preset="paper"), Bara(clients=4)
    for record in records:
        raw.tell(record)
        shared.tell(record)
    assert raw.belief().mean[0] < 1e-5 * raw.belief().mean[1]
    assert shared.belief().mean[0] > 0.01 * shared.belief().mean[1]


def test_estimates_are_clipped_or_stay_as_computed():
    """Gains 1/8 then -1/8 in column 2: p(t) = 1/8 - (t-1)/4 sums to -3 over six rounds."""
    records = history([(2, 0.25), (2, 0.125)])
    clipped, literal = Bara(clients=4), Bara(clients=4, clip=False)
    for record in records:
        clipped.tell(record)
        literal.tell(record)
    assert clipped.belief().estimate == 0.0
    assert literal.belief().estimate == 0.125 + 6 / 8 - 15 / 4


class Constant:
    """An estimator that always says the same."""

    def __init__(self, value):
        self.value = value

    def tell(self, record):
        pass

    def estimate(self, n, rounds):
        self.asked = (n, rounds)
        return self.value


def chosen(value, t):
    """The n that is chosen in round t, after one observation of this value at n = 3."""
    allocator = Bara(clients=4, estimator=Constant(value), clip=False, exploration_rounds=0)
    for record in history([(3, 0.25)]):
        allocator.tell(record)
    return allocator.ask(Purse(12_000_000, 200, 3_000_000, t)).limit


@pytest.mark.parametrize("t", [1, 2])
def test_the_first_bounds_have_no_negative_exploration_term(t):
    """0.8 log(0.4 t) is negative for t = 1, 2 and counts as 0: the highest mean is chosen.

    A negative term would shun n = 1, of which nothing is known.
    """
    assert chosen(-0.1, t) == 1
    assert chosen(0.1, t) == 3


@pytest.mark.parametrize("t", [3, 5, 40])
def test_later_bounds_weigh_the_deviation_by_the_papers_factor(t):
    """n = 3 was observed and n = 2 was not: one value makes their bounds equal."""
    gp = DenseGP(squared_exponential(np.array([0, 0.5, 1.0]), 0.2), 0.001, 0.01)
    gp.observe(2, 1.0)
    mean, deviation = gp.predict()
    crossing = 0.8 * math.log(0.4 * t) * (deviation[1] - deviation[2]) / (mean[2] - mean[1])
    assert chosen(0.999 * crossing, t) == 2
    assert chosen(1.001 * crossing, t) == 3


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, None])
def test_what_no_float_holds_is_no_observation_in_the_papers_reading(value):
    allocator = Bara(clients=4, preset="paper", estimator=Constant(value))
    for record in history(STEPS):
        allocator.tell(record)
    assert allocator.belief().estimate is None
    assert set(allocator.belief().mean) == {0.0}


def test_the_estimator_can_be_swapped_and_is_asked_for_the_horizon():
    """n = 3 costs 3 a round: 12 / 3 = 4 rounds.

    n = 1 would last 12, capped at the deadline of 6.
    """
    for cap, steps, horizon in (
        (True, STEPS, (3, 4)),
        (True, STEPS[:2], (1, 6)),
        (False, STEPS[:2], (1, 12)),
    ):
        estimator = Constant(0.7)
        allocator = Bara(clients=4, estimator=estimator, cap_horizon=cap)
        for record in history(steps):
            allocator.tell(record)
        assert estimator.asked == horizon
        assert allocator.belief().estimate == 0.7


def test_the_horizon_is_at_least_one_round():
    estimator = Constant(0.7)
    allocator = Bara(clients=4, estimator=estimator, cap_horizon=False)
    for record in history([(3, 0.5)], Purse.of(4, 6)):
        allocator.tell(record)
    assert estimator.asked == (3, 1)


def test_costs_average_over_chosen_rounds_or_over_all_menus():
    """n = 1 costs 1 when chosen and 3 in the menu of the other round: mean 1, or 2."""
    dear = Bids.of({"a": 3, "b": 3, "c": 3, "d": 3})
    for average, horizon in (("chosen", 12), ("menus", 6)):
        estimator = Constant(0.7)
        allocator = Bara(clients=4, estimator=estimator, cap_horizon=False, cost_average=average)
        records = history([])
        records.append(settle(records[-1].purse_after, 2, 0.5, dear))
        records.append(settle(records[-1].purse_after, 1, 0.5))
        for record in records:
            allocator.tell(record)
        assert estimator.asked == (1, horizon)


def test_re_estimation_revises_the_past_and_frozen_observations_stay():
    """Column 2 sees gains 1/8, then 0: frozen keeps the first estimate .875,
    re-estimated both are clipped to 0.
    """
    frozen, revised = Bara(clients=4), Bara(clients=4, reestimate=True)
    for record in history([(2, 0.25), (2, 0.25)]):
        frozen.tell(record)
        revised.tell(record)
    assert revised.belief().mean[1] == pytest.approx(0.0)
    assert frozen.belief().mean[1] > 0.3


def test_predicting_this_round_instead_of_the_next_is_an_option():
    now, later = Bara(clients=4, ahead=0), Bara(clients=4)
    for record in history(STEPS[:1]):
        now.tell(record)
        later.tell(record)
    assert now.belief().mean[1] == pytest.approx(later.belief().mean[1] / math.sqrt(0.999))


def test_two_clients_have_one_arm_and_a_lone_client_is_the_only_one():
    assert Bara(clients=2).belief().arms == (1,)
    assert Bara(clients=1).belief().arms == (1,)
    assert Bara(clients=2).ask(Purse.of(1, 1)).limit == 1


def test_very_many_clients_become_a_grid_of_arms():
    arms = Bara(clients=100_000).belief().arms
    assert len(arms) == 256
    assert (arms[0], arms[-1]) == (1, 99_999)


def test_a_budget_too_small_for_stage_one_ends_within_the_budget(play):
    records, ended = play(Bara(clients=8), Purse.of(3, 100))
    assert records[-1].purse_after.spent <= 3_000_000
    assert "cannot pay" in ended


def test_it_asks_for_round_zero_first():
    with refused(InvalidRecordError, "round 0", "RoundRecord.initial", "round 1"):
        Bara(clients=4).tell(history(STEPS)[1])


def test_a_run_settles_into_stage_two(play, make_federation):
    allocator = Bara(clients=20, seed=1)
    records, _ = play(allocator, Purse.of(1500, 200), make_federation(clients=20, seed=1))
    assert allocator.belief().stage == "exploit"
    assert records[-1].round > 40


def test_newtons_estimate_of_what_is_left_by_hand():
    """Column 2 has gains 1/8 in rounds 1 and 3: p = 1/8. From 5/8 after 4 rounds, 2 more: 7/8."""
    estimator = NewtonEstimator()
    for record in history(STEPS):
        estimator.tell(record)
    assert estimator.estimate(2, 6, done=4) == 0.875


def test_the_horizon_may_look_at_what_is_left_instead():
    """After n = 2, 1, 2, 3 there are 12 - 8 = 4 left and two rounds:
    n = 3 costs 3 and can be paid once more.
    """

    class Watching(Constant):
        def estimate(self, n, rounds, *, done=0):
            self.asked = (n, rounds, done)
            return self.value

    estimator = Watching(0.7)
    allocator = Bara(clients=4, estimator=estimator, horizon="left")
    for record in history(STEPS):
        allocator.tell(record)
    assert estimator.asked == (3, 5, 4)


def test_the_curve_estimator_expects_more_of_more_rounds():
    allocator = Bara(clients=4, estimator="curve", horizon="left", exploration_rounds=1)
    for record in history(STEPS):
        allocator.tell(record)
    assert 0.4 < allocator.belief().estimate < 1
    with refused(InvalidRecordError, "round 0", "RoundRecord.initial", "round 1"):
        CurveEstimator(4).tell(history(STEPS)[1])
    with refused(ConfigError, "horizon = 'far'", "'total'", "'left'"):
        Bara(clients=4, horizon="far")


def test_the_letter_does_not_cap_the_horizon():
    """n = 1 costs 1: T(1) = 12 / 1, though the deadline is after 6 rounds."""
    estimator = Constant(0.7)
    allocator = Bara(clients=4, preset="paper", estimator=estimator)
    for record in history(STEPS[:2]):
        allocator.tell(record)
    assert estimator.asked == (1, 12)


def test_lines_of_low_order_by_hand():
    """Column 2 gains 1/8 in round 1 and -1/16 in round 3: between them 1/32, beyond -1/16.

    The mean is 1/32.
    """
    piecewise, mean = PiecewiseEstimator(), MeanEstimator()
    for record in history([(2, 0.25), (1, 0.375), (2, 0.3125)]):
        piecewise.tell(record)
        mean.tell(record)
    assert piecewise.estimate(2, 5) == 0.125 + 1 / 8 + 1 / 32 - 3 / 16
    assert piecewise.estimate(2, 5, done=3) == 0.3125 - 2 / 16
    assert mean.estimate(2, 6) == 0.125 + 6 / 32
    assert mean.estimate(3, 6) is None


def test_bounded_increments_and_the_last_three_by_hand():
    """Column 2 gains 1/8, 1/4, 1/2 and -1/4 in rounds 1 to 4.

    The cubic through all of them is -9/2 in round 5 and -57/4 in round 6; each counts as -1. The
    parabola through the last three is -9/4 in round 5, and -9/4 in round 1.
    """
    bounded, last = BoundedEstimator(), LastEstimator()
    for record in history([(2, 0.25), (2, 0.5), (2, 1.0), (2, 0.75)]):
        bounded.tell(record)
        last.tell(record)
    assert bounded.estimate(2, 4) == 0.75
    assert bounded.estimate(2, 6) == 0.75 - 2
    assert last.estimate(2, 4) == 0.75 - 1 / 8 - 5 / 4 + 1 / 4
    assert last.estimate(3, 6) is bounded.estimate(3, 6) is None


def test_the_column_vector_by_hand():
    """After each round every n has an estimate, a_0 = 1/8 where it has no increment;
    mu(n) reads those of its own n.

    n = 2 stands at .875 from round 1 on, n = 1 at .875 from round 2 on, n = 3 at .625 after round
    4.
    """
    allocator = Bara(clients=4, vector="column", exploration_rounds=0)
    for record in history(STEPS):
        allocator.tell(record)
    columns = {1: [0.125, 0.875, 0.875, 0.875], 2: [0.875] * 4, 3: [0.125, 0.125, 0.125, 0.625]}
    for n, column in columns.items():
        gp = DenseGP(squared_exponential(np.array([0, 0.5, 1.0]), 0.2), 0.001, 0.01)
        for (chosen, _), value in zip(STEPS, column, strict=True):
            gp.observe(chosen - 1, value)
        assert allocator.belief().mean[n - 1] == pytest.approx(gp.predict()[0][n - 1], rel=1e-9)
    assert allocator.belief().estimate == 0.625


def test_per_cent_is_a_prior_and_a_noise_ten_thousand_times_smaller():
    allocator = Bara(clients=4, unit=100, exploration_rounds=0)
    gp = DenseGP(squared_exponential(np.array([0, 0.5, 1.0]), 0.2) / 1e4, 0.001, 0.01 / 1e4)
    records = history(STEPS)
    for record in records:
        allocator.tell(record)
    for n, value in ((2, 0.875), (1, 0.875), (2, 0.875), (3, 0.625)):
        gp.observe(n - 1, value)
    mean, deviation = gp.predict()
    assert allocator.belief().mean == pytest.approx(mean, rel=1e-6)
    assert allocator.belief().deviation == pytest.approx(deviation, rel=1e-6)
    upper = mean + 0.8 * math.log(0.4 * 5) * deviation
    assert allocator.ask(records[-1].purse_after).limit == int(np.argmax(upper)) + 1


OBSERVED = ((2, 0.875), (1, 0.875), (2, 0.875), (3, 0.625))
"""The estimates of STEPS in the order of rounds, each with its n."""


def told(**options):
    """An allocator that was told STEPS."""
    allocator = Bara(clients=4, exploration_rounds=0, **options)
    for record in history(STEPS):
        allocator.tell(record)
    return allocator


def dense(values, amplitude=1.0):
    """The formulas as printed, given what is observed of each round's n."""
    kernel = amplitude**2 * squared_exponential(np.array([0, 0.5, 1.0]), 0.2)
    gp = DenseGP(kernel, 0.001, 0.01)
    for (n, _), value in zip(OBSERVED, values, strict=True):
        gp.observe(n - 1, value)
    return gp.predict()


def test_the_prior_may_have_a_mean_and_an_amplitude():
    mean, deviation = dense([value - 0.5 for _, value in OBSERVED], amplitude=3)
    belief = told(prior_mean=0.5, amplitude=3).belief()
    assert belief.mean == pytest.approx(0.5 + mean, rel=1e-9)
    assert belief.deviation == pytest.approx(deviation, rel=1e-9)


def test_standardised_estimates_have_mean_zero_and_deviation_one_in_every_round():
    values = np.array([value for _, value in OBSERVED])
    mean, deviation = dense((values - values.mean()) / values.std())
    belief = told(standardise=True).belief()
    assert belief.mean == pytest.approx(values.mean() + values.std() * mean, rel=1e-9)
    assert belief.deviation == pytest.approx(values.std() * deviation, rel=1e-9)


def test_equal_estimates_have_no_deviation_to_divide_by():
    allocator = Bara(clients=4, exploration_rounds=0, standardise=True)
    for record in history([(2, 0.25)]):
        allocator.tell(record)
    assert allocator.belief().mean[1] == 0.875


@pytest.mark.parametrize("options", [{"vector": "column"}, {"reestimate": True}])
def test_standardised_estimates_are_those_of_each_rounds_n_as_they_were(options):
    with refused(ConfigError, "'bara'", "standardise", *options):
        Bara(clients=4, standardise=True, **options)


def test_a_round_may_predict_the_posterior_mean_and_decides_the_same():
    by_estimate, by_mean = (
        Bara(clients=4, exploration_rounds=0),
        Bara(clients=4, exploration_rounds=0, predicts="mean"),
    )
    assert by_mean.belief().estimate is None
    for record in history(STEPS):
        by_estimate.tell(record)
        by_mean.tell(record)
        assert by_estimate.ask(record.purse_after) == by_mean.ask(record.purse_after)
    assert (
        by_mean.belief().estimate == by_estimate.belief().mean[2] != by_estimate.belief().estimate
    )


@pytest.mark.parametrize(
    ("option", "value"), [("vector", "row"), ("unit", 0), ("predicts", "luck")]
)
def test_a_reading_that_there_is_not_is_refused(option, value):
    with refused(ConfigError, "'bara'", f"{option} = {value!r}"):
        Bara(clients=4, **{option: value})

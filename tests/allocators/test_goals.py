from dataclasses import replace
from itertools import pairwise

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from refusals import refused

from bara import Award, Delivery, Evaluation, Purse, RoundRecord, Session
from bara.allocators import ALLOCATORS
from bara.allocators._aims import Aims
from bara.allocators._kept import KeptModel
from bara.allocators.planner import Planner
from bara.allocators.prospects import PARTS, Prospects, enough
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.errors import ConfigError
from bara.mechanisms import bid_price_first
from bara.mechanisms.turns import Turns
from bara.records import Goal
from bara.runs.config import Config
from bara.runs.factory import build_allocator
from bara.simulator.synthetic import LearningCurve, SyntheticFederation
from bara.surrogates import LearningCurveBelief

pytestmark = pytest.mark.path  # whole runs

PURSE = Purse.of(360, 60)
EASY = {"delta": 0.02, "v_1": 2e-4}


def with_goal(seed=0, **goal):
    return Planner(clients=20, seed=seed, goal=Goal(**goal))


def played(make_federation, purse=PURSE, curve=None, seed=0, **goal):
    session = Session(
        with_goal(seed, **goal),
        bid_price_first(),
        make_federation(clients=20, seed=seed, **(curve or EASY)),
    )
    return [step for step in session.rounds(purse) if isinstance(step, RoundRecord)], session


# --- what can be asked for ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        (["budget.target=0"], ("budget.target", "fraction", "got 0")),
        (["budget.target=1"], ("budget.target", "fraction", "got 1")),
        (["budget.target=85"], ("budget.target", "0.85", "got 85")),
        (["budget.target=nan"], ("budget.target", "fraction", "nan")),
        (["budget.target=0.8", "budget.confidence=90"], ("budget.confidence", "0.9", "90")),
        (["budget.target=0.8", "budget.worth=3"], ("budget.target", "budget.worth")),
        (["budget.worth=-3"], ("budget.worth", "negative")),
        (["budget.worth=nan"], ("budget.worth", "nan")),
        (
            ["budget.target=0.8", "budget.otherwise=hope"],
            ("budget.otherwise", "'spend'", "'stop'", "'ask'", "'hope'"),
        ),
    ],
)
def test_a_goal_that_cannot_be_meant_is_refused_in_one_line(changes, facts):
    with refused(ConfigError, *facts) as caught:
        Config.load(None, changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("goal", ["budget.target=0.8", "budget.worth=3"])
@pytest.mark.parametrize("name", [name for name in ALLOCATORS.names() if name != "planner"])
def test_an_allocator_that_does_not_declare_a_goal_refuses_it_in_one_line(name, goal):
    config = Config.load(None, [f"allocator.name={name}", goal])
    with refused(ConfigError, goal.partition("=")[0], repr(name), "planner") as caught:
        build_allocator(config)
    assert "\n" not in str(caught.value)


def test_a_target_that_the_initial_model_has_reached_is_refused_before_money_moves(make_federation):
    with refused(ConfigError, "budget.target", "0.1", "initial model"):
        played(make_federation, target=0.1)


def test_worth_nothing_in_particular_with_all_the_money_is_the_papers_question(make_federation):
    plain = Session(Planner(clients=20), bid_price_first(), make_federation(clients=20))
    offers = [step.awarded.offer for step in plain.rounds(PURSE) if isinstance(step, RoundRecord)]
    records, _ = played(make_federation, curve={"delta": 0.3}, worth=0)
    assert [record.awarded.offer for record in records] == offers


# --- when a target is reached -------------------------------------------------------------------


def seen(evaluation, expected=None):
    kept = KeptModel()
    kept.tell(evaluation, expected)
    return kept


def test_the_more_samples_a_model_was_measured_on_the_surer_one_may_be():
    sure = [seen(Evaluation(0.87, samples=samples)).sure(0.85) for samples in (100, 1000, 10_000)]
    assert sure == sorted(sure)
    assert sure[0] < 0.75
    assert sure[2] > 0.99
    assert seen(Evaluation(0.87)).sure(0.85) == 1.0
    assert seen(Evaluation(0.84)).sure(0.85) == 0.0


def test_the_level_to_come_to_is_where_one_may_be_as_sure_as_was_asked():
    kept = seen(Evaluation(0.5, samples=400))
    level = kept.level(0.8, 0.9)
    assert seen(Evaluation(level, samples=400)).sure(0.8) == pytest.approx(0.9)


def test_luck_on_few_samples_counts_less_than_on_many():
    few, many = (
        seen(Evaluation(0.9, samples=samples), expected=0.8).accuracy for samples in (100, 10_000)
    )
    assert 0.8 < few < 0.85
    assert 0.89 < many < 0.9


def test_what_counts_is_the_model_that_would_be_taken_home():
    kept = KeptModel()
    kept.tell(Evaluation(0.9, loss=0.3, test_accuracy=0.9), None)
    kept.tell(Evaluation(0.7, loss=0.9, test_accuracy=0.7), None)
    assert kept.accuracy == 0.9
    kept.tell(Evaluation(0.8, loss=0.2, test_accuracy=0.8), None)
    assert kept.accuracy == 0.8


def test_other_data_agree_nine_times_in_ten_with_the_interval_that_is_told():
    kept = seen(Evaluation(0.7, samples=400))
    low, high = kept.interval
    true = np.random.default_rng(0).normal(0.7, kept.error(0.7), 6000)
    assert ((low < true) & (true < high)).mean() == pytest.approx(0.9, abs=0.01)
    assert seen(Evaluation(0.7)).interval == (0.7, 0.7)


def test_the_end_names_what_was_measured_its_interval_and_how_many_were_heard():
    aims = Aims(Goal(target=0.6), clients=4)
    kept = seen(Evaluation(0.7, samples=400))
    offer, _ = aims.first(Purse.of(total=100, max_rounds=10), kept)
    low, high = kept.interval
    for fact in ("60 %", "70 % on validation", f"{100 * low:.3g} %", f"{100 * high:.3g} %"):
        assert fact in offer.reason
    assert "clients heard" in offer.reason


def test_how_sure_it_is_is_how_often_it_is_right():
    """Models of every accuracy, each measured on 400 samples:
    of those it is 80 to 90 % sure of, 85 % are that good.
    """
    rng = np.random.default_rng(0)
    true = rng.uniform(0.6, 0.8, 6000)
    measured = rng.binomial(400, true) / 400
    sure = np.array([seen(Evaluation(value, samples=400)).sure(0.7) for value in measured])
    for low, high in ((0.1, 0.3), (0.4, 0.6), (0.8, 0.9), (0.9, 0.99)):
        within = (low < sure) & (sure < high)
        assert (true[within] >= 0.7).mean() == pytest.approx(sure[within].mean(), abs=0.05)


def test_it_ends_with_money_left_as_soon_as_the_target_is_reached(make_federation):
    records, market = played(make_federation, target=0.4)
    assert market.ended.startswith("the target of 40 % is reached, over 99 % sure")
    assert records[-1].evaluation.accuracy >= 0.4
    assert all(record.evaluation.accuracy < 0.4 for record in records[:-1])
    assert market.purse.spent < 0.3 * PURSE.total


def test_a_higher_target_costs_more(make_federation):
    spent = [played(make_federation, target=target)[1].purse.spent for target in (0.3, 0.45, 0.55)]
    assert spent == sorted(spent)


# --- how many must be heard ----------------------------------------------------------------------

HOSPITALS = tuple(f"hospital-{i}" for i in range(8))
PRICES = np.arange(100.0, 180.0, 10.0)


def heard_for_a_target(mechanism, **goal):
    """Eight hospitals with prices that stay, and a target that one of them alone would reach."""
    federation = SyntheticFederation(
        Bidders(HOSPITALS, Distribution.parse("constant(1)"), 0, factors=PRICES),
        LearningCurve(delta=0, v_1=0, s=2),
        0,
    )
    planner = Planner(clients=8, goal=Goal(target=0.4, **goal))
    session = Session(planner, mechanism, federation)
    heard = set()
    for step in session.rounds(Purse.of(40_000, 60)):
        if isinstance(step, RoundRecord):
            heard |= step.payments.keys()
    return len(heard), session.ended


@pytest.mark.parametrize("mechanism", [bid_price_first, Turns])
@pytest.mark.parametrize(("min_clients", "least"), [(None, 4), (6, 6), (1, 1)])
def test_a_target_counts_as_reached_once_enough_clients_were_heard(mechanism, min_clients, least):
    heard, ended = heard_for_a_target(mechanism(), min_clients=min_clients)
    assert heard >= least
    assert f"{heard} of 8 clients heard" in ended


def test_more_clients_than_there_are_are_never_heard():
    heard, ended = heard_for_a_target(Turns(reserve=1000), min_clients=9)
    assert heard == 8
    assert ended == "the deadline is reached"


def test_a_number_of_clients_without_a_target_is_refused():
    with refused(ConfigError, "budget.min_clients", "budget.target"):
        Goal(min_clients=3)


# --- out of reach, and not worth it -------------------------------------------------------------

LOW = {"a_max": 0.5, **EASY}


def test_a_target_out_of_reach_is_said_with_what_is_expected_and_what_would_help(make_federation):
    records, market = played(make_federation, curve=LOW, target=0.9)
    said = [
        record
        for record in records
        if record.awarded.belief and "out of reach" in record.awarded.belief.stage
    ]
    assert said[0].round < 50
    assert said[0].awarded.belief.outlook.out_of_reach
    assert "% is expected, and" in said[0].awarded.belief.stage
    assert market.ended == "the deadline is reached"


def test_nothing_is_given_up_before_what_an_even_share_pays_was_tried(make_federation):
    """One client per round teaches nothing here,
    and that is all that was seen when the target looked out of reach.
    """
    planner = Planner(clients=8, seed=5, goal=Goal(target=0.2))
    session = Session(planner, bid_price_first(), make_federation(clients=8, seed=5))
    steps = session.rounds(Purse.of(300, 15))
    records = [step for step in steps if isinstance(step, RoundRecord)]
    assert records[5].n == 1
    assert records[5].evaluation.accuracy == 0
    assert session.ended.startswith("the target of 20 % is reached")


def test_a_target_out_of_reach_may_stop_the_run(make_federation):
    _, market = played(make_federation, curve=LOW, target=0.9, otherwise="stop")
    assert market.ended.startswith("the target of 90 % looks out of reach")
    assert market.purse.spent < PURSE.total / 2


def test_a_target_out_of_reach_may_wait_for_approval_once(make_federation):
    records, market = played(make_federation, curve=LOW, target=0.9, otherwise="ask")
    asked = [record for record in records if record.awarded.offer.asks]
    assert len(asked) == 1  # a market without books takes it as approved
    assert "out of reach" in asked[0].awarded.offer.asks
    assert market.ended == "the deadline is reached"


@pytest.mark.parametrize("bidders", [1, 20])
def test_a_round_in_which_nobody_can_be_recruited_is_not_a_decline(make_federation, bidders):
    """With one bidder nobody could be approved, so the next round asks again.

    An award taken back is a decline.
    """
    records, _ = played(make_federation, curve=LOW, target=0.9, otherwise="ask")
    allocator = with_goal(target=0.9, otherwise="ask")
    for record in records:
        if record.awarded.offer.asks:
            break
        allocator.tell(record)
    awarded = record.awarded
    menu = bid_price_first().menu(awarded.bids.without(awarded.bids.clients[bidders:]))
    declined = replace(awarded, bids=menu.bids, costs=menu.costs, award=Award())
    after = declined.settle(Delivery(record.evaluation))
    allocator.tell(after)
    assert (allocator.ask(after.purse_after).asks is not None) == (bidders == 1)
    assert allocator.ask(after.purse_after).stopped == (bidders == 20)


def test_the_more_a_point_is_worth_the_more_is_spent_and_nothing_beyond_its_worth(make_federation):
    """The curve is steep and then flat.

    A point of its flat part costs more than a point of its steep one.
    """
    markets = [
        played(make_federation, worth=worth)[1] for worth in (200_000, 2_000_000, 50_000_000)
    ]
    spent = [market.purse.spent for market in markets]
    assert spent == sorted(spent)
    assert spent[0] < 0.2 * PURSE.total
    assert (
        markets[0].ended == "one more point of accuracy would cost more than the 0.20 it is worth"
    )
    assert spent[2] > 3 * spent[0]


# --- what is promised of the planner holds for its goals ------------------------------------------

goals = st.one_of(
    st.builds(Goal, target=st.floats(0.15, 0.95), confidence=st.floats(0.5, 0.99)),
    st.builds(Goal, worth=st.integers(10_000, 50_000_000)),
)


@hypothesis.given(
    goal=goals,
    budget=st.integers(1, 300),
    max_rounds=st.integers(1, 40),
    failure_rate=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 9),
)
@hypothesis.settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_a_goal_never_exceeds_budget_or_deadline(
    goal, budget, max_rounds, failure_rate, seed, make_federation
):
    allocator = Planner(clients=8, seed=seed, goal=goal)
    purse = Purse.of(budget, max_rounds)
    federation = make_federation(clients=8, seed=seed, failure_rate=failure_rate)
    steps = Session(allocator, bid_price_first(), federation).rounds(purse)
    records = [step for step in steps if isinstance(step, RoundRecord)]
    assert records[-1].purse_after.spent <= purse.total
    assert records[-1].round <= max_rounds


@pytest.mark.parametrize("goal", [{"target": 0.6}, {"target": 0.9}, {"worth": 1_000_000}])
def test_rebuilt_from_its_records_it_decides_the_same_and_ends_for_the_same_reason(
    goal, make_federation
):
    records, market = played(make_federation, curve=LOW, **goal)
    rebuilt = with_goal(**goal)
    for record, following in pairwise(records):
        rebuilt.tell(record)
        assert rebuilt.ask(record.purse_after) == following.awarded.offer
    rebuilt.tell(records[-1])
    if market.ended != "the deadline is reached":
        assert rebuilt.ask(market.purse).reason == market.ended


# --- what more money would buy ------------------------------------------------------------------


def prospects(rounds=30, left=60):
    belief = LearningCurveBelief(20, 0.1)
    for t in range(1, rounds + 1):
        belief.tell(2 + t % 4, 0.8 - 0.7 / (1 + t / 8))
    arms = np.arange(1, 20)
    shapes = belief.draw(np.random.default_rng(0), 48)
    purse = Purse(300_000_000, rounds + left, 40_000_000, rounds + 1)
    return Prospects(purse, arms, 1e6 * arms * (0.5 + arms / 20), shapes), shapes, purse


def test_more_money_buys_no_less_and_the_curve_says_where_it_is_enough():
    found, _, purse = prospects()
    curve = found.curve(0.6)
    accuracies = [one.accuracy for one in curve]
    assert accuracies == sorted(accuracies)
    assert accuracies[0] == 0.6
    assert len(curve) == len(PARTS)
    assert all(one.low <= one.accuracy <= one.high for one in curve)
    assert purse.spent <= enough(curve, purse.total) < purse.total


def test_the_rounds_to_a_level_bring_the_curve_there():
    """Where what was selected before is forgotten."""
    _, shapes, _ = prospects()
    steady = replace(shapes, phi=np.zeros_like(shapes.phi))
    needed = steady.rounds_to([0.75], [5], [5], [0])[0]
    for draw in np.flatnonzero((needed > 1) & (needed < 1e6)):
        assert steady.after([5], [needed[draw]], [5], [0])[0, draw] == pytest.approx(0.75)


def test_the_cheapest_plan_is_no_dearer_than_one_that_must_be_done_sooner_or_more_surely():
    found, _, _ = prospects()
    plain, surer, sooner = (
        found.cheapest(0.7, 0.5),
        found.cheapest(0.7, 0.9),
        found.cheapest(0.7, 0.5, 0.4),
    )
    assert plain.spend <= surer.spend
    assert plain.spend <= sooner.spend
    assert found.cheapest(0.9999, 0.99) is None

import numpy as np
import pytest
from refusals import refused

from bara import ALLOCATORS, Purse
from bara.allocators import Bara, Decreasing, Even, Explored, Fixed, Increasing, RandomN
from bara.errors import ConfigError, UnknownNameError

PURSE = Purse.of(1500, 200)


def at(round_number, left):
    return Purse(total=1500_000_000, max_rounds=200, spent=1500_000_000 - left, round=round_number)


def budgets(allocator, purse=PURSE):
    return [
        allocator.ask(Purse(purse.total, purse.max_rounds, 0, t)).budget
        for t in range(1, purse.max_rounds + 1)
    ]


def test_even_allocation_is_the_budget_over_the_deadline():
    assert set(budgets(Even())) == {7_500_000}


def test_increasing_allocation_is_the_papers_formula():
    """B_t = 2 * 1500 / 200^2 * t = 0.075 t; the shares sum to 201/200 of the budget."""
    shares = budgets(Increasing())
    assert shares[0] == 75_000
    assert shares[-1] == 15_000_000
    assert sum(shares) * 200 == PURSE.total * 201


def test_decreasing_allocation_is_the_papers_formula():
    """B_t = -0.075 t + 15; the last round gets nothing."""
    shares = budgets(Decreasing())
    assert shares[0] == 14_925_000
    assert shares[-1] == 0
    assert sum(shares) * 200 == PURSE.total * 199


def test_carry_over_shares_what_is_left_among_the_rounds_left():
    assert Even(carry_over=True).ask(at(101, left=1000_000_000)).budget == 10_000_000
    assert Even(carry_over=True).ask(at(200, left=3)).budget == 3
    assert Increasing(carry_over=True).ask(at(199, left=399_000_000)).budget == 199_000_000
    assert Decreasing(carry_over=True).ask(at(199, left=5)).budget == 5


@pytest.mark.parametrize("make", [Even, Increasing, Decreasing])
def test_carry_over_leaves_less_unspent(play, make):
    plain, carried = (play(make(carry_over=c))[0][-1].purse_after.spent for c in (False, True))
    assert carried > plain


@pytest.mark.parametrize("make", [Even, Increasing, Decreasing])
@pytest.mark.parametrize("carry_over", [False, True])
def test_the_shares_may_end_before_the_run_does(make, carry_over):
    bound, unbound = make(carry_over), make(carry_over, horizon=200)
    longer = Purse.of(1500, 1000)
    for t in range(1, 201):
        long, short = Purse(longer.total, 1000, 0, t), Purse(PURSE.total, 200, 0, t)
        assert unbound.ask(long).budget == bound.ask(short).budget
    after = unbound.ask(Purse(longer.total, 1000, 0, 201))
    assert after.stopped
    assert "200" in after.reason


def test_random_allocation_draws_every_n_evenly_and_from_seed_and_round_alone():
    allocator = RandomN(clients=5, seed=1)
    draws = [allocator.ask(Purse(10, 4000, 0, t)).limit for t in range(1, 4001)]
    counts = np.bincount(draws)
    assert counts[0] == 0
    assert len(counts) == 5
    assert np.all(np.abs(counts[1:] - 1000) < 120)
    assert allocator.ask(Purse(99, 9, 50, 7)) == RandomN(clients=5, seed=1).ask(
        Purse(10, 4000, 0, 7)
    )
    assert draws != [
        RandomN(clients=5, seed=2).ask(Purse(10, 4000, 0, t)).limit for t in range(1, 4001)
    ]


def test_random_allocation_ends_when_its_draw_cannot_be_paid(play):
    records, ended = play(RandomN(clients=8), Purse.of(20, 1000))
    assert ended == "the money left cannot pay what the allocator wants"
    assert records[-1].round < 1000


def test_a_fixed_number_is_recruited_until_the_money_ends(play):
    records, ended = play(Fixed(4), Purse.of(40, 1000))
    assert {record.n for record in records[1:]} == {4}
    assert "cannot pay" in ended


def test_the_bound_explores_as_bara_does_and_then_keeps_its_n():
    bound, bara = (
        Explored(n=3, clients=8, seed=5, exploration_rounds=6),
        Bara(clients=8, seed=5, exploration_rounds=6),
    )
    purses = [Purse(100_000_000, 20, 0, t) for t in range(1, 9)]
    offers = [bound.ask(purse).limit for purse in purses]
    assert offers[:5] == [bara.ask(purse).limit for purse in purses[:5]]
    assert len(set(offers[:5])) > 1
    assert offers[5:] == [3, 3, 3]


def test_a_fixed_number_may_shrink_instead(play):
    records, _ = play(Fixed(4, shortfall="shrink"), Purse.of(40, 100))
    assert {record.n for record in records[1:]} >= {4, 0}


@pytest.mark.parametrize(
    ("name", "options", "facts"),
    [
        ("fixed", {"n": 0}, ("'fixed'", "n = 0")),
        ("fixed", {}, ("'fixed'", "allocator.n", "fixed:n=")),
        ("explored", {"n": 0}, ("'explored'", "n = 0")),
        ("even", {"carryover": True}, ("'even'", "'carryover'", "'carry_over'")),
        ("bara", {"lenght_scale": 1}, ("'bara'", "'lenght_scale'", "'length_scale'")),
        ("even", {"horizon": 0}, ("'even'", "horizon = 0")),
        ("increasing", {"horizon": -1}, ("'increasing'", "horizon = -1")),
        ("decreasing", {"horizon": 2.5}, ("'decreasing'", "horizon = 2.5")),
        ("even", {"carry_over": "no"}, ("'even'", "carry_over = 'no'")),
        ("fixed", {"n": 2.5}, ("'fixed'", "n = 2.5")),
        ("fixed", {"n": True}, ("'fixed'", "n = True")),
        ("bara", {"clip": "maybe"}, ("'bara'", "clip = 'maybe'")),
        ("bara", {"noise": float("inf")}, ("'bara'", "noise = inf")),
        ("bara", {"preset": "papers"}, ("'bara'", "preset", "'papers'", "'paper'")),
        ("bara", {"noise": 0}, ("'bara'", "noise = 0")),
        ("bara", {"exploration_share": 2}, ("'bara'", "exploration_share = 2")),
        ("bara", {"estimator": "newtn"}, ("estimator", "'newtn'", "'newton'")),
    ],
)
def test_a_wrong_option_is_named(name, options, facts):
    with refused(ConfigError, *facts):
        ALLOCATORS.build(name, options, clients=5, seed=0)


def test_an_unknown_allocator_suggests_the_nearest():
    with refused(UnknownNameError, "allocator", "'evn'", "'even'"):
        ALLOCATORS.build("evn")


def test_nobody_to_choose_from_is_refused():
    with refused(ConfigError, "'random'", "clients = 0"):
        RandomN(clients=0)


@pytest.mark.parametrize(
    "name", ["os:getcwd", "collections:Counter", "os:path", ":x", ".foo:X", "os:nothing"]
)
def test_an_import_path_to_something_else_is_named(name):
    with refused(ConfigError, repr(name)):
        ALLOCATORS.build(name, {}, clients=5, seed=0)

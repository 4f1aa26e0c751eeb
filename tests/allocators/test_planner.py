from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from refusals import refused

from bara import AwardedRound, Bids, Delivery, Evaluation, Offer, Purse, RoundRecord
from bara.allocators import ALLOCATORS
from bara.allocators.baselines import Even
from bara.allocators.finale import Finale
from bara.allocators.planner import Planner
from bara.errors import ConfigError
from bara.mechanisms import bid_price_first
from bara.surrogates import progress

PURSE = Purse.of(1500, 200)


def planner():
    return Planner(clients=20, seed=0)


def test_the_finale_gives_its_rounds_several_shares():
    """100 rounds, the last 10 count 4 times: 90 + 40 = 130 shares of 1."""
    allocator = Finale(rounds=10, shares=4)
    assert allocator.ask(Purse.of(130, 100)).budget == 1_000_000
    assert allocator.ask(Purse(130_000_000, 100, 90_000_000, 91)).budget == 4_000_000
    assert allocator.ask(Purse(130_000_000, 100, 129_000_000, 100)).budget == 1_000_000


def test_a_finale_of_a_twentieth_is_the_default_and_none_is_even():
    assert Finale().ask(Purse(1500_000_000, 200, 0, 191)).budget == 150_000_000
    assert Finale(rounds=0).ask(PURSE).budget == 7_500_000
    assert Finale(part=0.15).ask(PURSE) == Finale(rounds=30).ask(PURSE)
    with refused(ConfigError, "'finale'", "part = 2"):
        Finale(part=2)


@pytest.mark.parametrize(("option", "value"), [("rounds", -1), ("shares", 0)])
def test_a_finale_that_is_none_is_refused(option, value):
    with refused(ConfigError, "'finale'", f"{option} = {value}"):
        ALLOCATORS.build("finale", {option: value})


def test_before_it_has_learned_anything_it_is_even_with_a_finale():
    allocator = planner()
    allocator.tell(RoundRecord.initial(PURSE, Evaluation(0.1)))
    assert allocator.ask(PURSE) == Finale().ask(PURSE)
    assert "finale" in allocator.belief().stage


def sizes(records):
    return [record.n for record in records[1:]]


@pytest.mark.path
def test_with_selection_noise_it_recruits_few_first_and_many_at_the_end(play, make_federation):
    records, _ = play(Planner(clients=20), PURSE, make_federation(clients=20, delta=0.5))
    n = sizes(records)
    assert np.mean(n[20:100]) < 8
    assert np.mean(n[-8:-1]) > 12


@pytest.mark.path
def test_without_selection_noise_it_does_no_harm(play, make_federation):
    """The best model, which is kept, is within half a point of that of even allocation
    with carry-over, under a short deadline, where an end phase is waste.
    """

    def kept(make):
        federations = (
            make_federation(clients=20, seed=seed, delta=0.0, v_1=0.0) for seed in range(4)
        )
        runs = [
            play(make(seed), Purse.of(450, 60), federation)[0]
            for seed, federation in enumerate(federations)
        ]
        return np.mean([max(record.evaluation.accuracy for record in records) for records in runs])

    assert (
        kept(lambda seed: Planner(clients=20, seed=seed))
        > kept(lambda _: Even(carry_over=True)) - 0.005
    )


@pytest.mark.path
def test_it_spends_the_budget_and_never_more(play, make_federation):
    records, _ = play(Planner(clients=20), PURSE, make_federation(clients=20))
    assert 0.97 * PURSE.total < records[-1].purse_after.spent <= PURSE.total


def test_it_says_what_it_means_to_do_with_what_is_left(play, make_federation):
    allocator = Planner(clients=20)
    purse = Purse.of(300, 40)
    play(allocator, purse, make_federation(clients=20))
    belief = allocator.belief()
    plan = belief.plan
    assert belief.stage == "plan"
    assert plan.low <= plan.accuracy <= plan.high
    assert 0 <= plan.spend <= purse.total
    assert len(belief.arms) == 19


@pytest.mark.parametrize(
    "accuracies", [[0.1] * 60, [0.5] * 10 + [0.05] * 50, list(np.linspace(0.9, 0.1, 60))]
)
def test_a_task_that_does_not_learn_is_survived_within_the_budget(
    accuracies, make_federation, play
):
    federation = make_federation(clients=20)
    original = federation.train

    def train(round_number, award):
        return replace(
            original(round_number, award), evaluation=Evaluation(accuracies[round_number - 1])
        )

    federation.train = train
    records, _ = play(planner(), Purse.of(300, 60), federation)
    assert records[-1].purse_after.spent <= 300_000_000


def settled(purse, n, accuracy, price=1.0):
    bids = Bids.of({f"c{i:02d}": price for i in range(20)})
    awarded = AwardedRound.of(purse, Offer.recruit(n), bid_price_first().menu(bids))
    return awarded.settle(Delivery.complete(awarded.award, Evaluation(accuracy)))


def teach(allocator, accuracies, purse=PURSE, sizes=7):
    """Tell it rounds with these accuracies, of so many clients; what is left then."""
    allocator.tell(RoundRecord.initial(purse, Evaluation(0.1)))
    for accuracy, n in zip(
        accuracies, np.broadcast_to(sizes, len(accuracies)).tolist(), strict=True
    ):
        record = settled(purse, n, accuracy)
        allocator.tell(record)
        purse = record.purse_after
    return purse


def rising(rounds):
    return [0.85 - 0.75 / (1 + t / 10) for t in range(1, rounds + 1)]


def test_a_fall_that_does_not_fit_the_curve_makes_it_even_with_a_finale_and_it_says_so():
    allocator = planner()
    purse = teach(allocator, [*rising(40), 0.1])
    assert allocator.ask(purse) == Finale().ask(purse)
    assert (
        allocator.belief().stage == "even with a finale: what happened last does not fit the curve"
    )


def test_where_the_first_shares_pay_nobody_no_finale_holds_the_money_back():
    allocator = planner()
    purse = teach(allocator, [0.1, 0.1], sizes=0)
    assert allocator.ask(purse) == Even(carry_over=True).ask(purse)
    allocator = planner()
    purse = teach(allocator, rising(2))
    assert allocator.ask(purse) == Finale().ask(purse)


def test_a_task_that_has_nothing_to_learn_is_played_even_with_a_finale():
    allocator = Planner(clients=20)
    purse = teach(allocator, [0.1] * 40)
    share = Finale().ask(purse).budget
    caps = np.array([allocator.ask(purse).cap(n) for n in range(1, 20)])
    assert caps.max() <= 1.6 * share


@pytest.mark.path
def test_a_model_that_came_out_well_does_not_end_the_run_because_the_best_one_is_kept_anyway():
    rng = np.random.default_rng(0)
    allocator = planner()
    after = teach(
        allocator, [*(value + 0.02 * rng.standard_normal() for value in rising(190)), 0.95]
    )
    offer = allocator.ask(after)
    assert not offer.stopped
    assert offer.cap(19) > 0


@pytest.mark.path
def test_more_clients_than_planned_are_worth_less_than_their_share():
    """Progress per client falls, so beyond the planned n the cap grows
    with n, but ever more slowly.
    """
    allocator = Planner(clients=20)
    sizes = [4 + t % 9 for t in range(100)]
    reached = np.cumsum([progress(n, 20, 4.0) for n in sizes])
    purse = teach(allocator, [0.85 - 0.75 / (1 + S / 10) for S in reached], sizes=sizes)
    caps = np.array([allocator.ask(purse).cap(n) for n in range(1, 20)], dtype=float)
    steps = np.diff(caps[caps > 0])
    assert (steps >= 0).all()
    grows = steps[steps > 0][
        1:
    ]  # the first is a part of a step: what is beyond the plan's own share
    assert len(grows) > 1
    assert (np.diff(grows) <= 1).all()


@pytest.mark.path
def test_prices_that_drift_are_followed():
    """After a hundred rounds at 1 and a hundred at 2,
    what a client costs is nearer to 2 than to 1.5.
    """
    allocator = planner()
    purse = Purse.of(5000, 400)
    allocator.tell(RoundRecord.initial(purse, Evaluation(0.1)))
    for t in range(200):
        record = settled(purse, 5, 0.5, price=1.0 if t < 100 else 2.0)
        allocator.tell(record)
        purse = record.purse_after
    learned = allocator.memory()
    assert learned["costs"][0] / learned["menus"][0] > 1_700_000


@hypothesis.given(
    total=st.integers(1, 3000),
    rounds=st.integers(1, 60),
    clients=st.integers(1, 30),
    seed=st.integers(0, 2**32),
    failure_rate=st.sampled_from([0.0, 0.3, 1.0]),
    bids=st.sampled_from(["uniform(0.5, 1.5)", "lognormal(0, 1)", "constant(1)"]),
    curve=st.fixed_dictionaries(
        {
            "a_max": st.floats(0.1, 1),
            "s": st.floats(0.1, 1000),
            "p": st.floats(0.1, 4),
            "delta": st.floats(0, 2),
            "phi": st.floats(0, 0.99),
            "v_1": st.floats(0, 0.1),
        }
    ),
)
@hypothesis.settings(
    max_examples=hypothesis.settings().max_examples // 10,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_property_it_never_exceeds_the_budget_or_the_deadline(
    play, make_federation, total, rounds, clients, seed, failure_rate, bids, curve
):
    """10,000 federations with HYPOTHESIS_PROFILE=thorough."""
    federation = make_federation(
        clients=clients, seed=seed, bids=bids, failure_rate=failure_rate, **curve
    )
    records, _ = play(Planner(clients=clients, seed=seed), Purse.of(total, rounds), federation)
    assert records[-1].round <= rounds
    assert (
        sum(record.paid for record in records) == records[-1].purse_after.spent <= total * 1_000_000
    )

from dataclasses import replace

import numpy as np
import pytest

from bara import Evaluation, Purse, RoundRecord
from bara.allocators import ALLOCATORS
from bara.allocators.even import Even
from bara.allocators.finale import Finale
from bara.allocators.planner import Planner
from bara.errors import ConfigError

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


@pytest.mark.parametrize("options", [{"rounds": -1}, {"shares": 0}])
def test_a_finale_that_is_none_is_refused(options):
    with pytest.raises(ConfigError, match="allocator 'finale'"):
        ALLOCATORS.build("finale", options)


def test_before_it_has_learned_anything_it_is_even_with_a_finale():
    allocator = planner()
    allocator.tell(RoundRecord.initial(PURSE, Evaluation(0.1)))
    assert allocator.ask(PURSE) == Finale().ask(PURSE)
    assert "finale" in allocator.belief().stage


def sizes(records):
    return [record.n for record in records[1:]]


def test_with_selection_noise_it_recruits_few_first_and_many_at_the_end(play, make_federation):
    records, _ = play(planner(), PURSE, make_federation(clients=20, delta=0.5))
    n = sizes(records)
    assert np.mean(n[20:100]) < 8
    assert np.mean(n[-8:-1]) > 12


def test_without_selection_noise_it_does_no_harm(play, make_federation):
    """Within half a point of even allocation with carry-over, under a short deadline, where an end phase is waste."""

    def final(make):
        federations = (make_federation(clients=20, seed=seed, delta=0.0, v_1=0.0) for seed in range(4))
        runs = [play(make(seed), Purse.of(450, 60), federation)[0] for seed, federation in enumerate(federations)]
        return np.mean([records[-1].evaluation.accuracy for records in runs])

    assert final(lambda seed: Planner(clients=20, seed=seed)) > final(lambda _: Even(carry_over=True)) - 0.005


def test_it_spends_the_budget_and_never_more(play, make_federation):
    records, _ = play(planner(), PURSE, make_federation(clients=20))
    assert 0.97 * PURSE.total < records[-1].purse_after.spent <= PURSE.total


def test_it_says_what_it_means_to_do_with_what_is_left(play, make_federation):
    allocator = planner()
    purse = Purse.of(300, 40)
    play(allocator, purse, make_federation(clients=20))
    belief = allocator.belief()
    plan = belief.plan
    assert belief.stage == "plan"
    assert plan.low <= plan.accuracy <= plan.high
    assert 0 <= plan.spend <= purse.total
    assert len(belief.arms) == 19


@pytest.mark.parametrize("accuracies", [[0.1] * 60, [0.5] * 10 + [0.05] * 50, list(np.linspace(0.9, 0.1, 60))])
def test_a_task_that_does_not_learn_is_survived_within_the_budget(accuracies, make_federation, play):
    federation = make_federation(clients=20)
    original = federation.train

    def train(round_number, award):
        return replace(original(round_number, award), evaluation=Evaluation(accuracies[round_number - 1]))

    federation.train = train
    records, _ = play(planner(), Purse.of(300, 60), federation)
    assert records[-1].purse_after.spent <= 300_000_000

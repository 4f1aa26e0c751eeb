"""What FAIR and RRAFL learn in the simulator: who holds noise, who does no work."""

import pytest

from bara import Purse, RoundRecord, Session
from bara.allocators import ALLOCATORS
from bara.clients.conduct import cast_roles
from bara.mechanisms import MECHANISMS
from bara.runs.config import Config
from bara.runs.factory import build_federation

pytestmark = pytest.mark.path  # whole runs


def play(mechanism, *changes, budget=375, rounds=50):
    """A run on digits; returns the mechanism, the settled rounds and everybody's role."""
    names = ["federation.engine=simulator", "federation.workers=1", f"mechanism.name={mechanism}"]
    config = Config.load(
        None, [*names, "training.learning_rate=0.2", "training.memory=off", *changes]
    )
    made = MECHANISMS.build(mechanism)
    with build_federation(config) as federation:
        steps = Session(ALLOCATORS.build("even"), made, federation).rounds(Purse.of(budget, rounds))
        records = [step for step in steps if isinstance(step, RoundRecord)]
        roles = cast_roles(
            federation.bidders.clients,
            config.seed,
            noisy=config.clients.noisy,
            free_riders=config.clients.free_riders,
            poisoners=config.clients.poisoners,
        )
        return made, records, roles, federation.bids(1)


def last_ten(records):
    return sum(record.evaluation.reported_accuracy for record in records[-10:]) / 10


@pytest.mark.parametrize("seed", [0, 1])
def test_fair_ranks_wrong_labels_last_and_beats_bid_price_first_at_the_same_budget(seed):
    """Six of twenty clients hold random labels; both get 7.5 a round for 50 rounds."""
    harm = [f"seed={seed}", "clients.noisy=6", "clients.label_noise=1"]
    fair, records, roles, bids = play("fair", *harm)
    learned = dict(zip(bids.clients, fair.quality(bids), strict=True))
    seen = {client for record in records for client in record.payments}
    noisy, clean = seen & set(roles), seen - set(roles)
    assert len(noisy) >= 3
    assert max(learned[client] for client in noisy) < min(learned[client] for client in clean)
    _, blind, _, _ = play("bid-price-first", *harm)
    assert last_ten(records) > last_ten(blind) + 0.03


@pytest.mark.parametrize("harm", ["noisy=6", "free_riders=6", "poisoners=6"])
def test_with_a_memory_what_fair_keeps_out_does_less_harm_than_without(harm):
    changes = [f"clients.{harm}", "clients.label_noise=1"]
    _, forgetful, _, _ = play("fair", *changes)
    _, remembering, _, _ = play("fair", *changes, "training.memory=extrapolated")
    assert last_ten(remembering) > last_ten(forgetful)


@pytest.mark.parametrize("riding", ["unchanged", "random"])
def test_free_riders_score_nothing_and_stop_winning(riding):
    fair, records, roles, bids = play(
        "fair", "clients.free_riders=5", f"clients.free_riding={riding}", rounds=25
    )
    learned = dict(zip(bids.clients, fair.quality(bids), strict=True))
    wins = {client: sum(client in record.payments for record in records) for client in roles}
    assert max(wins.values()) == 1
    assert all(learned[client] == 0 for client, won in wins.items() if won)


def test_rrafl_thinks_least_of_those_who_do_nothing():
    rrafl, records, roles, bids = play("rrafl", "clients.free_riders=5", rounds=30)
    reputation = dict(zip(bids.clients, rrafl.reputation(bids), strict=True))
    seen = {client for record in records[:15] for client in record.payments}
    assert max(reputation[c] for c in seen & set(roles)) < min(
        reputation[c] for c in seen - set(roles)
    )

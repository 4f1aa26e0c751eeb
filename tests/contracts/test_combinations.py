"""Every mechanism works with every allocator: a short run each, whose books add up."""

import pytest

from bara.allocators import ALLOCATORS
from bara.mechanisms import MECHANISMS
from bara.runs.config import Config
from bara.runs.play import play_run

OPTIONS = {
    "fixed": ["allocator.n=3"],
    "explored": ["allocator.n=3"],
    "standing": ["mechanism.reserve=1.6", "clients.stability=1"],
    "posted-price": ["mechanism.price=1"],
    "tariff": ["mechanism.per_round=1"],
}


def play(allocator, mechanism, *changes):
    options = [*OPTIONS.get(allocator, []), *OPTIONS.get(mechanism, [])]
    names = [f"allocator.name={allocator}", f"mechanism.name={mechanism}"]
    return play_run(Config.load(None, [*names, *options, "federation.workers=1", *changes]))


@pytest.mark.parametrize("mechanism", MECHANISMS.names())
@pytest.mark.parametrize("allocator", ALLOCATORS.names())
def test_every_mechanism_with_every_allocator(allocator, mechanism):
    result = play(
        allocator,
        mechanism,
        "federation.engine=synthetic",
        "clients.count=8",
        "budget.total=60",
        "budget.max_rounds=12",
    )
    assert 0 < result.rounds <= 12
    assert 0 < result.spent <= 60
    assert sum(result.payments.values()) == pytest.approx(result.spent)


@pytest.mark.parametrize("mechanism", MECHANISMS.names())
def test_every_mechanism_in_the_simulator(mechanism):
    small = ["federation.engine=simulator", "clients.count=6", "data.train_samples=300"]
    result = play(
        "even", mechanism, *small, "budget.total=20", "budget.max_rounds=4", "training.model=linear"
    )
    assert result.rounds == 4
    assert 0 < result.spent <= 20

"""The simulated federation with a memory."""

import numpy as np
import pytest
from torch import nn

from bara.clients.bidding import client_names
from bara.records import Award
from bara.runs.config import Config
from bara.runs.factory import assemble
from bara.server.memory import UpdateMemory

SMALL = [
    "federation.engine=simulator",
    "federation.workers=1",
    "data.train_samples=300",
    "data.evaluation_samples=100",
    "clients.count=6",
]
EVERYBODY = client_names(6)


@pytest.fixture
def make():
    """Federations that are closed when the test ends."""
    made = []

    def one(*changes):
        made.append(assemble(Config.load(None, [*SMALL, *changes])).federation)
        return made[-1]

    yield one
    for federation in made:
        federation.__exit__()


def award(*clients, weights=None):
    return Award(clients, (1,) * len(clients), weights=weights)


@pytest.mark.parametrize("algorithm", ["fedsgd", "fedavg"])
def test_where_everybody_is_recruited_there_is_nothing_to_remember(make, algorithm):
    ways = [
        make(f"training.memory={way}", f"training.algorithm={algorithm}")
        for way in ("off", "plain")
    ]
    for number in (1, 2, 3):
        deliveries = [one.train(number, award(*EVERYBODY)) for one in ways]
        assert not deliveries[1].ages
    assert np.allclose(ways[0].model, ways[1].model, atol=1e-6)


@pytest.mark.parametrize("weights", [None, (5.0, 1.0)])
def test_the_next_model_is_made_of_everybodys_last_update_by_data_size(make, weights):
    """Whatever weights a mechanism brings.

    They compare the winners of one round, not those of two.
    """
    plain, remembering = make("training.memory=off"), make("training.memory=plain")
    start = plain.model
    moved = {}
    for client in EVERYBODY[:2]:  # what each alone makes of the initial model
        plain.model = start
        plain.train(1, award(client))
        moved[client] = plain.model - start
    remembering.train(1, award(*EVERYBODY[:2], weights=weights))
    middle = remembering.model
    plain.model = middle
    plain.train(2, award(EVERYBODY[2]))
    moved[EVERYBODY[2]] = plain.model - middle
    delivery = remembering.train(2, award(EVERYBODY[2]))
    samples = dict(
        zip(
            remembering.bidders.clients, remembering.bidders.bids(1).columns["samples"], strict=True
        )
    )
    sizes = [samples[client] for client in moved]
    expected = middle + np.average(list(moved.values()), axis=0, weights=sizes)
    assert np.allclose(remembering.model, expected, atol=1e-6)
    assert dict(delivery.ages) == {1: 2}


def test_an_update_that_was_refused_is_not_remembered(make):
    federation = make("training.memory=plain", "clients.failure_rate=0.5", "seed=3")
    delivered, ages = set(), {}
    for number in range(1, 9):
        told = federation.train(number, award(*EVERYBODY))
        delivered |= told.delivered.keys()
        ages = told.ages or ages
        assert not told.delivered or sum(told.ages.values()) + len(told.delivered) == len(delivered)
    assert ages


@pytest.fixture
def remembering(monkeypatch):
    """The memories that are told of updates from here on, in the order of the tellings."""
    memories, tell = [], UpdateMemory.tell

    def told(memory, *arguments):
        memories.append(memory)
        return tell(memory, *arguments)

    monkeypatch.setattr(UpdateMemory, "tell", told)
    return memories


def test_a_step_is_as_many_times_the_mean_as_the_memory_says(make, remembering):
    plain, stepping = make("training.memory=plain"), make("training.memory=extrapolated")
    start = plain.model
    for federation in (plain, stepping):
        federation.train(1, award(*EVERYBODY[:3]))
    size = remembering[-1].size
    assert size > 1
    assert np.allclose(stepping.model - start, size * (plain.model - start), atol=1e-6)


@pytest.mark.parametrize("spoilt", [1e3, np.nan])
def test_a_step_that_spoils_the_model_is_taken_back_and_what_was_paid_for_is_remembered(
    make, monkeypatch, remembering, spoilt
):
    federation = make("training.memory=extrapolated", "clients.count=6")
    before = federation.train(1, award(EVERYBODY[0])).evaluation
    state, tell = federation.model, UpdateMemory.tell
    monkeypatch.setattr(UpdateMemory, "tell", lambda *told: tell(*told) * np.float32(spoilt))
    delivery = federation.train(2, award(EVERYBODY[1]))
    assert delivery.evaluation == before
    assert np.array_equal(federation.model, state)
    assert list(delivery.delivered) == [EVERYBODY[1]]
    assert set(remembering[-1].clients) == set(EVERYBODY[:2])


def normalised(_shape, classes):
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, classes))


def test_statistics_of_batch_norm_are_those_of_the_winners(make):
    model = f"training.model={__name__}:{normalised.__name__}"
    plain, remembering = make(model, "training.memory=off"), make(model, "training.memory=plain")
    for federation in (plain, remembering):
        federation.train(1, award(*EVERYBODY[:3]))
    remembering.model = plain.model  # the same model from here on
    for federation in (plain, remembering):
        federation.train(2, award(*EVERYBODY[3:]))
    learned = 64 * 2 + 64 * 10 + 10
    assert learned < len(plain.model)
    assert np.array_equal(plain.model[learned:], remembering.model[learned:])
    assert not np.array_equal(plain.model[:learned], remembering.model[:learned])

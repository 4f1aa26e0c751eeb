"""The server's door: bad updates are refused, the others' round is unharmed."""

import numpy as np
import pytest

from bara import Purse, RoundRecord, Session
from bara.allocators import ALLOCATORS
from bara.mechanisms import MECHANISMS
from bara.runs.config import Config
from bara.runs.factory import build_federation
from bara.server.screening import refusals, robust_scores
from bara.simulator import Engine

START = np.zeros(50, np.float32)


def honest(count=8, seed=0):
    rng = np.random.default_rng(seed)
    return [(0.1 + 0.05 * rng.standard_normal(50)).astype(np.float32) for _ in range(count)]


def test_honest_updates_are_all_taken():
    for seed in range(50):
        assert refusals(START, honest(seed=seed), outliers=6.0) == {}


@pytest.mark.parametrize(
    ("bad", "facts"),
    [
        (np.full(50, np.nan, np.float32), ("finite",)),
        (np.full(50, np.inf, np.float32), ("finite",)),
        (np.ones(49, np.float32), ("(49,)", "(50,)")),
        (np.ones((5, 10), np.float32), ("(5, 10)", "(50,)")),
        (honest(seed=9)[0] * 1000, ("ideal", "robust deviations")),
    ],
)
def test_a_bad_update_is_refused_with_its_reason(bad, facts):
    updates = honest()
    updates[3] = bad
    found = refusals(START, updates, outliers=6.0)
    assert list(found) == [3]
    assert [fact for fact in facts if fact not in found[3]] == []


def test_two_of_eight_are_found_together():
    updates = honest()
    updates[1], updates[6] = updates[1] * 1000, -1000 * updates[6]
    assert set(refusals(START, updates, outliers=6.0)) == {1, 6}


def test_too_few_to_compare_are_all_taken():
    updates = [*honest(2), honest(1)[0] * 1000]
    assert refusals(START, updates, outliers=6.0) == {}


def test_equal_updates_are_no_outliers():
    assert robust_scores(np.ones((5, 4), np.float32)).tolist() == [0.0] * 5


@pytest.fixture
def play(monkeypatch):
    """A run on digits in which the engine's updates of client 0 are spoiled."""
    train = Engine.train

    def one(mechanism, spoil, *more, rounds=6):
        def spoiled(engine, state, *arguments, **options):
            updates = train(engine, state, *arguments, **options)
            for row, client in enumerate(updates.clients):
                if client == 0:
                    updates.states[row] = spoil(state, updates.states[row])
            return updates

        monkeypatch.setattr(Engine, "train", spoiled)
        return played(mechanism, *more, rounds=rounds)

    return one


def played(mechanism, *more, rounds):
    changes = [
        "federation.engine=simulator",
        "federation.workers=1",
        "data.train_samples=300",
        "clients.count=8",
        "clients.partition=iid",
        f"mechanism.name={mechanism}",
        *more,
    ]
    config = Config.load(None, changes)
    with build_federation(config) as federation:
        session = Session(
            ALLOCATORS.build("fixed", {"n": 7}), MECHANISMS.build(mechanism), federation
        )
        steps = session.rounds(Purse.of(500, rounds))
        return [step for step in steps if isinstance(step, RoundRecord)]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda _state, update: update * np.nan, "its update is not finite"),
        (lambda _state, update: update + np.inf, "its update is not finite"),
        (lambda state, update: state + 1000 * (update - state), "its update is not ideal"),
    ],
    ids=["not a number", "infinite", "a thousand times too large"],
)
def test_who_sends_a_bad_update_is_not_paid_and_the_model_learns_on(play, spoil, reason):
    records = play("fair", spoil)
    void = [record for record in records if "client-0" in record.delivery.void]
    assert void
    for record in void:
        assert record.delivery.void["client-0"].startswith(reason)
        assert "client-0" not in record.payments
        assert record.n >= 4
    assert records[-1].evaluation.loss < records[0].evaluation.loss


def test_the_filter_can_be_had_without_fair(play):
    records = play(
        "bid-price-first",
        lambda state, update: state + 1000 * (update - state),
        "training.outliers=6",
    )
    assert any("client-0" in record.delivery.void for record in records)
    assert all("client-0" not in record.payments for record in records)

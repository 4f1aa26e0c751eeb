"""The server's round on an engine of a few numbers, which writes down what it is asked."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from bara import Award, Evaluation, Evidence
from bara.errors import TrainingError
from bara.records import Limits, Shapley
from bara.server.memory import Fresh
from bara.server.round import NOT_FINITE, NOT_TAKEN, Collected, train_round
from bara.server.state import Keeping, ServerState

UPDATES = {"ann": [2.0, 0.0], "bob": [0.0, 4.0], "cat": [9.0, 9.0]}
AWARD = Award(("ann", "bob", "cat", "dan"), (1, 1, 1, 1), (0.1, 0.2, 0.3, 0.4))
ANN = Award(("ann",), (1,))
BOB = Award(("bob",), (1,))


@dataclass
class Updates(Collected):
    updates: dict = field(default_factory=dict)
    weights: dict | None = None


class Plain:
    """An engine whose model moves by the mean update; `cat`'s is refused, `dan` does not answer."""

    trains_here = True

    def __init__(self, *, loss=lambda _model: 0.5, makes_none=False, away=(), claimed=None):
        self.model = np.zeros(2)
        self.loss = loss
        self.makes_none = makes_none
        self.away = away
        self.claimed = claimed or {}
        self.said = []
        self.evaluated = []
        self.collected = None
        self.remembered = None

    def absent(self, round):
        self.said.append(("absent", round))
        return self.away

    def collect(self, round, award):
        self.said.append(("collect", round))
        void = {"dan": "no answer"} if "dan" in award.clients else {}
        updates = {name: UPDATES[name] for name in award.clients if name in UPDATES}
        return Updates(void=void, blameless=tuple(void), updates=updates)

    def refuse(self, round, collected):
        self.said.append(("refuse", round))
        for client in collected.updates:
            if client == "cat":
                collected.void[client] = "too far"
            else:
                collected.delivered[client] = Evidence(10)

    def claims(self, collected):
        return {name: self.claimed.get(name, 10.0) for name in collected.delivered}

    def weigh(self, collected, weights):
        self.said.append(("weigh", weights))
        self.collected = collected

    def changes(self, collected):
        return {name: Fresh(np.array(UPDATES[name]), 1.0) for name in collected.delivered}

    def aggregate(self, round, collected, remembered):
        self.said.append(("aggregate", round))
        assert collected is self.collected
        self.remembered = remembered
        if self.makes_none or not collected.delivered:
            return None
        if remembered is not None:
            return self.model + remembered.step
        return self.model + np.mean([UPDATES[name] for name in collected.delivered], axis=0)

    def evaluate_after(self, round, model):
        self.evaluated.append((round, model.tolist()))
        return Evaluation(0.1 * round, loss=self.loss(model))

    def contributions(self, round, model, evaluation):
        self.said.append(("contributions", round, model.tolist(), evaluation.accuracy))
        return {"ann": 0.25}

    def shapley(self, round, model):
        self.said.append(("shapley", round, model.tolist()))
        return Shapley({"ann": 0.5}, {"ann": 0.0}, 2)

    def arrays(self, model):
        return {"model": model}

    def save(self, round):
        self.said.append(("save", round, self.model.tolist()))


def server(memory="off", **settings):
    return ServerState(Keeping(memory=memory, **settings), durable=False)


def final(state):
    """The final model among those that a server keeps."""
    return state.finish(None)[1]["model"].tolist()


def test_a_round_goes_step_by_step_and_tells_what_came_of_each_winner():
    engine, state = Plain(), server()
    delivery = train_round(state, engine, 3, AWARD)
    assert engine.said == [
        ("absent", 3),
        ("collect", 3),
        ("refuse", 3),
        ("weigh", {"ann": 0.1, "bob": 0.2, "cat": 0.3, "dan": 0.4}),
        ("aggregate", 3),
        ("contributions", 3, [1.0, 2.0], pytest.approx(0.3)),
        ("shapley", 3, [1.0, 2.0]),
        ("save", 3, [1.0, 2.0]),
    ]
    assert engine.evaluated == [(3, [1.0, 2.0])]
    assert engine.remembered is None
    assert delivery.delivered == {"ann": Evidence(10), "bob": Evidence(10)}
    assert delivery.void == {"dan": "no answer", "cat": "too far"}
    assert (delivery.blameless, delivery.forgotten, delivery.ages) == (("dan",), (), {})
    assert delivery.contributions == {"ann": 0.25}
    assert delivery.shapley.values == {"ann": 0.5}
    assert delivery.evaluation.accuracy == pytest.approx(0.3)
    assert final(state) == engine.model.tolist() == [1.0, 2.0]


def test_where_the_engine_makes_no_model_nobody_is_paid_or_blamed_and_nothing_is_remembered():
    engine, state = Plain(makes_none=True), server("plain")
    delivery = train_round(state, engine, 1, AWARD)
    assert delivery.delivered == {}
    assert delivery.void == {
        "dan": "no answer",
        "cat": "too far",
        "ann": NOT_TAKEN,
        "bob": NOT_TAKEN,
    }
    assert delivery.blameless == ("dan", "ann", "bob")
    assert (delivery.contributions, delivery.shapley, delivery.ages) == ({}, None, {})
    assert engine.evaluated == [(1, [0.0, 0.0])]
    assert engine.said[-1] == ("save", 1, [0.0, 0.0])
    assert list(state.memory.remembered(2)) == []
    assert final(state) == [0.0, 0.0]


def test_updates_of_earlier_rounds_go_into_the_model_and_their_ages_are_told():
    engine, state = Plain(), server("plain")
    assert train_round(state, engine, 1, ANN).ages == {}
    delivery = train_round(state, engine, 3, BOB)
    assert delivery.ages == {2: 1}
    assert engine.remembered.changes.keys() == {"bob"}
    assert engine.remembered.step.tolist() == [1.0, 2.0]
    assert engine.model.tolist() == [3.0, 2.0]
    assert [client for client, _ in state.memory.remembered(4)] == ["ann", "bob"]
    nobody = train_round(state, engine, 4, Award(("dan",), (1,)))
    assert (nobody.ages, engine.remembered) == ({}, None)


def test_who_does_not_bid_any_more_is_forgotten_before_the_round():
    engine, state = Plain(), server("plain", forget_after=1)
    train_round(state, engine, 1, ANN)
    engine.away = ("ann",)
    assert train_round(state, engine, 2, BOB).forgotten == ()
    assert train_round(state, engine, 3, BOB).forgotten == ("ann",)
    assert engine.remembered.step.tolist() == [0.0, 4.0]


def test_a_step_that_spoils_the_model_is_taken_back_but_its_updates_are_paid_and_remembered():
    engine = Plain(loss=lambda model: float(np.abs(model).sum() > 3))
    state = server("extrapolated")
    train_round(state, engine, 1, ANN)
    kept = engine.model.tolist()
    delivery = train_round(state, engine, 2, BOB)
    assert engine.model.tolist() == final(state) == kept
    assert delivery.delivered.keys() == {"bob"}
    assert (delivery.contributions, delivery.shapley) == ({}, None)
    assert engine.evaluated[-1] == (2, kept)
    assert delivery.evaluation.loss == 0
    assert [client for client, _ in state.memory.remembered(3)] == ["ann", "bob"]


def many(claimed, memory="off", limits=None):
    """An engine some of whose clients claim to hold more samples than 10, and its server."""
    return Plain(claimed=claimed), server(memory, limits=limits or Limits())


FIVE = Award(tuple("abcde"), (1,) * 5)


@pytest.fixture
def five(monkeypatch):
    """Five clients whose updates are all the same."""
    monkeypatch.setattr(f"{__name__}.UPDATES", {client: [1.0, 1.0] for client in "abcde"})


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("claim", [1.7e308, 1e15, 1001.0])
@pytest.mark.parametrize("liars", ["a", "ae"])
def test_a_weight_out_of_all_proportion_is_void_and_the_others_are_paid(liars, claim):
    engine, state = many(dict.fromkeys(liars, claim))
    delivery = train_round(state, engine, 1, FIVE)
    assert set(delivery.void) == set(liars)
    assert all("num-examples" in reason for reason in delivery.void.values())
    assert all(
        "limits.num_examples" in reason or "1e+12" in reason for reason in delivery.void.values()
    )
    assert set(delivery.delivered) == set("abcde") - set(liars)
    assert set(delivery.failed) == set(liars)
    assert engine.model.tolist() == [1.0, 1.0]


@pytest.mark.usefixtures("five")
def test_what_the_operator_declares_is_the_limit_whatever_the_others_say():
    declared = Limits({"num-examples": 5000})
    engine, state = many({"a": 5000.0, "b": 5001.0}, limits=declared)
    assert set(train_round(state, engine, 1, FIVE).void) == {"b"}


@pytest.mark.usefixtures("five")
def test_a_server_that_knows_the_weights_itself_limits_none_of_them():
    engine, state = many({"a": 10.0**9}, limits=Limits(times=None))
    assert train_round(state, engine, 1, FIVE).void == {}


@pytest.mark.usefixtures("five")
def test_of_two_clients_none_can_be_told_to_lie_until_more_were_seen():
    two = Award(("a", "b"), (1, 1))
    engine, state = many({"a": 10.0**6})
    assert train_round(state, engine, 1, two).void == {}
    train_round(state, engine, 2, Award(("c", "d"), (1, 1)))
    assert set(train_round(state, engine, 3, two).void) == {"a"}


@pytest.mark.usefixtures("five")
def test_what_was_seen_of_weights_survives_a_restart(tmp_path):
    engine = Plain()
    state = server(folder=tmp_path)
    train_round(state, engine, 1, Award(("c", "d", "e"), (1, 1, 1)))
    state.save(1, {"model": engine.model})
    resumed = server(folder=tmp_path)
    resumed.restore(1, state.sealed)
    engine.claimed = {"a": 10.0**6}
    assert set(train_round(resumed, engine, 2, Award(("a",), (1,))).void) == {"a"}


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("memory", ["off", "plain", "extrapolated"])
def test_a_model_that_is_not_finite_pays_nobody_and_leaves_the_model(memory):
    """Each update is finite, but not what they make together."""
    engine, state = many({}, memory)
    before = engine.model.tolist()
    engine.aggregate = lambda _round, _collected, _remembered: np.array([np.inf, 1.0])
    delivery = train_round(state, engine, 1, FIVE)
    assert delivery.delivered == {}
    assert delivery.void == dict.fromkeys("abcde", NOT_FINITE)
    assert delivery.failed == ()
    assert engine.model.tolist() == before


@pytest.mark.usefixtures("five")
def test_a_step_of_the_memory_that_went_too_far_is_taken_back_and_its_updates_are_remembered():
    engine, state = many({}, "extrapolated")
    train_round(state, engine, 1, FIVE)
    before = engine.model.tolist()
    engine.aggregate = lambda _round, _collected, _remembered: np.array([np.inf, 1.0])
    delivery = train_round(state, engine, 2, FIVE)
    assert (set(delivery.delivered), delivery.void) == (set("abcde"), {})
    assert engine.model.tolist() == before
    assert state.memory.ages(3) == {1: 5}


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("memory", ["off", "plain", "extrapolated"])
@pytest.mark.parametrize("how", ["model", "metrics"])
def test_where_clients_train_elsewhere_none_of_them_can_stop_the_run_or_be_paid_for_spoiling_it(
    memory, how
):
    """What they make together is not finite, or the server finds no finite loss for it."""
    engine, state = many({}, memory)
    engine.trains_here = False
    train_round(state, engine, 1, FIVE)
    before = engine.model.tolist()
    aggregate, loss = engine.aggregate, engine.loss

    def broken(model):
        if model.tolist() != before:
            raise TrainingError("the loss is nan")
        return 0.5

    if how == "model":
        engine.aggregate = lambda _round, _collected, _remembered: np.array([np.inf, 1.0])
    engine.loss = broken
    delivery = train_round(state, engine, 2, FIVE)
    assert delivery.void == dict.fromkeys("abcde", NOT_FINITE)
    assert (delivery.failed, engine.model.tolist()) == ((), before)
    if memory != "off":
        assert state.memory.ages(2) == {1: 5}
    engine.aggregate, engine.loss = aggregate, loss
    assert set(train_round(state, engine, 3, FIVE).delivered) == set("abcde")

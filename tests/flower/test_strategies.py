"""What bara knows of a strategy that it does not subclass: whose weights it takes, and what it has
learned.
"""

import json

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord
from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import FedAdam, FedAvg, FedAvgM, FedMedian, FedProx, FedYogi, Krum

from bara.flower import _strategies as strategies
from bara.flower import _strategy_state as state


class Renamed(FedAvg):
    """A user's own that aggregates as FedAvg does."""


class OwnMean(FedAvg):
    """A user's own that does not."""

    def aggregate_train(self, server_round, replies):
        return super().aggregate_train(server_round, replies)


def carried(one, two):
    """What one knows, told to the other through a checkpoint's words and arrays."""
    arrays = {}
    words, lost = state.save(one, arrays)
    state.restore(two, json.loads(json.dumps(words)), arrays)
    return lost


def what_it_can(strategy):
    return strategies.capabilities(strategy, protects=True, measures=True, repeatable=True)


def private(inner):
    return flower.DifferentialPrivacyServerSideFixedClipping(inner, 1.0, 1.0, 2)


@pytest.mark.parametrize(
    "strategy", [FedAvg(), FedProx(), FedAvgM(), FedAdam(), FedYogi(), Renamed()]
)
def test_weighted_means_honour_a_mechanisms_weights(strategy):
    assert strategies.weight_key(strategy) == "num-examples"
    assert "weights" not in what_it_can(strategy).lacks


@pytest.mark.parametrize(
    "strategy", [FedMedian(), Krum(), OwnMean(), private(FedAvg())], ids=lambda s: type(s).__name__
)
def test_others_cannot_and_name_those_that_can(strategy):
    told = what_it_can(strategy).lacks["weights"]
    assert told.startswith(type(strategy).__name__)
    assert all(name in told for name in ("FedAvg,", "FedProx", "FedYogi"))


def test_every_winner_is_let_in_behind_a_wrapper_too():
    inner = FedAvg(fraction_train=0.5, min_available_nodes=20, min_evaluate_nodes=7)
    strategies.let_winners_in(private(inner))
    assert (inner.fraction_train, inner.min_train_nodes, inner.min_available_nodes) == (1.0, 1, 1)
    assert inner.min_evaluate_nodes == 7


def test_an_evaluation_waits_for_no_more_clients_than_are_connected():
    inner = FedAvg(min_evaluate_nodes=7)
    with strategies.evaluating(private(inner), 3):
        assert inner.min_evaluate_nodes == 3
    with strategies.evaluating(private(inner), 9):
        assert inner.min_evaluate_nodes == 7
    assert inner.min_evaluate_nodes == 7


def test_a_strategy_that_was_told_what_another_had_learned_goes_on_as_that_one():
    one, two = FedAdam(eta=0.3), FedAdam(eta=0.1)
    one.m_t, one.v_t = {"w": np.ones(3)}, {"w": np.full(3, 2.0)}
    carried(one, two)
    assert two.eta == 0.3
    assert np.array_equal(two.m_t["w"], np.ones(3))
    assert np.array_equal(two.v_t["w"], np.full(3, 2.0))


def test_lists_and_records_of_arrays_are_remembered_too():
    one, two = FedAvgM(server_momentum=0.9), FedAvgM(server_momentum=0.9)
    one.momentum_vector = [np.arange(3.0), np.ones((2, 2))]
    one.current_arrays = ArrayRecord({"w": Array(np.arange(4.0))})
    carried(one, two)
    assert [array.tolist() for array in two.momentum_vector] == [[0, 1, 2], [[1, 1], [1, 1]]]
    assert two.current_arrays["w"].numpy().tolist() == [0, 1, 2, 3]


def test_a_strategys_wrapped_one_is_remembered_too():
    one, two = private(FedAdam()), private(FedAdam())
    one.strategy.m_t = {"w": np.ones(3)}
    carried(one, two)
    assert two.strategy.m_t["w"].tolist() == [1, 1, 1]

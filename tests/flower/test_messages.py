"""What bara changes in the messages of an app, found by comparing those of a plain and a paid run.

Whatever differs stands in a table on the page.
"""

import random
import re
from collections import Counter

import numpy as np
import pytest
from flwr.app import ConfigRecord
from flwr.serverapp.strategy import FedAvg

from bara.flower import start

from .conftest import LocalGrid, how_far, start_model, walking_app
from .test_app import context
from .test_strategy_contract import PAGE

ROUNDS = 3
PRICES = {0: 5, 1: 1, 2: 3, 3: 3, 4: 2}
"""Neither in the order of the nodes, nor all different."""

ENOUGH = {
    "bara.budget.total": 1000,
    "bara.allocator.n": 5,
    "bara.mechanism.reserve": 6,
}


def sent(folder=None, evaluate=None, rounds=ROUNDS, timeout=60.0, **keys):
    """The messages of a run by kind; of a plain one if there is no folder for a paid one."""
    grid = LocalGrid(walking_app(PRICES), 5)
    strategy = FedAvg(**keys.pop("strategy", {}))
    random.seed(7)
    given = {
        "grid": grid,
        "initial_arrays": start_model(),
        "num_rounds": rounds,
        "timeout": timeout,
        "train_config": ConfigRecord({"lr": 0.1}),
        "evaluate_config": ConfigRecord({"batch": 3}),
        "evaluate_fn": evaluate,
    }
    if folder is None:
        strategy.start(**given)
    else:
        where = context(folder, **{**ENOUGH, **keys})
        del where.run_config["bara.federation.train-seconds"]
        start(strategy, where, **given)
    found = {}
    for message in grid.pushed:
        found.setdefault(message.metadata.message_type, []).append(message)
    return found


def who(messages):
    """How often each round's configuration went to each node."""
    found = Counter()
    for message in messages:
        [(name, config)] = message.content.config_records.items()
        metadata = message.metadata
        found[metadata.dst_node_id, metadata.group_id, name, tuple(sorted(config.items()))] += 1
    return found


@pytest.mark.parametrize("evaluate", [None, how_far], ids=["by clients alone", "by both"])
@pytest.mark.parametrize(
    "strategy",
    [
        {},
        {"fraction_evaluate": 0.2},
        {"fraction_evaluate": 0.5, "min_evaluate_nodes": 4},
        {"fraction_evaluate": 0.0},
    ],
    ids=str,
)
def test_with_money_enough_the_same_messages_go_to_the_same_clients(tmp_path, strategy, evaluate):
    plain = sent(strategy=strategy, evaluate=evaluate)
    paid = sent(tmp_path / "run", strategy=strategy, evaluate=evaluate)
    bids = paid.pop("query.bid")
    assert Counter(message.metadata.dst_node_id for message in bids) == dict.fromkeys(
        range(100, 105), ROUNDS
    )
    assert plain.keys() == paid.keys()
    for kind, messages in plain.items():
        assert who(messages) == who(paid[kind])
        records = {tuple(sorted(message.content)) for message in messages}
        assert records == {tuple(sorted(message.content)) for message in paid[kind]}
        for one, two in zip(messages, paid[kind], strict=True):
            assert two.metadata.dst_node_id == one.metadata.dst_node_id  # in the same order, too
            arrays = [message.content["arrays"]["w"].numpy() for message in (one, two)]
            np.testing.assert_allclose(*arrays, rtol=1e-5)


def test_an_allocator_that_looks_at_accuracy_has_clients_evaluate_the_initial_model(tmp_path):
    keys = {"bara.allocator.name": "bara", "bara.allocator.n": ""}
    plain, paid = sent(), sent(tmp_path / "one", **keys)
    assert len(paid["evaluate"]) == len(plain["evaluate"]) + 5
    by_server = sent(tmp_path / "two", evaluate=how_far, **keys)
    assert len(by_server["evaluate"]) == len(plain["evaluate"])


def test_messages_are_valid_for_as_long_as_they_are_waited_for(tmp_path):
    paid = sent(tmp_path / "run", timeout=50.0)
    valid = {kind: {one.metadata.ttl for one in messages} for kind, messages in paid.items()}
    assert valid == {"query.bid": {120}, "train": {650}, "evaluate": {650}}


def test_a_fraction_of_clients_to_train_is_set_aside(tmp_path):
    strategy = {"fraction_train": 0.4, "min_train_nodes": 1}
    plain, paid = sent(strategy=strategy), sent(tmp_path / "run", strategy=strategy)
    assert (len(plain["train"]), len(paid["train"])) == (2 * ROUNDS, 5 * ROUNDS)


def test_the_page_says_what_differs():
    table = PAGE.partition("## What changes, and what does not")[2].partition("\n## ")[0]
    for fact in ("fraction_train", "initial model", "evaluate-seconds", "valid", "errors"):
        assert re.search(rf"^\|.*{fact}", table, re.MULTILINE), fact

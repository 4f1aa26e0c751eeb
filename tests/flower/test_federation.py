"""Delivery and payment over a grid: who is in the menu, who delivers, who is void and why."""

from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import ArrayRecord, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedMedian,
    FedProx,
    FedYogi,
    Krum,
)
from refusals import refused

from bara import (
    ALLOCATORS,
    MECHANISMS,
    Award,
    AwardedRound,
    Capabilities,
    Evaluation,
    Offer,
    Purse,
    RoundRecord,
    Session,
)
from bara.errors import ConfigError, PausedError, TrainingError
from bara.flower.identity import Directory, client_of_key
from bara.server.state import Keeping

from .conftest import (
    LocalGrid,
    bidding,
    counting,
    how_far,
    raising,
    sending,
    silent,
    start_model,
    vanished,
    walking_app,
)

NAMES = tuple(f"client-{i}" for i in range(5))


def award(*numbers, weights=None):
    return Award(tuple(f"client-{i}" for i in numbers), tuple(10 for _ in numbers), weights)


def weights_of(federation):
    return float(federation.model["w"].numpy().mean())


def test_every_node_bids_under_the_name_of_its_partition(federate):
    bids = federate().bids(1)
    assert bids.clients == NAMES
    assert bids.prices.tolist() == [1_000_000 * (i + 1) for i in range(5)]
    assert bids.column("samples").tolist() == [10, 20, 30, 40, 50]


def test_bids_are_asked_for_once_a_round(federate, grid):
    federation = federate()
    assert federation.bids(1) is federation.bids(1)
    assert len(grid.pushed) == 5
    federation.bids(2)
    assert len(grid.pushed) == 10


def test_the_winners_train_and_the_strategy_aggregates(federate):
    federation = federate()
    federation.bids(1)
    delivery = federation.train(1, award(0, 2))
    assert set(delivery.delivered) == {"client-0", "client-2"}
    assert delivery.delivered["client-2"].samples == 30
    assert weights_of(federation) == pytest.approx((10 * 1 + 30 * 3) / 40)
    assert delivery.evaluation.accuracy == pytest.approx(0.025)


def test_nobody_but_the_winners_is_sent_the_model(federate, grid):
    federation = federate()
    federation.bids(1)
    federation.train(1, award(1, 3))
    trained = [m.metadata.dst_node_id for m in grid.pushed if m.metadata.message_type == "train"]
    assert sorted(trained) == [101, 103]


@pytest.mark.parametrize(
    ("mishap", "reason"),
    [
        (raising, "its app raised an error: RuntimeError('boom')"),
        (vanished, "its node is gone: node unavailable"),
        (silent, "no answer within 0.2 seconds"),
        (sending(w=np.full((2, 3), np.nan, np.float32), b=np.zeros(2)), "its update is not finite"),
        (
            sending(w=np.zeros((3, 2), np.float32), b=np.zeros(2)),
            "as the model's, got (3, 2) and float32",
        ),
        (sending(w=np.zeros((2, 3), np.int64), b=np.zeros(2)), "and int64"),
        (
            sending(w=np.zeros((2, 3), np.float32)),
            "its update holds ['w']; the model holds ['b', 'w']",
        ),
        (counting(**{"num-examples": float("nan")}), "its num-examples must be positive, got nan"),
        (counting(**{"num-examples": -5}), "its num-examples must be positive, got -5"),
        (counting(loss=1.0), "its num-examples must be positive, got None"),
        (
            counting(**{"num-examples": 5, "extra": 1}),
            "its update has other names than the others'",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_does_not_arrive_or_cannot_be_used_is_void_and_the_round_goes_on(
    federate, grid, mishap, reason
):
    grid.mishaps["train", 1] = mishap
    federation = federate()
    federation.bids(1)
    delivery = federation.train(1, award(0, 1, 2))
    assert set(delivery.delivered) == {"client-0", "client-2"}
    assert set(delivery.void) == {"client-1"}
    assert delivery.void["client-1"].startswith(reason) or reason in delivery.void["client-1"]
    assert weights_of(federation) == pytest.approx((10 * 1 + 30 * 3) / 40)


@pytest.mark.parametrize("memory", ["off", "plain"])
@pytest.mark.parametrize(("liars", "claim"), [((0, 1), 1.7e308), ((1,), 10**15)])
def test_who_claims_absurdly_many_examples_neither_rules_the_model_nor_makes_it_zero(
    federate, grid, liars, claim, memory
):
    """Two claims of 1.7e308 add up to infinity: every weight was 0, and the model all zeros."""
    for number in liars:
        grid.mishaps["train", number] = counting(**{"num-examples": claim})
    federation = federate(keeping=Keeping(memory=memory))
    federation.bids(1)
    delivery = federation.train(1, award(0, 1, 2, 3, 4))
    assert set(delivery.void) == {f"client-{number}" for number in liars}
    assert all("num-examples" in reason for reason in delivery.void.values())
    honest = [number for number in range(5) if number not in liars]
    weights = [10 * (number + 1) for number in honest]
    moved = [number + 1 for number in honest]
    assert weights_of(federation) == pytest.approx(np.average(moved, weights=weights))


LISTS = [{"f1": [0.5]}, {"f1": []}, {"per_class": 0.5}, {"per_class": [0.5] * 3}]
"""Metrics of one client that cannot be averaged with those of the others."""


@pytest.mark.parametrize("lie", LISTS, ids=str)
def test_one_update_whose_metrics_are_lists_unlike_the_others_does_not_cost_them_their_round(
    federate, grid, lie
):
    usual = {"num-examples": 10, "f1": 0.5, "per_class": [0.5, 0.5]}
    for client in range(5):
        grid.mishaps["train", client] = counting(**usual)
    grid.mishaps["train", 1] = counting(**{**usual, **lie})
    federation = federate()
    federation.bids(1)
    assert set(federation.train(1, award(0, 1, 2)).void) == {"client-1"}


@pytest.mark.parametrize(
    "lie",
    [
        {"accuracy": float("nan")},
        {"accuracy": 7.0},
        {"num-examples": 1.7e308},
        {"num-examples": 10**15},
        {"num-examples": -1},
        {"num-examples": [1, 1]},
        {"extra": 1.0},
        *LISTS,
    ],
    ids=str,
)
def test_one_clients_evaluation_neither_stops_the_run_nor_decides_alone(federate, grid, lie):
    usual = {"num-examples": 1, "accuracy": 5 / 3 / 100, "f1": 0.5, "per_class": [0.5, 0.5]}
    for client in range(5):
        grid.mishaps["evaluate", client] = counting(**usual)
    grid.mishaps["evaluate", 4] = counting(**{**usual, "accuracy": 0.9, **lie})
    federation = federate(FedAvg(), evaluate=None)
    federation.bids(1)
    assert federation.train(1, award(0, 1)).evaluation.accuracy == pytest.approx(5 / 3 / 100)


@pytest.mark.parametrize("strategy", [FedMedian, Krum])
def test_one_reply_without_the_metric_does_not_cost_the_others_their_round(
    federate, grid, strategy
):
    grid.mishaps["train", 1] = counting(loss=1.0)
    federation = federate(strategy(fraction_evaluate=0.0))
    federation.bids(1)
    assert set(federation.train(1, award(0, 1, 2)).void) == {"client-1"}


def test_a_server_that_measures_evidence_refuses_nobody_for_a_model_it_cannot_read(federate, grid):
    grid.mishaps["train", 1] = sending(w=np.full((2, 3), np.inf, np.float32), b=np.zeros(2))
    federation = federate(evidence="server")
    federation.bids(1)
    assert set(federation.train(1, award(0, 1, 2)).delivered) == {"client-0", "client-2"}


def test_an_update_whose_loss_the_server_finds_infinite_is_void(federate, grid):
    def evaluate(_round, arrays):
        high = float(arrays["w"].numpy().max())
        return MetricRecord(
            {"accuracy": 0.5, "loss": float("inf") if high > 1e6 else 1.0 - high / 100}
        )

    grid.mishaps["train", 1] = sending(w=np.full((2, 3), 1e9, np.float32), b=np.zeros(2))
    federation = federate(evidence="server", evaluate=evaluate)
    federation.bids(1)
    assert federation.train(1, award(0, 1)).void == {
        "client-1": "the loss of its model is not finite"
    }


def loses_its_way(round_number, arrays):
    """The accuracy of the walking model, whose loss is NaN once its numbers are huge."""
    if float(np.abs(arrays["w"].numpy()).max()) > 1e6:
        return MetricRecord({"accuracy": 0.5, "loss": float("nan")})
    return how_far(round_number, arrays)


@pytest.mark.parametrize("memory", ["off", "plain", "extrapolated"])
@pytest.mark.parametrize("size", [1e9, 3e38])
def test_one_huge_update_neither_stops_the_run_nor_stays(federate, grid, size, memory):
    federation = federate(evaluate=loses_its_way, keeping=Keeping(memory=memory))
    federation.evaluate()
    federation.bids(1)
    assert federation.train(1, award(0, 1)).delivered
    before = weights_of(federation)
    grid.mishaps["train", 1] = sending(w=np.full((2, 3), size, np.float32), b=np.zeros(2))
    federation.bids(2)
    delivery = federation.train(2, award(0, 1))
    assert (set(delivery.delivered), delivery.failed) == (set(), ())
    assert weights_of(federation) == before
    del grid.mishaps["train", 1]
    federation.bids(3)
    assert set(federation.train(3, award(0, 1, 2)).delivered) == {
        "client-0",
        "client-1",
        "client-2",
    }
    assert weights_of(federation) > before


@pytest.mark.parametrize("size", [1e9, 3e38])
def test_who_sends_a_huge_update_is_void_where_the_others_show_what_is_usual(federate, grid, size):
    grid.mishaps["train", 1] = sending(w=np.full((2, 3), size, np.float32), b=np.zeros(2))
    federation = federate(evaluate=loses_its_way)
    federation.bids(1)
    delivery = federation.train(1, award(0, 1, 2))
    assert set(delivery.delivered) == {"client-0", "client-2"}
    assert list(delivery.failed) == ["client-1"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("strategy", [FedAdam, FedAvgM, FedYogi, FedAdagrad])
def test_a_servers_optimizer_forgets_an_update_whose_model_was_not_taken(federate, grid, strategy):
    federation = federate(strategy(fraction_evaluate=0.0), evaluate=loses_its_way)
    federation.evaluate()
    grid.mishaps["train", 1] = sending(w=np.full((2, 3), 3e38, np.float32), b=np.zeros(2))
    federation.bids(1)
    assert federation.train(1, award(0, 1)).delivered == {}
    del grid.mishaps["train", 1]
    federation.bids(2)
    assert len(federation.train(2, award(0, 1, 2)).delivered) == 3
    assert np.isfinite(weights_of(federation))


@pytest.mark.parametrize("lie", [float("nan"), float("inf")])
def test_if_only_liars_evaluate_the_last_accuracy_stands(federate, grid, lie):
    federation = federate(FedAvg(), evaluate=None)
    federation.evaluate()
    for client in range(5):
        grid.mishaps["evaluate", client] = counting(accuracy=lie, **{"num-examples": 1})
    federation.bids(1)
    delivery = federation.train(1, award(3))
    assert (set(delivery.delivered), delivery.evaluation.accuracy) == ({"client-3"}, 0)


def test_what_a_client_writes_fills_no_log_and_looks_like_no_other_line_of_it(
    federate, grid, logged
):
    grid.mishaps["query", 0] = bidding(**{"column-x\nINFO :  client-4 is paid": "y" * 10**6})
    grid.mishaps["train", 1] = counting(**{"num-examples": [1.0] * 10**5})
    federation = federate()
    federation.bids(1)
    federation.train(1, award(0, 1))
    lines = [record.getMessage() for record in logged.records]
    assert any("num-examples must be positive" in line for line in lines)
    assert all(len(line) < 500 and "\n" not in line for line in lines)


def test_a_strategy_that_writes_a_client_twice_gets_one_answer(federate):
    class Twice(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            once = list(super().configure_train(server_round, arrays, config, grid))
            return once + list(super().configure_train(server_round, arrays, config, grid))

    federation = federate(Twice(fraction_evaluate=0.0))
    federation.bids(1)
    assert set(federation.train(1, award(0, 1)).delivered) == {"client-0", "client-1"}


def test_an_update_that_holds_no_single_record_of_arrays_is_void(federate, grid):
    def doubled(reply):
        reply.content["more"] = reply.content["arrays"]
        return reply

    grid.mishaps["train", 0] = doubled
    federation = federate()
    federation.bids(1)
    assert (
        federation.train(1, award(0, 1))
        .void["client-0"]
        .startswith("its update must hold exactly one ArrayRecord")
    )


def test_a_round_in_which_nobody_delivers_leaves_the_model(federate, grid):
    grid.mishaps = {("train", i): raising for i in range(5)}
    federation = federate()
    federation.bids(1)
    delivery = federation.train(1, award(0, 1))
    assert not delivery.delivered
    assert weights_of(federation) == 0


def test_a_reply_that_comes_a_round_late_is_neither_used_nor_paid(federate, grid):
    late = []
    grid.mishaps["train", 1] = late.append  # the reply is held back ...
    federation = federate()
    federation.bids(1)
    assert set(federation.train(1, award(0, 1)).void) == {"client-1"}
    before = weights_of(federation)
    grid.arrived = late  # ... and comes in the middle of the next round
    delivery = federation.train(2, award(0))
    assert set(delivery.delivered) == {"client-0"}
    assert weights_of(federation) == pytest.approx(before + 1)


def test_a_winner_whose_node_has_gone_is_void(federate, grid):
    federation = federate()
    federation.bids(1)
    del grid.contexts[101]
    federation.bids(2)
    delivery = federation.train(2, award(0, 1))
    assert delivery.void == {"client-1": "its node is not connected"}


@pytest.mark.parametrize("price", [0, -1, True, 1.5, "3", 2**62])
def test_a_bid_that_is_no_price_leaves_only_its_client_out(federate, grid, price):
    grid.mishaps["query", 2] = bidding(price=price)
    bids = federate().bids(1)
    assert bids.clients == tuple(name for name in NAMES if name != "client-2")
    assert list(bids.left_out) == ["client-2"]
    assert "price" in bids.left_out["client-2"]


@pytest.mark.parametrize("samples", [0.0, -1.0, float("nan"), float("inf"), "many"])
def test_a_column_that_is_no_positive_number_leaves_only_its_client_out(federate, grid, samples):
    grid.mishaps["query", 2] = bidding(**{"column-samples": samples})
    bids = federate(columns=("samples",)).bids(1)
    assert bids.clients == tuple(name for name in NAMES if name != "client-2")
    assert "samples" in bids.left_out["client-2"]


def test_two_nodes_that_say_they_are_one_client_leave_only_this_client_out(federate, grid):
    grid.mishaps["query", 2] = bidding(**{"partition-id": 3})
    assert federate().bids(1).clients == ("client-0", "client-1", "client-4")


@pytest.mark.parametrize(
    ("mechanism", "options", "bid"),
    [
        ("quality", {"quality": "samples"}, {"price": 10**18}),
        ("fair", {}, {"price": 10**18}),
        ("quality", {"quality": "samples"}, {"column-samples": 1e300}),
        ("quality", {"quality": "samples"}, {"column-samples": 1e6}),
        ("tariff", {"per_sample": 0.2}, {"column-samples": 1e300}),
        ("fl-market", {}, {"column-epsilon": 1e300}),
    ],
)
def test_one_absurd_bid_costs_nobody_else_the_round_and_stands_in_the_books_with_its_reason(
    federate, grid, mechanism, options, bid
):
    """Each of these stopped the run for everybody, or let nobody else win again."""
    budgets = bidding(**{"column-epsilon": 0.5})
    grid.mishaps.update({("query", number): budgets for number in range(5)})

    def played(absurd):
        if absurd:
            grid.mishaps["query", 2] = lambda reply: bidding(**bid)(budgets(reply))
        else:
            grid.mishaps["query", 2] = silent
        federation = federate(columns=("epsilon", "samples"))
        federation.capabilities = Capabilities(protects=True)
        made = MECHANISMS.build(mechanism, options)
        session = Session(ALLOCATORS.build("even", {}), made, federation)
        steps = session.rounds(Purse.of(60, 2))
        return next(step for step in steps if isinstance(step, AwardedRound))

    honest = played(absurd=False)
    attacked = played(absurd=True)
    assert honest.award.n >= 2
    assert attacked.award == honest.award
    assert list(attacked.left_out.reasons) == ["client-2"]


@pytest.mark.parametrize("mishap", [silent, raising, vanished])
def test_a_client_that_does_not_answer_is_not_in_the_menu(federate, grid, mishap):
    grid.mishaps["query", 0] = mishap
    assert federate().bids(1).clients == NAMES[1:]


def test_a_client_may_sit_a_round_out(federate, grid):
    def declined(reply):
        del reply.content.config_records["bara-bid"]["price"]
        return reply

    grid.mishaps["query", 4] = declined
    assert federate().bids(1).clients == NAMES[:4]


def test_a_bid_without_a_column_the_mechanism_needs_is_not_in_the_menu(federate, grid):
    def without(reply):
        del reply.content.config_records["bara-bid"]["column-samples"]
        return reply

    grid.mishaps["query", 3] = without
    assert federate(columns=("samples",)).bids(1).clients == (
        "client-0",
        "client-1",
        "client-2",
        "client-4",
    )
    assert "samples" not in federate().bids(1).columns  # otherwise it stays, and nobody's is used


def test_clients_are_known_by_their_keys_and_stay_the_same_after_a_restart(federate, grid):
    federation = federate(known_by="key")
    before = federation.bids(1).clients
    assert set(before) == {client_of_key(key) for key in grid.keys.values()}
    moved = LocalGrid(walking_app(), 5, first=900)
    again = federate(known_by="key", on=moved)
    assert again.bids(1).clients == before
    assert set(again.train(1, Award((before[0],), (5,))).delivered) == {before[0]}


def test_a_stored_award_can_be_trained_before_any_bid_was_asked_for(federate, grid):
    assert set(federate().train(3, award(1, 2)).delivered) == {"client-1", "client-2"}
    grid.pushed.clear()
    name = client_of_key(grid.keys[101])
    assert set(federate(known_by="key").train(3, Award((name,), (5,))).delivered) == {name}
    assert len(grid.pushed) == 1  # a key needs no question


def test_too_few_nodes_stop_the_run_between_rounds(federate, grid):
    grid.contexts = dict(list(grid.contexts.items())[:1])
    with refused(PausedError, "2 nodes", "0.2", "1"):
        federate(patience=0.2).bids(1)


@pytest.mark.parametrize("strategy", [FedAvg, FedProx, FedAvgM, FedAdam, FedMedian])
@pytest.mark.parametrize(
    "options", [{}, {"fraction_train": 0.1, "min_available_nodes": 50, "min_train_nodes": 9}]
)
def test_any_strategy_trains_any_number_of_winners(federate, strategy, options):
    chosen = strategy(fraction_evaluate=0.0, **options)
    federation = federate(chosen)
    federation.bids(1)
    for number, winners in enumerate(((0,), (1, 2, 4), (0, 1, 2, 3, 4)), 1):
        assert len(federation.train(number, award(*winners)).delivered) == len(winners)
    assert weights_of(federation) > 0


@pytest.mark.parametrize("strategy", [FedAvg, FedProx, FedAvgM])
def test_a_mechanisms_own_weights_are_honoured(federate, strategy):
    federation = federate(strategy(fraction_evaluate=0.0))
    federation.bids(1)
    federation.train(1, award(0, 4, weights=(3.0, 1.0)))
    assert weights_of(federation) == pytest.approx((3 * 1 + 1 * 5) / 4)


@pytest.mark.parametrize("lie", [*LISTS, {"extra": 1.0}], ids=str)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_remembered_metrics_unlike_those_of_later_rounds_do_not_cost_others_their_round(
    federate, grid, order, lie
):
    usual = {"num-examples": 10, "f1": 0.5, "per_class": [0.5, 0.5]}
    grid.mishaps["train", 0] = counting(**usual)
    grid.mishaps["train", 1] = counting(**{**usual, **lie})
    federation = federate(keeping=Keeping(memory="plain"))
    for number, client in enumerate(order, 1):
        federation.bids(number)
        assert federation.train(number, award(client)).delivered
    kept = {"f1", "per_class"} - {*lie}
    assert {*federation.result.train_metrics_clientapp[2]} == kept


def test_with_a_memory_data_sizes_count_not_weights_that_compare_the_winners_of_one_round(
    federate,
):
    federation = federate(keeping=Keeping(memory="plain"))
    federation.bids(1)
    federation.train(1, award(0, 4, weights=(3.0, 1.0)))
    assert weights_of(federation) == pytest.approx((10 * 1 + 50 * 5) / 60)


def test_weights_that_a_strategy_cannot_honour_are_an_error_and_nobody_is_paid(federate):
    federation = federate(Krum(fraction_evaluate=0.0))
    federation.bids(1)
    with refused(ConfigError, "Krum", "weights"):
        federation.train(1, award(0, 1, weights=(3.0, 1.0)))


def test_a_strategy_that_fails_ends_the_round_without_payment(federate):
    class Broken(FedAvg):
        def aggregate_train(self, server_round, replies):  # noqa: ARG002 - Flower's signature
            raise RuntimeError("singular matrix")

    federation = federate(Broken(fraction_evaluate=0.0))
    federation.bids(1)
    with refused(TrainingError, "round 1", "Broken", "aggregate", "singular matrix"):
        federation.train(1, award(0))


def test_a_strategy_that_takes_nothing_pays_nobody(federate):
    class Picky(FedAvg):
        def aggregate_train(self, server_round, replies):  # noqa: ARG002 - Flower's signature
            return None, None

    federation = federate(Picky(fraction_evaluate=0.0))
    federation.bids(1)
    delivery = federation.train(1, award(0))
    assert delivery.void == {"client-0": "the strategy took no update this round"}
    assert delivery.blameless == ("client-0",)


def test_a_winner_that_the_strategy_leaves_out_is_not_paid_and_not_to_blame(federate):
    class Cyclic(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            return list(super().configure_train(server_round, arrays, config, grid))[:1]

    federation = federate(Cyclic(fraction_evaluate=0.0))
    federation.bids(1)
    delivery = federation.train(1, award(0, 1))
    assert len(delivery.delivered) == 1
    assert list(delivery.void.values()) == [
        "not asked by Cyclic, which trains with fewer than all winners"
    ]
    assert delivery.blameless == tuple(delivery.void)


def test_an_outlier_is_refused_where_the_mechanism_says_so(federate, grid):
    grid.mishaps["train", 0] = sending(w=np.full((2, 3), 1e6, np.float32), b=np.zeros(2))
    federation = federate(outliers=6.0)
    federation.bids(1)
    assert "its update is not ideal" in federation.train(1, award(0, 1, 2, 3, 4)).void["client-0"]


def test_where_shapes_may_differ_a_model_grows_as_the_strategy_lets_it(federate, grid):
    for client in range(3):
        grid.mishaps["train", client] = sending(
            w=np.ones((2, 3), np.float32), b=np.zeros(2), tree=np.ones(4)
        )
    federation = federate(same_shapes=False)
    federation.bids(1)
    assert len(federation.train(1, award(0, 1, 2)).delivered) == 3
    assert federation.result.arrays["tree"].numpy().tolist() == [1, 1, 1, 1]


def test_updates_of_any_shape_cannot_be_compared_with_the_others(federate):
    with refused(ConfigError, "federation.same_shapes", "mechanism.outliers"):
        federate(same_shapes=False, outliers=6.0)


def test_without_data_of_its_own_the_server_relies_on_the_clients_evaluation(federate):
    federation = federate(FedAvg(), evaluate=None)
    assert federation.evaluate().accuracy == 0
    federation.bids(1)
    assert federation.train(1, award(3)).evaluation.accuracy == pytest.approx(0.04)
    assert set(federation.result.evaluate_metrics_clientapp) == {0, 1}


def test_the_metric_that_decides_may_be_the_one_that_is_reported(federate):
    told = MetricRecord({"test-accuracy": 0.8, "loss": 0.9, "test-loss": 0.35})
    found = federate(evaluate=lambda _round, _arrays: told, accuracy="test-accuracy").evaluate()
    assert found == Evaluation(0.8, 0.9, test_accuracy=0.8, test_loss=0.35)


def test_a_model_whose_loss_is_not_finite_is_an_error(federate):
    with refused(TrainingError, "round 0", "'loss'", "nan"):
        federate(
            evaluate=lambda _round, _arrays: MetricRecord({"accuracy": 0.1, "loss": float("nan")})
        ).evaluate()


def test_the_server_measures_evidence_on_its_own_data(federate):
    federation = federate(evidence="server")
    federation.bids(1)
    evidence = federation.train(1, award(1, 4)).delivered["client-4"]
    assert (evidence.loss_before, evidence.loss_after) == (pytest.approx(1.0), pytest.approx(0.95))


def test_a_client_that_keeps_failing_backs_off_and_is_never_paid(federate, grid):
    grid.mishaps["train", 0] = raising  # the cheapest: it would win every round
    session = Session(
        ALLOCATORS.build("fixed", {"n": 2}),
        MECHANISMS.build("bid-price-first"),
        federate(),
    )
    steps = session.rounds(Purse.of(100, 8))
    records = [step for step in steps if isinstance(step, RoundRecord)]
    tried = [record.round for record in records if "client-0" in record.awarded.award.clients]
    assert tried == [1, 3, 6]
    assert all("client-0" not in record.payments for record in records)
    assert records[-1].purse_after.spent == sum(record.paid for record in records)


def test_the_number_of_winners_changes_from_round_to_round_and_the_run_can_stop_early(federate):
    class Shrinking:
        def ask(self, purse):
            return Offer.recruit(5 - purse.round) if purse.round < 4 else Offer.stop()

        def tell(self, record):
            pass

    session = Session(Shrinking(), MECHANISMS.build("bid-price-first"), federate())
    steps = session.rounds(Purse.of(100, 50))
    records = [step for step in steps if isinstance(step, RoundRecord)]
    assert [record.n for record in records] == [0, 4, 3, 2]
    assert session.ended == "the allocator stopped"


def test_what_is_returned_is_what_flowers_own_loop_returns(federate):
    federation = federate()
    federation.bids(1)
    federation.train(1, award(0, 1))
    assert isinstance(federation.result.arrays, ArrayRecord)
    assert set(federation.result.evaluate_metrics_serverapp) == {1}


def test_nothing_is_read_from_an_answer_that_is_no_bid(federate, grid):
    def other(reply):
        reply.content = RecordDict({"something": MetricRecord({"price": 1})})
        return reply

    grid.mishaps["query", 1] = other
    assert "client-1" not in federate().bids(1).clients


def test_the_initial_model_is_not_touched(federate):
    model = start_model()
    federation = federate(model=model)
    federation.bids(1)
    federation.train(1, award(0, 1))
    assert float(federation.result.arrays["w"].numpy().sum()) != 0
    assert float(model["w"].numpy().sum()) == 0


def test_silos_on_virtual_nodes_keep_their_names():
    nodes = [SimpleNamespace(node_id=10 + part, public_key=b"") for part in range(2)]
    opened = {10 + part: SimpleNamespace(partition=(part, 2)) for part in range(2)}
    assert Directory("partition", partitions=("north", "south")).read(nodes, opened) == {
        "north": 10,
        "south": 11,
    }
    assert Directory("partition").read(nodes, opened) == {"client-0": 10, "client-1": 11}

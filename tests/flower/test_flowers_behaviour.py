"""What Flower's own loop does, this one does too: evaluation on both sides, any metric, its log
lines.
"""

import json
import logging

import pytest
from flwr.app import ConfigRecord, MetricRecord
from flwr.serverapp.strategy import FedAvg
from refusals import refused
from typer.testing import CliRunner

from bara.cli import app as program
from bara.errors import ConfigError, TrainingError
from bara.flower import start
from bara.runs.folder import RunFolder

from .conftest import LocalGrid, counting, how_far, start_model, walking_app
from .test_app import account, begin, context
from .test_federation import award


def played(federation, *rounds):
    """The evaluations of the initial model and of these rounds, in which client 3 trains."""
    found = [federation.evaluate()]
    for number in rounds:
        federation.bids(number)
        found.append(federation.train(number, award(3)).evaluation)
    return found


def test_clients_and_server_both_evaluate_when_both_can(federate):
    federation = federate(FedAvg())
    played(federation, 1, 2)
    assert set(federation.result.evaluate_metrics_serverapp) == {0, 1, 2}
    assert set(federation.result.evaluate_metrics_clientapp) == {
        1,
        2,
    }  # the initial model: the server alone, as Flower


def test_where_both_tell_it_the_servers_metric_decides(federate):
    def doubled(_round, arrays):
        return MetricRecord({"accuracy": 2 * float(arrays["w"].numpy().mean()) / 100})

    assert played(federate(FedAvg(), evaluate=doubled), 1)[1].accuracy == pytest.approx(0.08)


def test_where_the_server_tells_something_else_the_clients_metric_decides(federate):
    federation = federate(FedAvg(), evaluate=lambda _round, _arrays: MetricRecord({"norm": 1.0}))
    assert [one.accuracy for one in played(federation, 1)] == pytest.approx([0.0, 0.04])


def test_an_evaluation_now_and_then_is_enough(federate, logged):
    federation = federate(
        evaluate=lambda number, arrays: how_far(number, arrays) if number == 2 else None
    )
    found = played(federation, 1, 2, 3)
    assert [one.accuracy for one in found] == pytest.approx([0.0, 0.0, 0.08, 0.08])
    assert set(federation.result.evaluate_metrics_serverapp) == {2}
    assert "nobody evaluated the model of round 3; the last accuracy, 0.08, stands" in logged.text


def test_a_run_whose_model_nobody_evaluates_is_refused(federate):
    with refused(ConfigError, "evaluate_fn", "fraction_evaluate"):
        federate(evaluate=None).evaluate()


def telling(*values):
    told = dict(enumerate(values))
    return lambda number, _arrays: MetricRecord({"rmse": told[number]})


def test_a_metric_that_is_better_when_lower_becomes_an_accuracy_that_rises(federate):
    federation = federate(evaluate=telling(5e4, 1e4, 0.0), accuracy="rmse", better="lower")
    worst, middle, best = (one.accuracy for one in played(federation, 1, 2))
    assert 0 < worst < middle < best == 1
    odds = [p / (1 - p) for p in (worst, middle)]
    assert odds[1] / odds[0] == pytest.approx(
        5
    )  # a fifth of the error is five times the odds, at any scale


def test_a_metric_that_is_better_when_higher_may_be_of_any_size(federate):
    federation = federate(evaluate=telling(-3.0, 20.0, 40.0), accuracy="rmse", better="higher")
    worst, middle, best = (one.accuracy for one in played(federation, 1, 2))
    assert 0 == worst < middle < best < 1


@pytest.mark.parametrize(
    ("value", "better", "facts"),
    [
        (3.5, None, ("[0, 1]", "3.5", "bara.federation.better", "lower", "higher")),
        (-1.0, "lower", ("at least 0", "-1", "allocator", "even", "fixed")),
    ],
)
def test_a_metric_that_does_not_fit_is_named_with_what_to_do(federate, value, better, facts):
    def measured(_round, _arrays):
        return MetricRecord({"height": value})

    with refused(ConfigError, "'height'", *facts):
        federate(evaluate=measured, accuracy="height", better=better).evaluate()


def grid_telling(**metrics):
    """Clients that report these metrics."""
    grid = LocalGrid(walking_app(), 5)
    reported = counting(**{"num-examples": 1, **metrics})
    grid.mishaps = {("evaluate", client): reported for client in range(5)}
    return grid


def asked(grid, kind):
    return [one for one in grid.pushed if one.metadata.message_type == kind]


@pytest.mark.parametrize(
    ("metrics", "accuracy"),
    [
        ({"accuracy": 0.25, "f1": 0.5, "loss": 3.0}, 0.25),
        ({"eval_acc": 0.25, "eval_loss": 3.0}, 0.25),
        ({"test_loss": 3.0}, 0.25),
        ({"rmse": 3.0}, 0.25),
        ({"valLoss": 3.0}, 0.25),
        ({"mlogloss": 3.0, "merror": 0.5, "rocAuc": 0.25}, 0.25),
        ({"f1": 0.25, "per_class": [0.5, 0.0]}, 0.25),
    ],
)
def test_a_metric_is_found_by_its_name(federate, metrics, accuracy):
    by_server = federate(evaluate=lambda _round, _arrays: MetricRecord(metrics))
    assert by_server.evaluate().accuracy == accuracy
    by_clients = federate(FedAvg(), evaluate=None, on=grid_telling(**metrics))
    assert by_clients.evaluate().accuracy == accuracy


@pytest.mark.parametrize(
    ("metrics", "named"),
    [
        ({"score": 0.5}, None),
        ({"f1": 0.5, "auc": 0.6}, None),
        ({"f1": 0.5, "auc": 0.6}, "iou"),
        ({"f1": 0.5, "per_class": [0.4, 0.6]}, "per_class"),
    ],
)
def test_a_metric_that_is_not_clear_is_asked_for_before_more_than_one_client_works(
    tmp_path, metrics, named
):
    grid = grid_telling(**metrics)
    keys = {"bara.allocator.name": "planner"}
    keys |= {} if named is None else {"bara.federation.accuracy": named}
    where = context(tmp_path / "run", **keys)
    where.run_config.pop("bara.allocator.n")
    numbers = [name for name, value in metrics.items() if isinstance(value, float)]
    facts = ("bara.federation.accuracy", "bara.federation.better", *numbers)
    with refused(ConfigError, *facts) as caught:
        start(FedAvg(), where, grid, start_model(), 3)
    assert "\n" not in str(caught.value)
    assert len(grid.pushed) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("metrics", [{"accuracy": 55.0}, {"test_loss": -2.0}])
def test_a_value_that_cannot_be_read_is_refused_before_more_than_one_client_works(
    federate, metrics
):
    grid = grid_telling(**metrics)
    [(name, value)] = metrics.items()
    with refused(ConfigError, name, f"{value:g}"):
        federate(FedAvg(), evaluate=None, on=grid).begin()
    assert len(grid.pushed) == 1


def test_an_allocator_that_looks_at_no_metric_needs_none(tmp_path, logged):
    grid = grid_telling(score=5.0, other=1.0)
    start(FedAvg(), context(tmp_path / "run"), grid, start_model(), 2)
    assert len(asked(grid, "evaluate")) == 2 * 5  # none for the initial model, as in Flower
    assert [len(paid) for paid in account(tmp_path / "run")[1]] == [0, 3, 3]
    told = "which metric to decide on; the app reports other, score: set"
    assert logged.text.count(told) == 1


def test_where_nothing_decides_by_it_an_accuracy_in_percent_is_averaged_as_in_flower(
    federate, grid
):
    for client, percent in enumerate((0.5, 20.0, 30.0, 40.0, 50.0)):
        grid.mishaps["evaluate", client] = counting(**{"accuracy": percent, "num-examples": 1})
    federation = federate(FedAvg(), evaluate=None, blind=True)
    played(federation, 1)
    assert federation.result.evaluate_metrics_clientapp[1]["accuracy"] == pytest.approx(28.1)


def test_where_only_lists_are_reported_an_allocator_that_needs_a_number_is_refused(federate):
    """Flower's quickstart with numpy has clients report a list of three numbers."""
    grid = grid_telling(random_metric=[0.1, 0.2, 0.3])
    with refused(ConfigError, "bara.federation.accuracy"):
        federate(FedAvg(), evaluate=None, on=grid).evaluate()
    assert len(grid.pushed) == 1
    federation = federate(FedAvg(), evaluate=None, on=grid, blind=True)
    assert [one.accuracy for one in played(federation, 1)] == [0, 0]
    assert len(federation.result.evaluate_metrics_clientapp[1]["random_metric"]) == 3


@pytest.mark.parametrize("broken", ["accuracy", "loss"])
@pytest.mark.parametrize("since", [0, 2])
def test_where_nothing_decides_by_it_a_metric_need_not_be_finite(tmp_path, broken, since):
    def measured(server_round, _arrays):
        metrics = {"accuracy": 0.5, "loss": 1.0}
        if server_round >= since:
            metrics[broken] = float("nan")
        return MetricRecord(metrics)

    strategy = FedAvg(fraction_evaluate=0.0)
    where, grid = context(tmp_path / "run"), LocalGrid(walking_app(), 5)
    start(strategy, where, grid, start_model(), 3, evaluate_fn=measured)
    assert [len(paid) for paid in account(tmp_path / "run")[1]] == [0, 3, 3, 3]
    with RunFolder.find(tmp_path / "run") as found:
        told = [record.evaluation.accuracy for record in found.open_books().history()]
    assert told == ([0.5] * 4 if since else [0.0] * 4)


def test_where_something_decides_by_it_a_metric_that_is_not_finite_pays_nobody(federate):
    measured = telling(0.5, float("nan"))
    federation = federate(evaluate=measured, accuracy="rmse")
    with refused(TrainingError, "round 1", "rmse", "nan"):
        played(federation, 1)


def test_a_round_whose_metric_is_not_finite_is_trained_again_or_taken_back(tmp_path):
    def measured(server_round, _arrays):
        return MetricRecord({"accuracy": float("nan") if server_round == 2 else 0.5})

    def play():
        where = context(tmp_path / "run", **{"bara.allocator.name": "planner"})
        where.run_config.pop("bara.allocator.n")
        strategy, grid = FedAvg(fraction_evaluate=0.0), LocalGrid(walking_app(), 5)
        start(strategy, where, grid, start_model(), 3, evaluate_fn=measured)

    for _ in range(2):
        with refused(TrainingError, "round 2", "nan", "void 2"):
            play()
    words = ["ledger", str(tmp_path / "run"), "void", "2", "--reason", "its loss is infinite"]
    assert CliRunner().invoke(program, words).exit_code == 0
    play()
    assert [len(paid) > 0 for paid in account(tmp_path / "run")[1]] == [False, True, False, True]


def test_the_log_says_which_metric_decides_and_calls_it_by_its_name(tmp_path, logged):
    where = context(tmp_path / "run", **{"bara.allocator.name": "planner"})
    where.run_config.pop("bara.allocator.n")
    start(FedAvg(), where, grid_telling(eval_acc=0.25, eval_loss=3.0), start_model(), 1)
    assert "decisions are based on eval_acc; higher is better" in logged.text
    assert "eval_acc 0.2500" in logged.text


def test_the_log_shows_no_accuracy_that_nobody_has_measured(tmp_path, logged):
    start(FedAvg(), context(tmp_path / "run"), grid_telling(score=5.0), start_model(), 1)
    assert "spent 12.00 of 40.00" in logged.text
    assert "accuracy 0" not in logged.text


def test_a_loss_that_is_found_late_is_shown_only_by_a_run_that_begins_with_its_name(
    federate, grid, logged
):
    for client in range(5):
        grid.mishaps["evaluate", client] = counting(**{"eval_loss": 2.0, "num-examples": 1})
    for name, shown in ((None, None), ("eval_loss", 2.0)):
        logged.clear()
        federation = federate(FedAvg(), evaluate=None, blind=True, accuracy=name)
        federation.begin()
        federation.bids(1)
        assert federation.train(1, award(0, 1)).evaluation.metric == shown
        assert ("bara.federation.accuracy = 'eval_loss'" in logged.text) == (shown is None)


def test_a_memory_that_learns_its_step_needs_one_under_any_allocator(tmp_path):
    grid = grid_telling(score=5.0, other=1.0)
    where = context(tmp_path / "run", **{"bara.training.memory": "extrapolated"})
    with refused(ConfigError, "bara.federation.accuracy", "other", "score", "memory"):
        start(FedAvg(), where, grid, start_model(), 2)
    assert len(grid.pushed) == 1


def test_the_books_name_the_metric_that_was_found(tmp_path):
    def measured(_round, _arrays):
        return MetricRecord({"eval_loss": 3.0})

    grid = LocalGrid(walking_app(), 5)
    strategy = FedAvg(fraction_evaluate=0.0)
    start(strategy, context(tmp_path / "run"), grid, start_model(), 1, evaluate_fn=measured)
    with RunFolder.find(tmp_path / "run") as found:
        assert found.config.metric == "1 / (1 + eval_loss)"
        assert [one.evaluation.metric for one in found.open_books().history()] == [3.0, 3.0]


def test_flower_logs_a_refusal_in_one_line_and_another_error_in_full(tmp_path, logged):
    log = logging.getLogger("flwr")
    with refused(ConfigError, "budget.totl") as caught:
        begin(tmp_path / "run", **{"bara.budget.totl": 3})
    log.error("ServerApp raised an exception", exc_info=caught.value)  # as Flower does
    log.error("ServerApp raised an exception", exc_info=RuntimeError("the app's own"))
    refusal, own = (record for record in logged.records if "raised an exc" in record.message)
    assert "unknown key 'budget.totl'" in refusal.message
    assert refusal.exc_info is None
    assert own.exc_info is not None


def test_a_run_on_a_loss_spends_its_budget_and_the_books_hold_the_loss_itself(tmp_path, logged):
    def measured(server_round, _arrays):
        return MetricRecord(
            {"loss": 3.5 - 2.5 * server_round}
        )  # in the end it is negative: a likelihood's, say

    keys = {"bara.federation.accuracy": "loss", "bara.federation.better": "lower"}
    where = context(tmp_path / "run", **keys)
    start(
        FedAvg(fraction_evaluate=0.0),
        where,
        LocalGrid(walking_app(), 5),
        start_model(),
        3,
        evaluate_fn=measured,
    )
    assert account(tmp_path / "run")[0].spent == 36_000_000
    with RunFolder.find(tmp_path / "run") as found:
        told = [record.evaluation for record in found.open_books().history()]
    assert [one.metric for one in told] == [3.5, 1.0, -1.5, -4.0]
    assert [one.accuracy for one in told] == [1 / 4.5, 1 / 2, 1, 1]
    assert "loss -1.5" in logged.text
    assert json.loads((tmp_path / "run" / "result.json").read_text())["metric"] == "1 / (1 + loss)"
    assert "1 / (1 + loss) of the kept model" in (tmp_path / "run" / "report.html").read_text()
    with refused(ConfigError, "bara.federation.better", "'smaller'", "lower", "higher"):
        begin(tmp_path / "another", **{"bara.federation.better": "smaller"})


def test_metrics_are_logged_as_flower_logs_them(tmp_path, logged):
    begin(tmp_path / "run", FedAvg(), LocalGrid(walking_app(), 5))
    assert "\t└──> Aggregated MetricRecord: {'accuracy': " in logged.text
    assert "\t└──> MetricRecord: {'accuracy': " in logged.text


def test_what_a_strategy_writes_into_the_configuration_is_there_in_the_next_round(federate, grid):
    class Halving(FedAvg):
        def configure_train(self, server_round, arrays, config, grid):
            config["lr"] = config["lr"] / 2
            return super().configure_train(server_round, arrays, ConfigRecord(dict(config)), grid)

    federation = federate(Halving(fraction_evaluate=0.0), model=start_model())
    played(federation, 1, 2, 3)
    rates = [m.content["config"]["lr"] for m in grid.pushed if m.metadata.message_type == "train"]
    assert rates == [0.05, 0.025, 0.0125]

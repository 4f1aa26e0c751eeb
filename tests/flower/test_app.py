"""A Flower app's server under a budget: `bara.flower.start`, with the run's folder, ledger and
resume.
"""

import json

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg, FedMedian
from refusals import refused
from typer.testing import CliRunner

from bara.cli import app as program
from bara.errors import ConfigError, LedgerError
from bara.flower import start
from bara.ledger import verify
from bara.ledger.statements import statement
from bara.runs.folder import RunFolder
from bara.server.checkpoints import load, save

from .conftest import LocalGrid, amid, how_far, raising, start_model, walking_app


def context(folder, **keys):
    config = {
        "lr": 0.1,
        "bara.folder": str(folder),
        "bara.budget.total": 40,
        "bara.allocator.name": "fixed",
        "bara.mechanism.name": "bid-price-first",
    }
    options = {"bara.allocator.n": 3, "bara.clients.count": 5, "bara.federation.train-seconds": 0.2}
    return Context(1, 0, {}, RecordDict(), {**config, **options, **keys})


def begin(folder, strategy=None, grid=None, model=None, **keys):
    return start(
        strategy or FedAvg(fraction_evaluate=0.0),
        context(folder, **keys),
        grid=grid or LocalGrid(walking_app(), 5),
        initial_arrays=model or start_model(),
        num_rounds=4,
        train_config=ConfigRecord({"lr": 0.1}),
        evaluate_fn=how_far,
    )


def account(folder):
    with RunFolder.find(folder) as found:
        books = found.open_books()
        assert verify(books, None).ok
        return statement(books), [record.payments for record in books.history()]


def test_an_app_runs_under_a_budget_and_leaves_the_same_folder_as_bara_run(tmp_path):
    result = begin(tmp_path / "run")
    assert result.evaluate_metrics_serverapp.keys() == {0, 1, 2, 3}
    told = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (told["rounds"], told["spent"], told["budget"]) == (3, 36.0, 40.0)
    assert sorted(p.name for p in (tmp_path / "run").iterdir() if p.suffix != ".lock")[-7:] == [
        "ledger.db",
        "model-average.npz",
        "model-best.npz",
        "model-final.npz",
        "model.npz",
        "report.html",
        "result.json",
    ]
    shown = CliRunner().invoke(program, ["ledger", str(tmp_path / "run")])
    assert "key-" in shown.output


def test_amounts_are_logged_in_the_budgets_currency(tmp_path, logged):
    begin(
        tmp_path / "run",
        **{"bara.budget.currency": "EUR", "bara.budget.total": 4000, "bara.budget.max-rounds": 1},
    )
    assert (
        "round 1 of 1: 3 of 3 winners delivered, paid 12.00 EUR, spent 12.00 EUR of 4,000.00 EUR"
        in logged.text
    )
    assert "; spent 12.00 EUR of 4,000.00 EUR" in logged.text


def test_amounts_of_no_currency_are_logged_as_everywhere(tmp_path, logged):
    begin(tmp_path / "run", **{"bara.budget.total": 4000, "bara.budget.max-rounds": 1})
    assert "paid 12.00, spent 12.00 of 4,000.00, accuracy" in logged.text
    assert "round 0 of" not in logged.text
    assert "; spent 12.00 of 4,000.00" in logged.text


def test_the_books_add_up_when_clients_fail(tmp_path):
    grid = LocalGrid(walking_app(), 5)
    grid.mishaps["train", 0] = raising
    begin(tmp_path / "run", grid=grid)
    whole, payments = account(tmp_path / "run")
    assert whole.spent == sum(sum(paid.values()) for paid in payments)
    assert whole.outstanding == 0
    assert all(client.promised == client.paid + client.returned for client in whole.clients)


def test_without_a_number_of_rounds_it_plays_as_many_as_flower(tmp_path):
    plain, paid = LocalGrid(walking_app(), 5), LocalGrid(walking_app(), 5)
    FedAvg(fraction_evaluate=0.0).start(plain, start_model())
    keys = {"bara.budget.total": 1000, "bara.allocator.n": 5, "bara.mechanism.reserve": 6}
    where = context(tmp_path / "run", **keys)
    start(FedAvg(fraction_evaluate=0.0), where, paid, start_model())
    trained = [one for one in paid.pushed if one.metadata.message_type == "train"]
    assert len(trained) == len(plain.pushed)


@pytest.mark.parametrize(
    ("keys", "fact"),
    [
        ({"bara.budget.total": ""}, "bara.budget.total"),
        ({"bara.budget.totl": 40}, "budget.totl"),
        ({"bara.federation.bid-secs": 40}, "bara.federation.bid_secs"),
        ({"bara.clients.cost": "uniform(1, 2)"}, "clients.cost"),
    ],
    ids=str,
)
def test_keys_are_refused_before_any_client_is_waited_for(tmp_path, clock, keys, fact):
    grid = LocalGrid(walking_app(), 0)
    with refused(ConfigError, fact):
        begin(tmp_path / "run", grid=grid, **keys)
    assert clock.monotonic() == 0
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("moment", ["awarded", "trained"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_server_that_dies_in_a_round_goes_on_as_if_it_had_not(tmp_path, moment, number):
    begin(tmp_path / "whole", FedAdam(fraction_evaluate=0.0, eta=0.5))
    with amid(number, moment), pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "cut", FedAdam(fraction_evaluate=0.0, eta=0.5))
    another = ArrayRecord({"w": Array(np.ones((2, 3), np.float32)), "b": Array(np.ones(2))})
    nodes_again = LocalGrid(walking_app(), 5, first=500)
    result = begin(tmp_path / "cut", FedAdam(fraction_evaluate=0.0, eta=0.5), nodes_again, another)
    assert account(tmp_path / "cut")[1] == account(tmp_path / "whole")[1]
    assert not np.array_equal(result.arrays["w"].numpy(), another["w"].numpy())
    assert (tmp_path / "cut" / "result.json").read_text() == (
        tmp_path / "whole" / "result.json"
    ).read_text()


@pytest.mark.parametrize("damage", ["gone", "zeroed"])
def test_a_settled_round_without_its_checkpoint_is_not_trained_again_unpaid(tmp_path, damage):
    with amid(3, "awarded"), pytest.raises(KeyboardInterrupt):
        begin(tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").iterdir():
        found = load(path)
        path.unlink()
        if damage == "zeroed":
            zeros = {name: np.zeros_like(array) for name, array in found.arrays.items()}
            save(path, zeros, found.round, found.extra)
    grid = LocalGrid(walking_app(), 5)
    with refused(LedgerError, "round 1", "checkpoint", "missing"):
        begin(tmp_path / "run", grid=grid)
    assert not grid.pushed


@pytest.mark.parametrize(
    ("keys", "facts"),
    [
        ({"bara.budget.totl": 3}, ("'budget.totl'", "'budget.total'")),
        ({"bara.federation.engine": "simulator"}, ("bara.federation.engine", "Flower app")),
        ({"bara.federation.bid-second": 3}, ("'bara.federation.bid_second'", "'bid_seconds'")),
        ({"bara.federation.bid-seconds": 0.0}, ("federation.bid_seconds", "positive", "0.0")),
        ({"bara.training.learning-rate": 0.5}, ("bara.training", "Flower app")),
        ({"bara.clients.failure-rate": 0.5}, ("bara.clients.failure_rate", "Flower app")),
        (
            {"bara.mechanism.name": "fl-market"},
            ("FLMarket", "differential privacy", "protects=True"),
        ),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(tmp_path, keys, facts):
    with refused(ConfigError, *facts):
        begin(tmp_path / "run", **keys)
    assert not (tmp_path / "run").exists()


def test_a_mechanism_whose_weights_the_strategy_cannot_honour_is_refused_before_the_run(tmp_path):
    with refused(ConfigError, "Fair", "weights", "FedMedian", "FedAvg"):
        begin(tmp_path / "run", FedMedian(fraction_evaluate=0.0), **{"bara.mechanism.name": "fair"})
    assert not (tmp_path / "run").exists()


def test_a_mechanism_that_learns_quality_measures_it_on_the_servers_data(tmp_path):
    begin(tmp_path / "run", **{"bara.mechanism.name": "fair"})
    with RunFolder.find(tmp_path / "run") as found:
        last = list(found.open_books().history())[-1]
    evidence = next(iter(last.delivery.delivered.values()))
    assert evidence.loss_before > evidence.loss_after > 0


def test_a_run_goes_on_as_it_was_opened_and_says_so_when_the_app_says_otherwise(tmp_path, logged):
    begin(tmp_path / "run")
    begin(tmp_path / "run")
    assert "keeps the configuration" not in logged.text
    begin(tmp_path / "run", **{"bara.budget.total": 400})
    assert "keeps the configuration it began with" in logged.text
    assert account(tmp_path / "run")[0].opened_with == 40_000_000


def test_bara_itself_cannot_go_on_with_an_apps_run_and_says_who_can(tmp_path):
    begin(tmp_path / "run")
    done = CliRunner().invoke(program, ["resume", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert "this run belongs to a Flower app; start or resume it with `flwr run`" in done.output


def test_an_award_that_needs_approval_ends_the_app_and_once_approved_is_trained(tmp_path, logged):
    keys = {"bara.ledger.approve-above": 5, "bara.budget.max-rounds": 1}
    before, after = LocalGrid(walking_app(), 5), LocalGrid(walking_app(), 5)
    begin(tmp_path / "run", grid=before, **keys)
    assert "round 1 promises 12.00, above ledger.approve_above = 5.00" in logged.text
    assert account(tmp_path / "run")[0].spent == 0
    approved = CliRunner().invoke(
        program, ["ledger", str(tmp_path / "run"), "approve", "1", "--reason", "agreed"]
    )
    assert approved.output == "round 1 is approved; train it with: flwr run\n"
    begin(tmp_path / "run", grid=after, **keys)
    assert [
        sum(m.metadata.message_type == "train" for m in grid.pushed) for grid in (before, after)
    ] == [0, 3]
    assert account(tmp_path / "run")[0].spent == 12_000_000


def test_a_pause_ends_the_app_before_its_next_round_and_it_goes_on_where_it_was(tmp_path, logged):
    def pause():
        told.append(CliRunner().invoke(program, ["ledger", str(tmp_path / "run"), "pause"]).output)

    told = []
    with amid(2, "trained", pause):
        result = begin(tmp_path / "run")
    assert (
        "paused by the operator before round 3; the books are closed; resume with the same"
        in logged.text
    )
    assert set(result.evaluate_metrics_serverapp) == {0, 1, 2}
    assert told == ["paused before its next round; continue with: flwr run\n"]
    assert len(account(tmp_path / "run")[1]) == 1 + 2  # the initial model, and two rounds
    begin(tmp_path / "run")
    begin(tmp_path / "whole")
    assert account(tmp_path / "run")[1] == account(tmp_path / "whole")[1]


def test_where_no_count_is_set_the_clients_that_are_connected_count(tmp_path):
    begin(tmp_path / "run", **{"bara.clients.count": 0})
    with RunFolder.find(tmp_path / "run") as found:
        assert found.config.clients.count == 5


@pytest.mark.parametrize(
    ("keys", "facts"),
    [
        ({"bara.budget": 30}, ("bara.budget", "section", "30")),
        ({"bara.clients": 10}, ("bara.clients", "section", "10")),
        ({"bara.federation": "x"}, ("bara.federation", "section", "'x'")),
        ({"bara.clients.count": "many"}, ("bara.clients.count", "'many'", "whole number")),
        ({"bara.federation.patience": "long"}, ("bara.federation.patience", "'long'", "number")),
        ({"bara.federation.patince": 3}, ("'bara.federation.patince'", "'patience'")),
    ],
)
def test_a_wrong_key_of_the_app_is_named(tmp_path, keys, facts):
    plain = {
        "lr": 0.1,
        "bara.folder": str(tmp_path / "run"),
        "bara.budget.total": 40,
        "bara.clients.count": 5,
    }
    section = next(iter(keys))
    others = {key: value for key, value in plain.items() if not key.startswith(f"{section}.")}
    with refused(ConfigError, *facts):
        start(
            FedAvg(fraction_evaluate=0.0),
            Context(1, 0, {}, RecordDict(), {**others, **keys}),
            grid=LocalGrid(walking_app(), 5),
            initial_arrays=start_model(),
            num_rounds=4,
            evaluate_fn=how_far,
        )


def test_a_run_of_an_earlier_version_goes_on_to_the_end_it_would_have_had(old_run, same_result):
    folder = old_run("flower-app")
    grid, strategy = LocalGrid(walking_app(), 5), FedAdam(fraction_evaluate=0.0, eta=0.5)
    keys = {"bara.budget.total": 60, "bara.federation.train-seconds": 5.0}
    start(
        strategy,
        context(folder, **keys),
        grid,
        start_model(),
        5,
        None,
        ConfigRecord({"lr": 0.1}),
        None,
        how_far,
    )
    assert same_result(json.loads((folder / "result.json").read_text()), "flower-app")

"""A run belongs to its app: what the books say of it, who may go on with it, and what a finished
one gives back.
"""

import re
import tomllib

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import FedAdam, FedAvg, FedMedian
from flwr.supercore.run import Run
from refusals import refused
from typer.testing import CliRunner

from bara.cli import app as program
from bara.errors import ConfigError
from bara.runs.folder import RunFolder

from .conftest import LocalGrid, amid, how_far, raising, walking_app
from .test_app import account, begin


def grid_of(app="me/digits", fab_hash="abc"):
    grid, run = LocalGrid(walking_app(), 5), Run.create_empty(1)
    run.fab_id, run.fab_hash = app, fab_hash
    grid.set_run(run)
    return grid


def adam(eta=0.5):
    return FedAdam(fraction_evaluate=0.0, eta=eta)


def paused_at_two(folder, **options):
    """A run of the app me/digits, paused after two rounds."""

    def pause():
        CliRunner().invoke(program, ["ledger", str(folder), "pause"])

    with amid(2, "trained", pause):
        begin(folder, grid=grid_of(), **options)


def test_the_books_say_whose_run_it_is_and_nothing_of_the_simulator(tmp_path):
    begin(tmp_path / "run", adam(), grid_of())
    with RunFolder.find(tmp_path / "run") as found:
        stored = found.open_books().opening["config"]
    stored["budget"] = {
        key: value for key, value in stored["budget"].items() if value is not None
    }  # as TOML has it
    assert tomllib.loads((tmp_path / "run" / "config.toml").read_text()) == {
        key: value for key, value in stored.items() if key != "ledger"
    } | {"ledger": {"retention": "keep", "receipt_above": 10000.0, "approvals": 1}}
    assert "data" not in stored
    assert stored["clients"] == {"count": 5}
    assert stored["training"] == {"memory": "off", "forget_after": 50, "average_last": 10}
    app = stored["app"]
    assert (app["name"], app["fab_hash"], app["run_id"], app["strategy"]) == (
        "me/digits",
        "abc",
        "1",
        "FedAdam",
    )
    assert (app["parameters"]["FedAdam.eta"], app["run_config"]) == (0.5, {"lr": 0.1})
    assert app["model"].startswith("2 arrays, 8 numbers, ")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"grid": grid_of("me/sklearn")}, ("app = me/digits", "me/sklearn")),
        (
            {"strategy": FedMedian(fraction_evaluate=0.0)},
            ("strategy = FedAdam", "FedMedian"),
        ),
        ({"strategy": adam(0.1)}, ("FedAdam.eta = 0.5", "0.1")),
        (
            {"model": ArrayRecord({"w": Array(np.zeros((4, 3), np.float32))})},
            ("model = 2 arrays, 8 numbers", "1 arrays, 12 numbers"),
        ),
    ],
    ids=["app", "strategy", "parameter", "model"],
)
def test_another_apps_run_is_refused_before_anybody_is_asked(tmp_path, change, facts):
    paused_at_two(tmp_path / "run", strategy=adam())
    before = account(tmp_path / "run")
    grid = change.pop("grid", None) or grid_of()
    with refused(ConfigError, str(tmp_path / "run"), *facts, "bara.folder"):
        begin(tmp_path / "run", **{"strategy": adam(), "grid": grid, **change})
    assert not grid.pushed
    assert account(tmp_path / "run") == before


def test_a_folder_is_named_in_full_because_the_superlink_may_have_started_elsewhere(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    begin("run", grid=grid_of())
    with refused(ConfigError, str(tmp_path / "run"), "me/digits", "me/sklearn"):
        begin("run", grid=grid_of("me/sklearn"))


def test_a_changed_app_goes_on_and_is_told_what_changed(tmp_path, logged):
    paused_at_two(tmp_path / "run")
    begin(tmp_path / "run", grid=grid_of(fab_hash="def"), lr=0.05)
    assert "goes on with an app whose fab_hash and run_config changed since" in logged.text
    assert len(account(tmp_path / "run")[1]) == 1 + 3


def begin_unanswered(folder, **keys):
    """A start that fails once the books are open: no client answers the first bids."""
    grid = grid_of()
    grid.mishaps = {("query", client): raising for client in range(5)}
    with refused(ConfigError, "5 nodes", "answer_bids"):
        begin(folder, grid=grid, **keys)


def test_a_corrected_key_takes_effect_after_a_start_that_failed(tmp_path, logged):
    begin_unanswered(tmp_path / "run")
    result = begin(tmp_path / "run", grid=grid_of(), **{"bara.budget.total": 30})
    assert set(result.evaluate_metrics_serverapp) == {0, 1, 2}
    assert account(tmp_path / "run")[0].opened_with == 30_000_000
    assert "had promised nothing: it was moved to" in logged.text
    assert (tmp_path / "run.1" / "ledger.db").is_file()  # nothing is ever deleted


def test_money_that_was_added_keeps_a_run_where_it_is(tmp_path):
    begin_unanswered(tmp_path / "run")
    CliRunner().invoke(
        program, ["ledger", str(tmp_path / "run"), "topup", "5", "--reason", "agreed"]
    )
    begin_unanswered(tmp_path / "run", **{"bara.budget.max-rounds": 2})
    assert not (tmp_path / "run.1").exists()


def test_a_finished_run_says_so_and_gives_its_whole_result_back(tmp_path, logged):
    first = begin(tmp_path / "run", FedAvg(), grid_of())
    grid = grid_of()
    again = begin(tmp_path / "run", FedAvg(), grid)
    assert re.search(
        r"the run in .* has already ended \(the money left .*\): nobody is asked", logged.text
    )
    assert not grid.pushed
    assert again.evaluate_metrics_clientapp.keys() == {1, 2, 3}
    for name in (
        "train_metrics_clientapp",
        "evaluate_metrics_clientapp",
        "evaluate_metrics_serverapp",
    ):
        assert getattr(again, name) == getattr(first, name)
    assert np.array_equal(again.arrays["w"].numpy(), first.arrays["w"].numpy())


def test_a_run_that_was_paused_gives_the_metrics_of_all_its_rounds_back(tmp_path):
    paused_at_two(tmp_path / "run")
    result = begin(tmp_path / "run", grid=grid_of())
    assert set(result.evaluate_metrics_serverapp) == {0, 1, 2, 3}
    assert set(result.train_metrics_clientapp) == {1, 2, 3}
    assert how_far(0, result.arrays) == result.evaluate_metrics_serverapp[3]


def test_an_app_cannot_say_who_it_is_itself(tmp_path):
    with refused(ConfigError, "bara.app", "Flower app"):
        begin(tmp_path / "run", **{"bara.app.name": "me/another"})

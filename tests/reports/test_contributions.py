"""What each client was worth to the model: a report with its own caution, in the books,
the page and the dashboard.
"""

import csv
import io

import numpy as np
import pytest
from rich.console import Console
from starlette.testclient import TestClient

from bara.dashboard.server import Address, RunIndex, make_app
from bara.records import Shapley
from bara.reports.contributions import Contributions, ShapleyScores, caution
from bara.reports.html import run_report
from bara.reports.terminal import run_summary
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Four silos; one knows nothing: its labels are drawn at random, and it is the largest."""
    path = tmp_path_factory.mktemp("tables") / "silos.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["silo", "a", "b", "y"])
        for silo, rows in (("east", 60), ("north", 60), ("random", 300), ("west", 60)):
            for a, b in rng.normal(size=(rows, 2)):
                writer.writerow(
                    [silo, a, b, int(rng.random() < 0.5 if silo == "random" else a + b > 0)]
                )
    own = [
        f"data.name={path}",
        "data.client=silo",
        "data.target=y",
        "training.model=linear",
        "training.metric=auc",
    ]
    rest = [
        "budget.total=60",
        "budget.max_rounds=12",
        "federation.engine=simulator",
        "federation.workers=1",
    ]
    return Config.load(None, [*own, *rest, "allocator.name=even"])


def test_contributions_are_in_the_books_the_report_and_the_dashboard(config, tmp_path):
    with RunFolder.new(tmp_path / "runs/one", config) as folder:
        result = play_run(config, folder=folder)
        folder.finish(result, "")
        stored = [record.delivery.contributions for record in folder.claim_books().history()]
    found = result.contributions
    assert set(found) == {"east", "north", "random", "west"}
    assert sum("random" in one for one in stored) == found["random"]["rounds"]
    assert list(found)[-1] == "random"
    assert all(one["low"] <= one["mean"] <= one["high"] for one in found.values())
    page = run_report(result, "", "bara run")
    assert "Contributions" in page
    assert "AUC, points" in page
    assert "nobody is paid by it" in page
    told = Console(width=120, record=True, file=io.StringIO())
    told.print(run_summary(result, {}))
    summary = told.export_text()
    assert "contributed" in summary
    for text in (page, summary):  # the metric's own name, and no other
        assert "AUC" in text
        assert "ccuracy" not in text
    visitor = TestClient(
        make_app(RunIndex(tmp_path / "runs"), Address().rules()), base_url="http://localhost"
    )
    shown = visitor.get("/runs/one.json").json()
    assert shown["metric"] == "AUC"
    assert {one["client"]: one["mean"] for one in shown["contributions"]["clients"]} == {
        client: one["mean"] for client, one in found.items()
    }


def test_payments_do_not_depend_on_it(config):
    without = config.model_copy(
        update={"training": config.training.model_copy(update={"contributions_every": 0})}
    )
    one, two = play_run(config), play_run(without)
    assert two.contributions is None
    assert (one.payments, one.accuracy_final) == (two.payments, two.accuracy_final)


def test_the_caution_says_how_many_may_be_chance():
    told = Contributions()
    assert told.summary() is None
    for value in (0.01, 0.02, 0.03):
        told.tell({"sure": value, "unsure": value - 0.02})
    found = told.summary()
    assert list(found) == ["sure", "unsure"]
    assert found["sure"]["mean"] == pytest.approx(0.02)
    assert caution(found).startswith("1 of 2 intervals include 0")
    assert caution({"a": found["unsure"]}).startswith("Every interval includes 0")
    assert caution({"a": found["sure"]}).startswith("None of the intervals includes 0")


def test_shapley_values_are_in_the_books_and_the_report_with_their_error_and_cost(config, tmp_path):
    training = config.training.model_copy(update={"shapley_every": 3})
    with RunFolder.new(
        tmp_path / "run", config.model_copy(update={"training": training})
    ) as folder:
        result = play_run(folder.config, folder=folder)
        folder.finish(result, "")
        stored = [record.delivery.shapley for record in folder.claim_books().history()]
        rounds = [record.round for record in folder.claim_books().history()]
    told = {number for number, one in zip(rounds, stored, strict=True) if one is not None}
    assert told == {3, 6, 9, 12}
    found = result.shapley
    assert found["evaluations"] == sum(one.evaluations for one in stored if one)
    assert set(found["clients"]) == {"east", "north", "random", "west"}
    page = run_report(result, "", "bara run")
    assert f"They took {found['evaluations']} evaluations and no training" in page
    assert all(one["margin"] >= 0 for one in found["clients"].values())
    without = play_run(config)
    assert without.shapley is None
    assert (without.payments, without.history) == (result.payments, result.history)


def test_the_margin_of_shapley_values_is_that_of_their_mean_over_rounds():
    scores = ShapleyScores()
    scores.tell(None)
    assert scores.summary() is None
    scores.tell(Shapley({"a": 0.1, "b": 0.3}, {"a": 0.03, "b": 0.0}, 5))
    scores.tell(Shapley({"a": 0.3}, {"a": 0.04}, 2))
    found = scores.summary()
    assert list(found["clients"]) == ["b", "a"]
    assert found["clients"]["a"] == {
        "mean": pytest.approx(0.2),
        "margin": pytest.approx(1.96 * 0.05 / 2),
        "rounds": 2,
    }
    assert found["evaluations"] == 7

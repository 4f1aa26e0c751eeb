"""Forecasts: what a budget would buy, and what a goal would cost."""

import json
from dataclasses import replace
from math import sqrt

import pytest
from numpy import std
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.errors import ConfigError
from bara.records import Award
from bara.reports.forecast import Forecast
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run
from bara.simulator.synthetic import LearningCurve, SyntheticFederation
from bara.studies.curves import RUNS_APART, curves, stated_curves
from bara.studies.forecast import BUDGETS, budget_for, forecast_cells, outlooks, past_results
from bara.studies.grid import outcomes

pytestmark = pytest.mark.path  # many imagined runs

TREE = {
    "federation": {"engine": "synthetic"},
    "budget": {"total": 300, "max_rounds": 60},
    "clients": {"count": 12},
    "allocator": {"name": "even"},
}


def config(**changes):
    return Config.parse({**TREE, **changes})


def past(seeds=3):
    return [play_run(config(seed=seed)) for seed in range(seeds)]


def forecast(drawn, budgets=(300.0,), allocators=("even",)):
    grid = forecast_cells(config(), allocators, budgets, drawn)
    return list(outcomes(grid, jobs=1))


def test_past_runs_make_the_interval_narrow_and_put_it_where_the_truth_is():
    finals = [play_run(config(seed=seed)).accuracy_final for seed in range(10, 20)]
    (known,) = outlooks(forecast(curves(config(), past(), 20)), config())
    (unknown,) = outlooks(forecast(curves(config(), [], 20)), config())
    assert known.accuracy[2] - known.accuracy[0] < (unknown.accuracy[2] - unknown.accuracy[0]) / 2
    inside = [known.accuracy[0] - 0.01 <= final <= known.accuracy[2] + 0.01 for final in finals]
    assert sum(inside) >= 7


def test_a_lone_past_run_leaves_open_how_far_another_ends_from_it():
    told = past(1)
    once, often = curves(config(), told, 50), curves(config(), told * 8, 50)
    apart = [
        (one.y_max - same.y_max) / (2**0.5 - 0.5) for one, same in zip(once, often, strict=True)
    ]
    assert std(apart) == pytest.approx(
        RUNS_APART, rel=0.3
    )  # sqrt(2 / 1) less sqrt(2 / 8), of the same normal draws


def test_more_money_buys_a_better_model():
    low, high = outlooks(forecast(curves(config(), past(), 10), budgets=(60.0, 600.0)), config())
    assert low.accuracy[1] < high.accuracy[1]
    assert low.spent[1] <= 60
    assert low.rounds[1] <= 60


def test_the_budget_that_reaches_a_goal_lies_where_the_forecast_reaches_it():
    drawn = curves(config(), past(), 12)
    results = forecast(drawn, budgets=[300 * part for part in BUDGETS])
    needed = budget_for(0.5, 0.9, results)
    assert 300 * BUDGETS[0] <= needed <= 300 * BUDGETS[-1]
    assert budget_for(0.4, 0.9, results) <= needed
    assert budget_for(0.999, 0.9, results) is None


def test_the_same_seed_imagines_the_same_curves():
    assert curves(config(), past(1), 4) == curves(config(), past(1), 4)
    assert curves(config(), past(1), 4) != curves(config(seed=1), past(1), 4)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--past", "nowhere"], "no run with a settled round is in 'nowhere'"),
        (["--draws", "1"], "at least 2"),
        (["--budgets", "much"], "numbers separated by commas"),
        (["--budgets=-5"], "must be positive"),
        (["--reach", "85"], "fraction between 0 and 1"),
        (["--reach", "0.8", "--budgets", "5"], "reach or budgets, not both"),
        (["--reach", "0.8", "--allocators", ","], "must name at least one"),
    ],
)
def test_nonsense_is_refused_before_anything_runs(arguments, told):
    outcome = CliRunner().invoke(app, ["plan", "--set", "federation.engine=synthetic", *arguments])
    assert outcome.exit_code == 2
    assert told in outcome.output


def test_the_command_forecasts_from_a_folder_of_runs(tmp_path):
    for i, result in enumerate(past(2)):
        (tmp_path / f"run-{i}").mkdir()
        (tmp_path / f"run-{i}" / "result.json").write_text(json.dumps(result.to_json()))
    assert len(past_results([tmp_path])) == 2
    assert len(past_results([tmp_path / "run-0"])) == 1
    common = [
        "plan",
        "--past",
        str(tmp_path),
        "--draws",
        "4",
        "--jobs",
        "1",
        "--set",
        "budget.max_rounds=30",
    ]
    outcome = CliRunner().invoke(
        app, [*common, "--set", "clients.count=12", "--allocators", "even", "--json"]
    )
    told = json.loads(outcome.stdout)
    assert told["past_runs"] == 2
    assert [one["budget"] for one in told["forecasts"]] == [750, 1500, 3000]
    outcome = CliRunner().invoke(app, [*common, "--allocators", "even", "--reach", "0.5"])
    assert "50 % with 90 % confidence" in outcome.stdout


def test_a_curve_needs_more_than_a_lone_draw():
    with refused(ConfigError, "draws", "2", "1"):
        curves(config(), [], 1)


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"allocator": 3}'])
def test_a_damaged_result_is_named(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with refused(ConfigError, f"'{tmp_path / 'result.json'}'"):
        past_results([tmp_path])


def test_who_comes_late_does_not_deliver_in_a_forecast_either():
    """Nobody in time, nothing learned."""
    late = config(clients={"count": 12, "late_rate": 1.0})
    done = next(
        iter(outcomes(forecast_cells(late, ["even"], [300.0], curves(late, [], 2)), jobs=1))
    )
    assert done.spent == 0


@pytest.mark.parametrize(
    ("changes", "binds"),
    [
        ({"budget": {"total": 3000, "max_rounds": 8}}, "the number of clients"),
        (
            {"budget": {"total": 60, "max_rounds": 8}, "allocator": {"name": "fixed", "n": 4}},
            "the deadline",
        ),
        (
            {"budget": {"total": 6, "max_rounds": 8}, "allocator": {"name": "fixed", "n": 4}},
            "the money",
        ),
        (
            {"budget": {"total": 300, "max_rounds": 20}, "ledger": {"client_cap": 3}},
            "the cap per client",
        ),
    ],
)
def test_a_forecast_says_what_binds(changes, binds):
    here = config(**changes)
    (one,) = outlooks([play_run(here)], here)
    assert one.binds == binds


def test_a_forecast_says_how_many_clients_are_paid_and_what_the_few_paid_most_get():
    here = config(
        budget={"total": 300, "max_rounds": 20},
        allocator={"name": "fixed", "n": 6},
        mechanism={"name": "bid-price-first"},
        clients={"count": 10, "stability": 1},
    )
    (one,) = outlooks([play_run(here)], here)
    assert (one.paid, one.clients) == (6, 10)
    assert one.few == pytest.approx(5 / 6)
    told = Forecast([one], past_runs=0, draws=2, source="nothing")
    assert told.rows[1][-2] == "6 of 10"
    assert "5 clients paid most get 83 %" in told.told


def test_under_a_cap_the_cap_is_to_blame_and_not_the_rounds():
    words = [
        "plan",
        "--set",
        "federation.engine=synthetic",
        "--set",
        "ledger.client_cap=2",
        "--set",
        "budget.max_rounds=30",
    ]
    outcome = CliRunner().invoke(
        app, [*words, "--draws", "2", "--jobs", "1", "--allocators", "even", "--reach", "0.99"]
    )
    assert "what binds there is the cap per client" in outcome.stdout


def test_a_stated_start_and_goal_stand_in_for_a_past():
    drawn = stated_curves(config(), 0.2, 0.9, 20)
    assert {curve.start for curve in drawn} == {0.2}
    assert all(0.1 < curve.accuracy(0.0, 0.0, 0.0, 0.0) < 0.3 for curve in drawn)
    assert all(0.85 < curve.accuracy(1e9, 0.0, 0.0, 0.0) < 0.94 for curve in drawn)
    for words, said in (
        (["--start", "0.1"], "belong together"),
        (["--start", "0.5", "--goal", "0.4"], "must be above"),
        (["--start", "0.1", "--goal", "90"], "must be a fraction"),
    ):
        outcome = CliRunner().invoke(app, ["plan", "--set", "federation.engine=synthetic", *words])
        assert outcome.exit_code == 2
        assert said in outcome.output


def test_unfinished_runs_and_those_of_a_program_of_ones_own_teach_too(tmp_path):
    url = f"sqlite:///{tmp_path}/books.db"
    own = {
        "budget": {"total": 30, "max_rounds": 9},
        "clients": {"count": 3},
        "ledger": {"url": url},
    }
    with bara.open_session("spring", own) as session:
        session.begin(0.1)
        for _ in range(3):
            session.ask()
            session.award({"north": 1, "south": 2, "east": 3})
            session.settle(0.2)
    unfinished = config()
    with (
        RunFolder.new(tmp_path / "runs" / "one", unfinished) as folder,
        pytest.raises(RuntimeError),
    ):
        play_run(unfinished, stop_after(4), folder=folder)
    assert [len(one.history) for one in past_results([url, tmp_path / "runs"])] == [4, 5]
    with refused(ConfigError, "settled", f"'{tmp_path / 'nowhere'}'"):
        past_results([tmp_path / "nowhere"])


def stop_after(number):
    def observe(step):
        if getattr(step, "round", 0) == number:
            raise RuntimeError

    return observe


def test_a_target_is_forecast_with_how_often_it_is_reached_and_what_that_costs():
    goal = config(
        budget={"total": 150, "max_rounds": 30, "target": 0.3}, allocator={"name": "planner"}
    )
    drawn = curves(goal, past(1), 3)
    assert bara.plan(goal, draws=2, jobs=1).outlooks[0].allocator == "planner"
    (told,) = outlooks(
        list(outcomes(forecast_cells(goal, ["planner"], [150.0], drawn), jobs=1)), goal
    )
    assert told.reached >= 0.6
    assert told.spent[1] < 100
    (plain,) = outlooks(forecast(drawn), config())
    assert plain.reached is None


def test_a_forecast_for_a_goal_with_an_allocator_that_has_none_is_refused_before_any_play():
    goal = config(budget={"total": 300, "max_rounds": 60, "worth": 3})
    with refused(ConfigError, "budget.worth", "'even'", "planner"):
        forecast_cells(goal, ["even"], [300.0], curves(goal, [], 2))


def test_an_imagined_run_is_measured_on_as_many_samples_as_the_past_one():
    """Always off by the same, as the same samples are; what is reported is not off."""
    told = [replace(one, samples=100) for one in past(1)]
    assert {one.samples for one in curves(config(), told, 3)} == {100}
    federation = SyntheticFederation(
        Bidders(4, Distribution.parse("uniform(1, 2)"), 0), LearningCurve(), 3, samples=100
    )
    rounds = [federation.evaluate()]
    rounds += [
        federation.train(t, Award(("client-0", "client-1"), (1, 1))).evaluation for t in (1, 2, 3)
    ]
    off = [
        (one.accuracy - one.test_accuracy) / sqrt(one.test_accuracy * (1 - one.test_accuracy))
        for one in rounds
    ]
    assert off == pytest.approx([off[0]] * 4)
    assert off[0] != 0
    assert rounds[0].samples == 100


def test_a_forecast_is_in_the_currency_of_the_budget_and_leaves_no_word_out_of_a_narrow_terminal():
    words = [
        "plan",
        "--set",
        "federation.engine=synthetic",
        "--set",
        "budget.currency=EUR",
        "--set",
        "clients.count=8",
    ]
    words += [
        "--set",
        "budget.total=40000",
        "--set",
        "clients.bids=uniform(300, 900)",
        "--set",
        "budget.max_rounds=9",
    ]
    shown = CliRunner().invoke(
        app, [*words, "--draws", "2", "--jobs", "1", "--allocators", "even:carry_over=true,even"]
    )
    assert "20,000 EUR" in shown.stdout
    assert "What binds: " in shown.stdout
    assert "…" not in shown.stdout
    goal = [*words, "--draws", "2", "--jobs", "1", "--allocators", "even", "--reach", "0.99"]
    assert "not with up to 320,000 EUR; what binds" in CliRunner().invoke(app, goal).stdout
    assert json.loads(CliRunner().invoke(app, [*goal, "--json"]).stdout)["currency"] == "EUR"


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        (["data.name=cifar100"], 0.01),
        (["data.name=rand-hie"], 0.5),
        (["training.metric=auc"], 0.5),
        (["federation.engine=synthetic", "federation.a_0=0.4"], 0.4),
    ],
)
def test_without_past_runs_a_forecast_starts_from_the_chance_level_of_its_metric(changes, start):
    config = bara.Config.load(None, ["federation.engine=simulator", *changes])
    assert {curve.start for curve in curves(config, [], 4)} == {start}


SILOS = """hospital,age,ill
Aachen,30,0
Aachen,50,1
Aachen,60,1
Bonn,35,0
Bonn,55,1
Bonn,65,1
Celle,31,0
Celle,33,0
Celle,64,1
"""


@pytest.mark.parametrize(
    "clients",
    [
        {"costs": {"Aachen": 2, "Bonn": 3, "Celle": 1}},
        {"cost_by": "samples"},
        {"cost_by": "labels", "stability": 1},
    ],
    ids=["named", "by size", "by labels"],
)
def test_a_forecast_knows_the_silos_that_the_run_would_have(tmp_path, clients):
    table = tmp_path / "silos.csv"
    table.write_text(SILOS + "".join(SILOS.splitlines(keepends=True)[1:] * 4))
    data = {"name": str(table), "target": "ill", "client": "hospital"}
    told = bara.plan(
        clients=clients,
        data=data,
        federation={"engine": "simulator"},
        mechanism="turns:quality=samples",
        budget={"total": 30, "max_rounds": 6},
        allocators=["even"],
        draws=2,
        jobs=1,
    )
    assert [one.clients for one in told.outlooks] == [3, 3, 3]
    assert told.outlooks[-1].paid > 1

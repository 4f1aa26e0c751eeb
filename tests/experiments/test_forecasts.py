"""Forecasts: what a budget would buy, and what a goal would cost."""

import json

import pytest
from numpy import std
from typer.testing import CliRunner

from bara.cli import app
from bara.errors import ConfigError
from bara.experiments.comparison import compare
from bara.experiments.config import Config
from bara.experiments.forecasts import (
    BUDGETS,
    RUNS_APART,
    budget_for,
    curves,
    forecast_cells,
    outlooks,
    past_results,
)
from bara.experiments.runs import run

TREE = {
    "federation": {"engine": "synthetic"},
    "budget": {"total": 300, "max_rounds": 60},
    "clients": {"count": 12},
    "allocator": {"name": "even"},
}


def config(**changes):
    return Config.parse({**TREE, **changes})


def past(seeds=3):
    return [run(config(seed=seed)) for seed in range(seeds)]


def forecast(drawn, budgets=(300.0,), allocators=("even",)):
    grid = forecast_cells(config(), allocators, budgets, drawn)
    return list(compare(grid, jobs=1))


def test_past_runs_make_the_interval_narrow_and_put_it_where_the_truth_is():
    finals = [run(config(seed=seed)).accuracy_final for seed in range(10, 20)]
    (known,) = outlooks(forecast(curves(config(), past(), 20)))
    (unknown,) = outlooks(forecast(curves(config(), [], 20)))
    assert known.accuracy[2] - known.accuracy[0] < (unknown.accuracy[2] - unknown.accuracy[0]) / 2
    inside = [known.accuracy[0] - 0.01 <= final <= known.accuracy[2] + 0.01 for final in finals]
    assert sum(inside) >= 7


def test_a_lone_past_run_leaves_open_how_far_another_ends_from_it():
    told = past(1)
    once, often = curves(config(), told, 50), curves(config(), told * 8, 50)
    apart = [(one.y_max - same.y_max) / (2**0.5 - 0.5) for one, same in zip(once, often, strict=True)]
    assert std(apart) == pytest.approx(RUNS_APART, rel=0.3)  # sqrt(2 / 1) less sqrt(2 / 8), of the same normal draws


def test_more_money_buys_a_better_model():
    low, high = outlooks(forecast(curves(config(), past(), 10), budgets=(60.0, 600.0)))
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
        (["--past", "nowhere"], "no finished run in 'nowhere'"),
        (["--draws", "1"], "at least 2"),
        (["--budgets", "much"], "numbers by comma"),
        (["--budgets=-5"], "more than zero"),
        (["--reach", "85"], "fraction between 0 and 1"),
        (["--reach", "0.8", "--budgets", "5"], "required is one of them"),
        (["--reach", "0.8", "--allocators", ","], "names none"),
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
    common = ["plan", "--past", str(tmp_path), "--draws", "4", "--jobs", "1", "--set", "budget.max_rounds=30"]
    outcome = CliRunner().invoke(app, [*common, "--set", "clients.count=12", "--allocators", "even", "--json"])
    told = json.loads(outcome.stdout)
    assert told["past_runs"] == 2
    assert [one["budget"] for one in told["forecasts"]] == [750, 1500, 3000]
    outcome = CliRunner().invoke(app, [*common, "--allocators", "even", "--reach", "0.5"])
    assert "50 % with 90 % confidence" in outcome.stdout


def test_a_curve_needs_more_than_a_lone_draw():
    with pytest.raises(ConfigError, match="no interval"):
        curves(config(), [], 1)


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"allocator": 3}'])
def test_a_damaged_result_is_named(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(ConfigError, match=r"result\.json' holds no run's result"):
        past_results([tmp_path])


def test_who_comes_late_does_not_deliver_in_a_forecast_either():
    """Nobody in time, nothing learned."""
    late = config(clients={"count": 12, "late_rate": 1.0})
    done = next(iter(compare(forecast_cells(late, ["even"], [300.0], curves(late, [], 2)), jobs=1)))
    assert done.spent == 0

"""How long a grid is going to take."""

from types import SimpleNamespace

import pytest

from bara.experiments.comparison import cells
from bara.experiments.config import Config
from bara.experiments.paper import runtime_estimate
from bara.experiments.paper.runtime_estimate import expected_seconds, seconds_a_round, seconds_of_thought

SMALL = ["federation.engine=synthetic", "clients.count=6", "budget.total=60", "budget.max_rounds=30"]


def test_a_grid_takes_its_rounds_divided_by_the_processes():
    config = Config.load(None, SMALL)
    grid = [cell for name in ("a", "b") for cell in cells(config, ["even", "finale"], 2, name)]
    known = {"pace": lambda _: 0.5, "thought": lambda _: 0.0}
    assert expected_seconds(grid, jobs=1, **known) == {"a": 4 * 30 * 0.5, "b": 4 * 30 * 0.5}
    two = expected_seconds(grid[:2], jobs=2)
    assert two.keys() == {"a"}
    assert two["a"] > 0


@pytest.mark.parametrize("total", [60, 0.001], ids=["a budget", "a budget that buys nothing"])
def test_three_rounds_are_tried_and_the_first_does_not_count(monkeypatch, total):
    """The clock shows 0 after round 0, 9 after the first, then 11 and 14: two rounds in 5 seconds."""
    clock = SimpleNamespace(perf_counter=iter([0, 9, 11, 14]).__next__)
    monkeypatch.setattr(runtime_estimate, "time", clock)
    assert seconds_a_round(Config.load(None, [*SMALL, f"budget.total={total}"])) == 2.5


def test_what_an_allocator_needs_to_decide_counts_for_its_own_runs_alone():
    grid = cells(Config.load(None, SMALL), ["even", "finale"], 2, "a")
    slow = {"even": 0.0, "finale": 0.25}
    told = expected_seconds(grid, jobs=1, pace=lambda _: 0.0, thought=lambda config: slow[config.allocator.name])
    assert told == {"a": 2 * 30 * 0.25}


def test_the_planner_thinks_longer_than_an_even_share():
    planner, even = (cells(Config.load(None, SMALL), [name], 1)[0].config for name in ("planner", "even"))
    assert seconds_of_thought(planner) > 2 * seconds_of_thought(even) > 0

"""How long a grid is going to take."""

from types import SimpleNamespace

import pytest

from bara.experiments.comparison import cells
from bara.experiments.config import Config
from bara.experiments.paper import runtime_estimate
from bara.experiments.paper.runtime_estimate import expected_seconds, seconds_a_round

SMALL = ["federation.engine=synthetic", "clients.count=6", "budget.total=60", "budget.max_rounds=30"]


def test_a_grid_takes_its_rounds_divided_by_the_processes():
    config = Config.load(None, SMALL)
    grid = [cell for name in ("a", "b") for cell in cells(config, ["even", "finale"], 2, name)]
    assert expected_seconds(grid, jobs=1, pace=lambda _: 0.5) == {"a": 4 * 30 * 0.5, "b": 4 * 30 * 0.5}
    two = expected_seconds(grid[:2], jobs=2)
    assert two.keys() == {"a"}
    assert two["a"] > 0


@pytest.mark.parametrize("total", [60, 0.001], ids=["a budget", "a budget that buys nothing"])
def test_three_rounds_are_tried_and_the_first_does_not_count(monkeypatch, total):
    """The clock shows 0 after round 0, 9 after the first, then 11 and 14: two rounds in 5 seconds."""
    clock = SimpleNamespace(perf_counter=iter([0, 9, 11, 14]).__next__)
    monkeypatch.setattr(runtime_estimate, "time", clock)
    assert seconds_a_round(Config.load(None, [*SMALL, f"budget.total={total}"])) == 2.5

"""How long a grid is going to take."""

from bara.experiments.comparison import cells
from bara.experiments.config import Config
from bara.experiments.paper.runtime_estimate import expected_seconds, seconds_a_round

SMALL = ["federation.engine=synthetic", "clients.count=6", "budget.total=60", "budget.max_rounds=30"]


def test_a_grid_takes_its_rounds_divided_by_the_processes():
    config = Config.load(None, SMALL)
    grid = [cell for name in ("a", "b") for cell in cells(config, ["even", "finale"], 2, name)]
    assert expected_seconds(grid, jobs=1, pace=lambda _: 0.5) == {"a": 4 * 30 * 0.5, "b": 4 * 30 * 0.5}
    two = expected_seconds(grid[:2], jobs=2)
    assert two.keys() == {"a"}
    assert two["a"] > 0


def test_a_round_is_tried_and_takes_some_time():
    assert 0 < seconds_a_round(Config.load(None, SMALL)) < 60


def test_a_budget_that_buys_nothing_still_has_a_pace():
    assert seconds_a_round(Config.load(None, [*SMALL, "budget.total=0.001"])) >= 0

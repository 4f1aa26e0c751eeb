"""How long a grid is going to take."""

from types import SimpleNamespace

import pytest

from bara.paper import runtime_estimate
from bara.paper.exhibits import BARA, Scale
from bara.paper.runtime_estimate import Pace, Rehearsal, expected_seconds, pace_of, rehearse
from bara.runs.config import Config
from bara.runs.play import play_run
from bara.studies.grid import cells

SMALL = [
    "federation.engine=synthetic",
    "clients.count=10",
    "budget.total=60",
    "budget.max_rounds=30",
]


def test_a_grid_takes_its_rounds_and_turns_divided_by_the_processes():
    config = Config.load(None, SMALL)
    grid = [cell for name in ("a", "b") for cell in cells(config, ["even", "finale"], 2, name)]
    known = {"pace": lambda _: Pace(0.5, 0.25), "rehearsal": lambda _: Rehearsal(30, 100, 2.0)}
    assert expected_seconds(grid, jobs=1, **known) == {
        "a": 4 * (30 * 0.5 + 100 * 0.25 + 2),
        "b": 4 * 42,
    }
    two = expected_seconds(grid[:2], jobs=2)
    assert two.keys() == {"a"}
    assert two["a"] > 0


@pytest.mark.parametrize("total", [60, 0.001], ids=["a budget", "a budget that buys nothing"])
def test_three_rounds_are_tried_with_few_and_with_many_and_the_fastest_but_the_first_counts(
    monkeypatch, total
):
    """Two clients: a round in 2.5 seconds; six: in 6.5.

    So a client takes 1, and a round 0.5 beside.
    """
    clock = SimpleNamespace(perf_counter=iter([0, 1, 3.5, 99, 0, 1, 99, 105.5]).__next__)
    monkeypatch.setattr(runtime_estimate, "time", clock)
    assert pace_of(Config.load(None, [*SMALL, f"budget.total={total}"])) == Pace(0.5, 1.0)


def test_what_an_allocator_needs_to_decide_counts_for_its_own_runs_alone():
    grid = cells(Config.load(None, SMALL), ["even", "finale"], 2, "a")
    slow = {"even": 0.0, "finale": 7.5}
    told = expected_seconds(
        grid,
        jobs=1,
        pace=lambda _: Pace(0.0, 0.0),
        rehearsal=lambda config: Rehearsal(30, 1, slow[config.allocator.name]),
    )
    assert told == {"a": 2 * 7.5}


def test_the_planner_thinks_longer_than_an_even_share():
    planner, even = (
        cells(Config.load(None, SMALL), [name], 1)[0].config for name in ("planner", "even")
    )
    assert rehearse(planner).seconds > 2 * rehearse(even).seconds > 0


@pytest.mark.path
def test_what_is_rehearsed_is_what_the_paper_plays_within_thirty_per_cent():
    """Turns and rounds on digits, where BARA runs out
    of money at other rounds, against rehearsed ones.
    """
    small = ("data.train_samples=100", "data.evaluation_samples=50", "training.model=linear")
    grid = cells(Scale(changes=small).config("figures", "digits"), ["even", *BARA.values()], 1, "a")
    expected = [rehearse(cell.config) for cell in grid]
    played = [play_run(cell.config) for cell in grid]
    turns = sum(entry["n"] for result in played for entry in result.history)
    assert sum(one.turns for one in expected) == pytest.approx(turns, rel=0.3)
    assert sum(one.rounds for one in expected) == pytest.approx(
        sum(result.rounds for result in played), rel=0.3
    )

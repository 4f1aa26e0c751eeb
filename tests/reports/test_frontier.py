"""What accuracy each allocator reaches with how much money."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bara.cli import app
from bara.reports.comparison import Comparison
from bara.reports.comparison_table import frontier_note, frontier_rows
from bara.reports.frontier import Frontier
from bara.reports.html import comparison_report
from bara.reports.result import Result
from bara.runs.config import Config

SHARES = (0.25, 0.5, 1.0)


def run(allocator, share, accuracy, seed=0, setting=None, varied=None):
    return Result(
        allocator=allocator,
        mechanism="",
        dataset="",
        seed=seed,
        clients=2,
        budget=100 * share,
        spent=1,
        rounds=1,
        ended="",
        accuracy_final=0.1,
        accuracy_last10=0.1,
        accuracy_best=accuracy,
        accuracy_kept=accuracy,
        setting=setting,
        varied=varied or {},
        share=share,
        history=[{"round": 0, "n": 0, "cost": 0, "accuracy": accuracy}],
    )


def frontier(**curves):
    """One setting; an accuracy for each part of the budget, or one such row a seed."""
    return Frontier(
        [
            run(name, share, accuracy, seed)
            for name, rows in curves.items()
            for seed, row in enumerate(np.atleast_2d(rows))
            for share, accuracy in zip(SHARES, row, strict=True)
        ]
    )


def test_the_money_needed_lies_between_two_budgets_along_its_logarithm():
    found = frontier(even=[0.5, 0.6, 0.7], good=[0.65, 0.75, 0.9])
    assert found.goal == 0.7
    assert found.needed("good").share == pytest.approx(0.25 * 2**0.5)
    assert found.needed("even").share == 1.0


def test_more_than_was_tried_and_less_than_was_tried_are_said():
    found = frontier(even=[0.5, 0.6, 0.7], good=[0.8, 0.8, 0.9], bad=[0.1, 0.2, 0.3])
    rows = {row[0]: row[-2] for row in frontier_rows(found)[1:]}
    assert rows == {"even": "100 %", "good": "at most 25 %", "bad": "more than 100 %"}
    assert found.to_json()["names"]["bad"]["needed"]["share"] is None


def test_what_was_reached_once_is_not_lost_with_more_money():
    found = frontier(even=[0.5, 0.6, 0.7], swinging=[0.65, 0.75, 0.6])
    assert 0.25 < found.needed("swinging").share < 0.5


def test_an_interval_is_over_seeds_and_contains_the_estimate():
    found = frontier(
        even=[[0.5, 0.6, 0.7]] * 3, good=[[0.6, 0.72, 0.8], [0.66, 0.73, 0.8], [0.69, 0.8, 0.9]]
    )
    needed = found.needed("good")
    assert 0.25 < needed.low < needed.share < needed.high < 0.5
    assert found.needed("good") == needed
    assert frontier(even=[0.5, 0.6, 0.7]).needed("even").low is None


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=2, max_size=4))
def test_a_share_is_among_those_tried_or_there_is_none(rows):
    needed = frontier(even=[[0.4, 0.5, 0.6]] * len(rows), other=rows).needed("other")
    for share in (needed.low, needed.share, needed.high):
        assert 0.25 <= share <= 1.0 or share == float("inf")
    assert needed.low <= needed.high


def test_settings_count_alike_and_only_with_seeds_that_all_have():
    results = [run("even", share, 0.5, seed, "a") for share in SHARES for seed in (0, 1, 2)]
    results += [run("even", share, 0.7, 0, "b") for share in SHARES]
    results += [run("even", 1.0, 0.9, 5, "half")]
    assert Frontier(results).accuracy("even", 1.0).mean == pytest.approx(0.6)
    assert not Frontier([results[0], run("other", 0.5, 0.4)]).is_complete


def test_the_note_says_how_much_all_of_the_money_is_where_that_is_one_sum():
    one = [run("even", share, 0.5) for share in SHARES]
    assert "for each part of the budget of 100, mean" in frontier_note(Frontier(one))
    other = [replace(result, setting="rich", budget=3 * result.budget) for result in one]
    assert "for each part of the budget, mean" in frontier_note(Frontier([*one, *other]))


def test_what_is_varied_is_told_apart_and_the_first_even_is_the_baseline():
    results = [
        run(name, 1.0, 0.5, varied={"training.memory": one})
        for one in ("off", "plain")
        for name in ("fixed", "even")
    ]
    found = Frontier(results)
    assert found.names[0] == "fixed, memory=off"
    assert found.baseline == "even, memory=off"


def test_a_report_has_the_frontier_and_the_comparison_with_all_of_the_money():
    results = [run(name, share, share / 2) for name in ("even", "<other>") for share in SHARES]
    page = comparison_report(Comparison(results))
    assert "needed for 50.0 %" in page
    assert "With 100 %" in page
    assert "part of the budget, %" in page
    assert "<other>" not in page
    assert "needed" not in comparison_report(
        Comparison([replace(one, share=None) for one in results[:1]])
    )


SMALL = [
    "--set",
    "federation.engine=synthetic",
    "--set",
    "budget.max_rounds=8",
    "--set",
    "budget.total=40",
    "--seeds",
    "2",
]


def test_compare_plays_every_allocator_at_every_budget_with_every_value(tmp_path):
    asked = [
        *SMALL,
        "--allocators",
        "even,finale",
        "--budgets",
        "0.5,1",
        "--vary",
        "clients.bids=uniform(1, 2),constant(1)",
    ]
    done = CliRunner().invoke(
        app, ["compare", *asked, "--json", "--jobs", "1", "--out", str(tmp_path / "one")]
    )
    assert done.exit_code == 0, done.output
    tree = json.loads(done.stdout)
    assert len(tree["results"]) == 2 * 2 * 2 * 2
    assert {(one["share"], one["budget"]) for one in tree["results"]} == {(0.5, 20.0), (1.0, 40.0)}
    assert tree["frontier"]["baseline"] == "even, bids=uniform(1, 2)"
    again = CliRunner().invoke(
        app, ["compare", *asked, "--jobs", "1", "--out", str(tmp_path / "one")]
    )
    assert "needed for" in again.stdout
    assert (
        (tmp_path / "one" / "results.csv")
        .read_text()
        .splitlines()[0]
        .startswith("setting,allocator,variant,")
    )
    assert len((tmp_path / "one" / "results.csv").read_text().splitlines()) == 17


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (["--budgets", "a,1"], "must be numbers separated by commas"),
        (["--budgets", "0,1"], "must be positive"),
        (["--budgets", "inf"], "must be positive"),
        (
            ["--suite", "report", "--budgets", "100,200"],
            "each setting of a suite has its own budget",
        ),
        (["--vary", "training.memory"], "must be KEY=VALUE"),
        (["--set", "training.memory="], "must be KEY=VALUE"),
        (["--vary", "training.memry=off,plain"], "did you mean 'training.memory'"),
    ],
)
def test_what_cannot_be_tried_is_refused(asked, complaint):
    done = CliRunner().invoke(app, ["compare", *asked])
    assert done.exit_code == 2
    assert complaint in " ".join(done.stderr.split())


def test_amounts_are_parts_of_the_configured_budget():
    done = CliRunner().invoke(
        app, ["compare", *SMALL, "--allocators", "even", "--budgets", "20,40", "--json"]
    )
    assert {one["share"] for one in json.loads(done.stdout)["results"]} == {0.5, 1.0}


def test_a_part_of_the_budget_is_whole_micro_units():
    assert Config.load(None, ["budget.total=10"]).with_budget(1 / 3).purse().total == 3_333_333

"""Tuning as part of comparing: everybody has the same grid and pilots, and other seeds count."""

from dataclasses import replace

import pytest
from refusals import refused

import bara
from bara.errors import BaraError, ConfigError
from bara.records import Evaluation, Purse, RoundRecord
from bara.reports.charts import charts_of
from bara.reports.comparison import Comparison, Failure
from bara.reports.html import comparison_report
from bara.reports.result import Result
from bara.runs.summary import Summary
from bara.studies.tuning import FIRST_PILOT, chosen

QUICK = {
    "data": {"name": "digits", "train_samples": 200, "evaluation_samples": 200},
    "budget": {"total": 20, "max_rounds": 6},
    "clients": {"count": 4},
}
RATES = [0.001, 0.5]


def result(allocator, seed, validated, rate, **changes):
    numbers = dict.fromkeys(("budget", "spent", "rounds", "accuracy_final", "accuracy_last10"), 1)
    return Result(
        allocator,
        "turns",
        "digits",
        seed,
        4,
        **numbers,
        accuracy_best=1,
        ended="",
        kept="best",
        models={"best": {"accuracy": validated}, "final": {"accuracy": 1.0}},
        tuned={"training.learning_rate": rate},
        **changes,
    )


def test_everybody_takes_what_is_best_on_validation_data_over_all_pilots():
    runs = [
        *(result("even", seed, {0: 0.9, 1: 0.2}[seed], 0.1) for seed in (0, 1)),
        *(result("even", seed, 0.6, 0.3) for seed in (0, 1)),
        *(result("bara", seed, 0.8, 0.1) for seed in (0, 1)),
        *(result("bara", seed, 0.7, 0.3) for seed in (0, 1)),
    ]
    best = chosen(runs, [])
    rates = {one[-1]: point["training.learning_rate"] for one, point in best.items()}
    assert rates == {"even": 0.3, "bara": 0.1}


def test_tuning_chooses_by_validation_data_and_tables_show_test_data():
    summary = Summary()
    summary.tell(RoundRecord.initial(Purse.of(10, 1), Evaluation(0.1)))
    models = {"final": Evaluation(0.6, 1.0, test_accuracy=0.4, test_loss=2.0)}
    identity = {"allocator": "even", "mechanism": "turns", "dataset": "digits"}
    found = summary.result("", models=models, seed=0, clients=4, **identity)
    assert found.validated == 0.6
    assert found.accuracy_kept == 0.4


def test_values_with_a_failed_pilot_are_out():
    runs = [result("even", 0, 0.9, 0.3), *(result("even", seed, 0.5, 0.1) for seed in (0, 1))]
    failure = Failure("even", 1, "it broke", tuned={"training.learning_rate": 0.3})
    (point,) = chosen(runs, [failure]).values()
    assert point == {"training.learning_rate": 0.1}
    with refused(BaraError, "even", "it broke", "0.3"):
        chosen([result("even", 0, 0.9, 0.3)], [failure])


def test_a_comparison_says_what_was_tuned_and_keeps_the_pilots(tmp_path):
    found = bara.compare(
        QUICK,
        allocators=["even"],
        seeds=2,
        tune={"training.learning_rate": RATES},
        pilots=1,
        out=tmp_path / "tuned",
        jobs=1,
    )
    assert {run.tuned["training.learning_rate"] for run in found.results} == {0.5}
    assert [run.seed for run in found.results] == [0, 1]
    tried = {run.tuned["training.learning_rate"]: run.seed for run in found.pilots}
    assert tried == dict.fromkeys(RATES, FIRST_PILOT)
    assert "learning_rate, tuned" in found.to_markdown()
    assert len(found.to_json()["pilots"]) == 2
    opened = bara.open(tmp_path / "tuned")
    assert opened.results == found.results
    assert opened.pilots == found.pilots


def test_another_experiment_in_the_folder_is_refused_before_any_pilot_is_played(tmp_path):
    bara.compare(QUICK, allocators=["even"], seeds=1, out=tmp_path, jobs=1)
    stored = sorted(tmp_path.iterdir())
    other = {**QUICK, "budget": {"total": 30, "max_rounds": 6}}
    tune = {"training.learning_rate": RATES}
    with refused(ConfigError, "budget.total", tmp_path):
        bara.compare(other, allocators=["even"], seeds=1, tune=tune, out=tmp_path, jobs=1)
    assert sorted(tmp_path.iterdir()) == stored


def tuned_comparison():
    history = [{"round": t, "accuracy": 0.1, "cost": t, "n": t} for t in range(3)]
    pilots = [
        *(result("even", seed, seed / 10, 0.01, history=history) for seed in (8, 9)),
        *(result("even", seed, 0.3, 0.1, history=history) for seed in (8, 9)),
        result("even", 8, 1.0, 1.0, history=history),  # its other run failed
        *(result("bara", seed, 0.7, 0.1, history=history) for seed in (8, 9)),
        *(result("bara", seed, 0.2, 0.01, history=history) for seed in (8, 9)),
    ]
    kept = [
        result("even", 0, 0.9, 0.01, history=history),
        result("bara", 0, 0.9, 0.1, history=history),
    ]
    return Comparison(kept, pilots=pilots)


def sensitivity(found):
    return [chart for chart in charts_of(found) if chart.name == "sensitivity"]


def test_the_figure_of_sensitivity_is_what_the_choice_was_made_by_and_marks_it():
    found = tuned_comparison()
    (chart,) = sensitivity(found)
    assert chart.has_log_x
    even, bara_line = chart.lines
    assert (even.name, even.xs, even.dot) == ("even", [0.01, 0.1], 0)
    assert even.ys == pytest.approx([0.85, 0.3])
    assert (bara_line.xs, bara_line.ys, bara_line.dot) == ([0.01, 0.1], [0.2, 0.7], 1)
    assert comparison_report(found).count("log scale") == 1
    (ax,) = found.plot("sensitivity").axes
    assert ax.get_xscale() == "log"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.01", "0.1"]


def test_only_a_single_number_has_a_figure_of_sensitivity_and_zero_no_logarithm():
    found = tuned_comparison()

    def with_tuned(change):
        changed = [replace(one, tuned=change(one.tuned)) for one in found.pilots]
        return sensitivity(replace(found, pilots=changed))

    assert sensitivity(replace(found, pilots=[])) == []
    assert with_tuned(lambda tuned: {**tuned, "training.epochs": 1}) == []
    assert with_tuned(lambda tuned: {key: str(value) for key, value in tuned.items()}) == []
    (chart,) = with_tuned(lambda tuned: {key: value - 0.01 for key, value in tuned.items()})
    assert not chart.has_log_x


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"tune": {"training.learning_rate": [0.1]}}, ("training.learning_rate", "0.1")),
        ({"tune": {"training.learning_rate": "0.1"}}, ("training.learning_rate", "'0.1'")),
        ({"pilots": 0}, ("pilots", "0")),
        ({"seeds": [FIRST_PILOT]}, ("seed", str(FIRST_PILOT))),
        ({"data.held_out": "same"}, ("data.held_out", '"same"', '"halves"')),
    ],
)
def test_tuning_that_would_not_be_fair_is_refused(changes, facts):
    asked = {
        "tune": {"training.learning_rate": RATES},
        "allocators": ["even"],
        "jobs": 1,
        **changes,
    }
    with refused(ConfigError, *facts):
        bara.compare(QUICK, **asked)

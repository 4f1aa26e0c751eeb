"""Suites of settings, and where allocators stand over them."""

import json

import pytest
from refusals import refused
from typer.testing import CliRunner

from bara.cli import app
from bara.errors import ConfigError, UnknownNameError
from bara.reports.result import Result
from bara.reports.standings import Standings
from bara.reports.statistics import estimate, stratified
from bara.runs.config import shipped
from bara.studies.grid import cells
from bara.studies.suites import Setting, settings


def test_there_is_a_set_to_tune_on_and_another_to_report():
    assert list(shipped("suites")) == ["development", "report", "silos", "verdict"]
    tuned = {setting.config.model_dump_json() for setting in settings("development")}
    for suite in ("report", "silos", "verdict"):
        reported = {setting.config.model_dump_json() for setting in settings(suite)}
        assert not tuned & reported


def test_the_reported_settings_differ_in_all_that_matters():
    configs = [setting.config for setting in settings("report")]
    assert {config.data.name for config in configs} == {
        "digits",
        "mnist",
        "fashion-mnist",
        "cifar10",
    }
    assert {config.training.algorithm for config in configs} == {"fedsgd", "fedavg"}
    assert {config.clients.count for config in configs} == {10, 20, 50, 100}
    assert {config.clients.partition.partition("(")[0] for config in configs} == {
        "shards",
        "dirichlet",
        "iid",
    }
    assert {config.budget.max_rounds for config in configs} >= {100, 1000}
    assert len({config.clients.bids for config in configs}) > 1
    assert any(config.clients.noisy and config.clients.failure_rate for config in configs)
    assert any(setting.iid for setting in settings("report"))


@pytest.mark.parametrize("suite", list(shipped("suites")))
def test_every_allocator_can_be_built_for_every_setting(suite):
    for setting in settings(suite):
        assert (
            cells(setting.config, ["even", "planner", "isp"], 1, setting.name)[0].setting
            == setting.name
        )


def test_full_size_uses_all_samples_and_keys_can_be_changed():
    full = settings("report", {"budget.total": 7}, full=True)
    assert all(setting.config.data.train_samples is None for setting in full)
    assert all(setting.config.data.evaluation_samples is None for setting in full)
    assert {setting.config.budget.total for setting in full} == {7}


def test_single_settings_can_be_chosen():
    assert [setting.name for setting in settings("report", only=["mnist-loose"])] == ["mnist-loose"]
    with refused(UnknownNameError, "'report'", "'mnist-lose'", "'mnist-loose'"):
        settings("report", only=["mnist-lose"])


def test_a_suite_that_is_not_there_is_refused():
    with refused(UnknownNameError, "'reprot'", "'report'"):
        settings("reprot")


def run(setting, allocator, seed, final):
    return Result(
        allocator=allocator,
        mechanism="",
        dataset="",
        seed=seed,
        clients=2,
        budget=1,
        spent=1,
        rounds=1,
        ended="",
        accuracy_final=final,
        accuracy_last10=final - 0.1,
        accuracy_best=final,
        setting=setting,
    )


def suite():
    shards, iid = (settings("development")[0].config, settings("development")[3].config)
    finals = {
        ("a", "even"): (0.5, 0.6),
        ("a", "good"): (0.6, 0.8),
        ("a", "other"): (0.7, 0.6),
        ("b", "even"): (0.9, 0.9),
        ("b", "good"): (0.8, 0.8),
        ("b", "other"): (0.7, 0.7),
    }
    results = [
        run(*key, seed, final) for key, both in finals.items() for seed, final in enumerate(both)
    ]
    return Standings([Setting("a", shards), Setting("b", iid), Setting("not run", iid)], results)


def test_an_allocator_is_measured_against_even_and_the_best_rival_of_each_setting():
    """In a: even .55, good .70, other .65.

    In b: even .9, good .8, other .7; b is IID and has no part in the error.
    """
    standing = suite().of("good")
    assert [setting.name for setting in suite().settings] == ["a", "b"]
    assert standing.final == pytest.approx(0.75)
    assert standing.last10 == pytest.approx(0.65)
    assert standing.gain.mean == pytest.approx((0.15 - 0.1) / 2)
    assert standing.error_removed == pytest.approx(0.15 / 0.45)
    assert standing.over_rivals.mean == pytest.approx((0.05 - 0.1) / 2)
    assert standing.worst[0] == "b"
    assert standing.worst[1].mean == pytest.approx(-0.1)
    assert suite().to_json()[1]["allocator"] == "good"


def test_an_interval_over_groups_is_that_of_one_group_where_there_is_one():
    values = [0.1, 0.4, 0.35]
    assert stratified([values]).margin == pytest.approx(estimate(values).margin)
    assert stratified([values, values]).margin < estimate(values).margin
    assert stratified([[0.1], values]).margin is None
    assert stratified([[0.2, 0.2]]).margin == 0.0


def test_two_suites_at_once_are_refused(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("")
    for arguments, told in (
        ([str(config), "--suite", "report"], "an experiment or the suite 'report', not both"),
        (["--full"], "need a suite"),
        (["--only", "a"], "need a suite"),
        (["--suite", "nothing"], "no suite is named 'nothing'"),
    ):
        outcome = CliRunner().invoke(app, ["compare", *arguments])
        assert outcome.exit_code == 2
        assert told in outcome.output


def test_every_cell_of_a_suite_is_kept_under_a_name_of_its_own():
    grid = [
        cell for one in settings("development") for cell in cells(one.config, ["even"], 2, one.name)
    ]
    assert len({cell.key for cell in grid}) == len(grid)


def test_a_change_that_is_none_is_refused():
    with refused(ConfigError, "'budget.toto'", "'budget.total'"):
        settings("report", {"budget.toto": 7})


def test_without_even_the_first_is_the_baseline_and_what_cannot_be_paired_does_not_count():
    """In b nobody is better than perfect,
    and no error remains that could be removed; c has no seed in common.
    """
    shards = settings("development")[0].config
    results = [
        run("a", "one", 0, 0.5),
        run("a", "two", 0, 0.75),
        run("b", "one", 0, 1.0),
        run("b", "two", 0, 1.0),
    ]
    results += [run("c", "one", 0, 0.5), run("c", "two", 1, 0.5)]
    standings = Standings([Setting(name, shards) for name in "abc"], results)
    assert standings.baseline == "one"
    assert [setting.name for setting in standings.settings] == ["a", "b"]
    assert standings.of("two").error_removed == 0.5


def test_an_allocator_that_was_set_is_compared_over_a_suite_too():
    digits = ["--suite", "development", "--only", "digits-paper", "--set", "allocator.name=isp"]
    short = ["--set", "budget.max_rounds=2", "--seeds", "1", "--jobs", "1", "--json"]
    outcome = CliRunner().invoke(app, ["compare", *digits, *short])
    assert json.loads(outcome.stdout)["results"][0]["allocator"] == "isp"

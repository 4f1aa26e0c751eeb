from pathlib import Path

import pytest
from refusals import refused

from bara.errors import ConfigError
from bara.plugins import parse_spec
from bara.runs.config import Config, shipped


def test_the_printed_configuration_reads_back_as_itself(tmp_path):
    config = Config.load(
        None, ["budget.total=600", "allocator.name=even", "allocator.carry_over=true"]
    )
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml())
    assert Config.load(path) == config


def test_every_default_is_visible():
    text = Config().to_toml()
    for key in ("seed", "total", "max_rounds", "count", "bids", "engine", "strategic"):
        assert f"{key} = " in text


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ("budget.totl=1", ("'budget.totl'", "'budget.total'")),
        ("bugdet.total=1", ("'bugdet'", "'budget'")),
        ("sead=1", ("'sead'", "'seed'")),
        ("budget.total=0", ("budget.total", "0.00")),
        ("budget.total=-5", ("budget.total", "-5.00")),
        ("budget.total=nan", ("budget.total", "nan")),
        ("budget.total=lots", ("budget.total", "'lots'")),
        ("budget.max_rounds=0", ("budget.max_rounds", "1", "0")),
        ("clients.count=0", ("clients.count", "1", "0")),
        (
            "clients.bids=unifrm(0,1)",
            ("clients.bids", "'unifrm'", "'uniform'"),
        ),
        ("clients.strategy=liar", ("clients.strategy", "'liar'")),
        ("clients.failure_rate=2", ("clients.failure_rate", "1", "2")),
        ("budget.total=true", ("budget.total", "true")),
        ("clients.count=true", ("clients.count", "true")),
        ("clients.bids=normal(1,-1)", ("clients.bids", "spread", "'normal(1,-1)'")),
        ("budget", ("--set", "'budget'", "KEY=VALUE")),
        ("seed.x=1", ("seed", "{'x': 1}")),
        ("seed=-1", ("seed", "0", "-1")),
    ],
)
def test_a_wrong_key_or_value_is_named(change, facts):
    with refused(ConfigError, *facts):
        Config.load(None, [change])


def test_a_missing_or_broken_file_is_named(tmp_path):
    absent = tmp_path / "absent.toml"
    with refused(ConfigError, "configuration", absent):
        Config.load(absent)
    broken = tmp_path / "broken.toml"
    broken.write_text("[budget")
    with refused(ConfigError, broken, "TOML"):
        Config.load(broken)


def test_values_are_toml_and_otherwise_text():
    assert parse_spec("x:a=1:b=true:c=0.5:d=word:e='1'") == {
        "name": "x",
        "a": 1,
        "b": True,
        "c": 0.5,
        "d": "word",
        "e": "1",
    }


def test_an_import_path_may_be_an_options_value():
    spec = parse_spec("bara:estimator=my.module:Mine:clip=true")
    assert spec == {"name": "bara", "estimator": "my.module:Mine", "clip": True}


def test_labels_read_as_on_the_command_line():
    config = Config().with_allocator("even:carry_over=true", seed=3)
    assert (config.allocator.label, config.seed) == ("even:carry_over=true", 3)
    assert parse_spec(config.allocator.label) == {"name": "even", "carry_over": True}


def test_reading_a_configuration_imports_nothing_that_it_names(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    names = ["clients.valuation=planted:v", "allocator.name=planted:A", "mechanism.name=planted:M"]
    config = Config.load(
        None,
        [*names, "federation.engine=planted:E", "training.model=planted:N", "data.name=planted:d"],
    )
    assert config.clients.valuation == "planted:v"


@pytest.mark.parametrize(
    ("changes", "memory"),
    [
        ([], "extrapolated"),
        (["training.memory=off"], "off"),
        (["training.memory=plain"], "plain"),
        (["data.held_out=same"], "off"),
        (["federation.engine=synthetic"], "off"),
        (["federation.engine=package.module:federation"], "off"),
    ],
)
def test_a_new_experiment_has_a_memory_where_it_can_learn_from_validation_data(changes, memory):
    assert Config.load(None, ["federation.engine=simulator", *changes]).training.memory == memory


def test_a_memory_that_nobody_has_set_is_decided_anew_where_an_experiment_changes():
    synthetic = Config.load(federation="synthetic")
    assert synthetic.training.memory == "off"
    assert Config.load(synthetic, federation="simulator").training.memory == "extrapolated"


def test_stored_configurations_and_the_papers_presets_have_none_unless_they_say_so():
    assert Config.parse({}).training.memory is None
    for name in shipped("presets"):
        assert Config.load(Path(name)).training.memory == "off"


def test_a_step_is_not_learned_from_what_is_reported():
    with refused(
        ConfigError, "training.memory", '"extrapolated"', "data.held_out", '"same"', '"halves"'
    ):
        Config.load(None, ["training.memory=extrapolated", "data.held_out=same"])


def test_only_a_flower_app_says_whose_run_it_is():
    with refused(ConfigError, "app", "server", "Flower"):
        Config.parse({"app": {"name": "me/digits"}})
    assert "app" not in Config().model_dump()

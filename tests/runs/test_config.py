from pathlib import Path

import pytest

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
    ("change", "message"),
    [
        ("budget.totl=1", "unknown key 'budget.totl'; did you mean 'budget.total'"),
        ("bugdet.total=1", "unknown key 'bugdet'"),
        ("sead=1", "unknown key 'sead'; did you mean 'seed'"),
        ("budget.total=0", "budget.total must be positive, got 0.00"),
        ("budget.total=-5", "budget.total must be positive, got -5.00"),
        ("budget.total=nan", "budget.total must be a finite number, got nan"),
        ("budget.total=lots", "budget.total must be a decimal number, got 'lots'"),
        ("budget.max_rounds=0", "budget.max_rounds must be at least 1, got 0"),
        ("clients.count=0", "clients.count must be at least 1, got 0"),
        (
            "clients.bids=unifrm(0,1)",
            "clients.bids: no distribution is named 'unifrm'; did you mean 'uniform'",
        ),
        ("clients.strategy=liar", "clients.strategy: no bidding strategy is named 'liar'"),
        ("clients.failure_rate=2", "clients.failure_rate must be at most 1, got 2"),
        ("budget.total=true", "budget.total: true and false are not numbers"),
        ("clients.count=true", "clients.count: true and false are not numbers"),
        ("clients.bids=normal(1,-1)", "spread must be zero or more"),
        ("budget", "must be KEY=VALUE"),
        ("seed.x=1", "seed"),
        ("seed=-1", "seed must be at least 0, got -1"),
    ],
)
def test_a_wrong_key_or_value_is_named(change, message):
    with pytest.raises(ConfigError, match=message):
        Config.load(None, [change])


def test_a_missing_or_broken_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no configuration file .*absent.toml"):
        Config.load(tmp_path / "absent.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[budget")
    with pytest.raises(ConfigError, match="not a TOML file"):
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
    with pytest.raises(ConfigError, match="learns from the validation data"):
        Config.load(None, ["training.memory=extrapolated", "data.held_out=same"])


def test_only_a_flower_app_says_whose_run_it_is():
    with pytest.raises(ConfigError, match="only the server of a Flower app may set it"):
        Config.parse({"app": {"name": "me/digits"}})
    assert "app" not in Config().model_dump()

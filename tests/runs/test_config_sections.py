"""What the sections of a configuration refuse, also across keys, and how they say so."""

import pytest

from bara.errors import ConfigError
from bara.runs.config import Config


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "training.algorithm=fedprox",
            r"training\.algorithm must be 'fedsgd' or 'fedavg', got 'fedprox'",
        ),
        ("training.learning_rate=0", r"training\.learning_rate must be above 0, got 0"),
        ("training.learning_rate=nan", r"training\.learning_rate must be .*, got nan"),
        ("training.learning_rate=inf", r"training\.learning_rate must be a finite number, got inf"),
        ("training.learning_rate=true", r"training\.learning_rate: true and false are not numbers"),
        ("training.local_epochs=0", r"training\.local_epochs must be at least 1, got 0"),
        ("training.local_epochs=1.5", r"training\.local_epochs must be a whole number, got 1\.5"),
        ("training.batch_size=0", r"training\.batch_size must be at least 1, got 0"),
        ("training.batch_size=true", r"training\.batch_size: true and false are not numbers"),
        ("training.momentum=1.0", r"training\.momentum must be below 1, got 1\.0"),
        ("training.momentum=-0.1", r"training\.momentum must be at least 0, got -0\.1"),
        ("training.weight_decay=-1.0", r"training\.weight_decay must be at least 0, got -1\.0"),
        ("training.weight_decay=inf", r"training\.weight_decay must be a finite number, got inf"),
        ("training.proximal=nan", r"training\.proximal must be .*, got nan"),
        ("training.average_last=0", r"training\.average_last must be at least 1, got 0"),
        ("training.average_last=1.5", r"training\.average_last must be a whole number, got 1\.5"),
    ],
)
def test_what_cannot_be_trained_with_is_named(change, message):
    with pytest.raises(ConfigError, match=message):
        Config.load(None, [change])


@pytest.mark.parametrize(
    "change", ["local_epochs=2", "momentum=0.5", "weight_decay=0.5", "proximal=0.5"]
)
def test_fedsgd_refuses_what_only_fedavg_has(change):
    key = change.partition("=")[0]
    with pytest.raises(
        ConfigError,
        match=rf"training\.{key} must be . with fedsgd, which takes a single plain step, got",
    ):
        Config.load(None, [f"training.{change}"])
    assert Config.load(None, [f"training.{change}", "training.algorithm=fedavg"])


def test_more_strategic_clients_than_clients_are_refused():
    with pytest.raises(
        ConfigError, match=r"clients\.strategic must be at most clients\.count = 4, got 5"
    ):
        Config.load(None, ["clients.strategic=5", "clients.count=4"])


def test_more_roles_than_clients_are_refused():
    roles = ["clients.count=6", "clients.noisy=3", "clients.free_riders=2"]
    assert Config.load(None, [*roles, "clients.poisoners=1"])
    with pytest.raises(
        ConfigError, match=r"poisoners must add up to at most clients\.count = 6, got 7"
    ):
        Config.load(None, [*roles, "clients.poisoners=2"])


def test_a_configuration_of_an_earlier_version_says_its_precision_and_is_read():
    assert Config.parse({"training": {"precision": "float32"}}) == Config()


def test_bfloat16_is_refused_with_the_reason():
    with pytest.raises(
        ConfigError,
        match=r"precision must be 'float32', got 'bfloat16'; .* removed because it was 7 to 13 "
        r"times",
    ):
        Config.load(None, ["training.precision=bfloat16"])

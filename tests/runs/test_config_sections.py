"""What the sections of a configuration refuse, also across keys, and how they say so."""

import pytest
from refusals import refused

from bara.errors import ConfigError
from bara.runs.config import Config


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ("algorithm=fedprox", ("'fedsgd'", "'fedavg'", "'fedprox'")),
        ("learning_rate=0", ("0",)),
        ("learning_rate=nan", ("nan",)),
        ("learning_rate=inf", ("inf",)),
        ("learning_rate=true", ("true",)),
        ("local_epochs=0", ("1", "0")),
        ("local_epochs=1.5", ("1.5",)),
        ("batch_size=0", ("1", "0")),
        ("batch_size=true", ("true",)),
        ("momentum=1.0", ("1.0",)),
        ("momentum=-0.1", ("-0.1",)),
        ("weight_decay=-1.0", ("-1.0",)),
        ("weight_decay=inf", ("inf",)),
        ("proximal=nan", ("nan",)),
        ("average_last=0", ("1", "0")),
        ("average_last=1.5", ("1.5",)),
    ],
)
def test_what_cannot_be_trained_with_is_named(change, facts):
    key = change.partition("=")[0]
    with refused(ConfigError, f"training.{key}", *facts):
        Config.load(None, ["training.algorithm=fedavg", f"training.{change}"])


@pytest.mark.parametrize(
    "change", ["local_epochs=2", "momentum=0.5", "weight_decay=0.5", "proximal=0.5"]
)
def test_fedsgd_refuses_what_only_fedavg_has(change):
    key, _, value = change.partition("=")
    with refused(ConfigError, f"training.{key}", "fedsgd", value):
        Config.load(None, [f"training.{change}"])
    assert Config.load(None, [f"training.{change}", "training.algorithm=fedavg"])


def test_more_strategic_clients_than_clients_are_refused():
    with refused(ConfigError, "clients.strategic", "clients.count", "4", "5"):
        Config.load(None, ["clients.strategic=5", "clients.count=4"])


def test_more_roles_than_clients_are_refused():
    roles = ["clients.count=6", "clients.noisy=3", "clients.free_riders=2"]
    assert Config.load(None, [*roles, "clients.poisoners=1"])
    with refused(
        ConfigError, "clients.noisy", "free_riders", "poisoners", "clients.count", "6", "7"
    ):
        Config.load(None, [*roles, "clients.poisoners=2"])


def test_a_configuration_of_an_earlier_version_says_its_precision_and_is_read():
    assert Config.parse({"training": {"precision": "float32"}}) == Config()


def test_bfloat16_is_refused_with_the_reason():
    with refused(ConfigError, "precision", "'float32'", "'bfloat16'", "7 to 13", "slower"):
        Config.load(None, ["training.precision=bfloat16"])

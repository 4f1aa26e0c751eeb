import math

import pytest

from bara.errors import ConfigError
from bara.federations.simulator import Training


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("algorithm", "fedprox"),
        ("precision", "float16"),
        ("learning_rate", 0),
        ("learning_rate", math.nan),
        ("learning_rate", math.inf),
        ("learning_rate", "0.1"),
        ("learning_rate", True),
        ("local_epochs", 0),
        ("local_epochs", 1.5),
        ("batch_size", 0),
        ("batch_size", True),
        ("momentum", 1.0),
        ("momentum", -0.1),
        ("weight_decay", -1.0),
        ("proximal", math.nan),
    ],
)
def test_a_field_that_cannot_be_trained_with_is_named(field, value):
    with pytest.raises(ConfigError, match=rf"training\.{field} is {value!r}"):
        Training(**{field: value})


@pytest.mark.parametrize("field", ["momentum", "weight_decay", "proximal"])
def test_fedsgd_refuses_what_only_fedavg_has(field):
    with pytest.raises(ConfigError, match=f"{field}.*fedsgd"):
        Training(algorithm="fedsgd", **{field: 0.5})


def test_fedsgd_takes_one_step_only():
    with pytest.raises(ConfigError, match="local_epochs"):
        Training(algorithm="fedsgd", local_epochs=2)

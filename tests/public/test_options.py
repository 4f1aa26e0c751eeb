"""Every key there is: `--show-config` and the reference list what is not set,
and every part's own options.
"""

import tomllib

import pytest
from refusals import refused

from bara.errors import ConfigError
from bara.options import Within
from bara.runs.config import Config
from bara.runs.config_sections import Table
from bara.runs.reference import REGISTRIES, documented_toml, options_of

OPTIONS = {
    f"{name}-{option.name}": option
    for section, registry in REGISTRIES.items()
    for name in registry.names()
    for option in options_of(section, name)
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_of_every_part_says_what_it_is_for_and_what_it_may_be(name):
    assert OPTIONS[name].about
    assert OPTIONS[name].kind
    assert "<class" not in OPTIONS[name].kind


def test_the_configuration_shows_what_is_not_set_and_stays_toml():
    config = Config.load(
        None, ["allocator.name=bara", "allocator.noise=0.5", "federation.engine=synthetic"]
    )
    text = documented_toml(config)
    assert Config.parse(tomllib.loads(text)) == Config.parse(tomllib.loads(config.to_toml()))
    assert "\n# epsilon =  # not set: each client's privacy budget" in text
    assert "\n# horizon = \"total\"  # 'total' or 'left'; " in text
    assert "\n# forgetting = 0.001  # at least 0 and below 1; " in text
    assert "\n# a_max = 0.85  # from 0 to 1; " in text
    assert "\n# noise" not in text  # which is set
    shown = {line.removeprefix("# ").partition(" =")[0] for line in text.splitlines()}
    sections = [
        one for key in type(config).model_fields if isinstance(one := getattr(config, key), Table)
    ]
    assert all(set(type(section).model_fields) <= shown for section in sections)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("bara", "forgetting", 1),
        ("finale", "part", 1.1),
        ("isp", "every", 0),
        ("fixed", "n", 0),
    ],
)
def test_what_is_out_of_its_range_is_refused_however_the_part_is_made(name, option, value):
    factory = REGISTRIES["allocator"].factory(name)
    with refused(ConfigError, f"'{name}'", f"{option} = {value}"):
        factory(**({"clients": 5} if name in ("bara", "isp") else {}), **{option: value})


def test_the_ends_of_a_range_belong_to_it_or_do_not():
    within = Within(above=0, at_most=1)
    assert [value in within for value in (0, 0.1, 1, 1.1)] == [False, True, True, False]

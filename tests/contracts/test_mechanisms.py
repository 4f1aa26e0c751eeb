"""Every mechanism there is keeps the same contract, and promises exactly what holds."""

import pytest

from bara import Bids
from bara.mechanisms import MECHANISMS
from bara.testing import MECHANISM_CHECKS

VARIANTS = {
    "bid-price-first": [{}, {"reserve": 0.00001}],
    "quality": [{}, {"quality": "samples"}, {"quality": "samples", "reserve": 0.00002}],
    "fair": [{}, {"reserve": 0.00002}],
    "fl-market": [
        {},
        {"level": "client"},
        {"auction": "all-in"},
        {"auction": "dm-regretnet"},
        {"optimal": False},
    ],
    "rrafl": [{}, {"reserve": 0.00002}],
    "fmore": [
        {},
        *(
            {"columns": ["samples", "speed"], "form": form}
            for form in ("additive", "cobb-douglas", "min")
        ),
    ],
    "turns": [{}, {"quality": "samples"}, {"reserve": 0.00001}],
    "standing": [{"reserve": 1}, {"reserve": 0.00001}],
    "proportional-share": [{}, {"quality": "samples"}],
    "posted-price": [{"price": 1}, {"price": 0.000002}],
    "tariff": [{"per_round": 1}, {"per_round": "0.000001", "per_sample": "0.0000005"}],
    "a-fl": [{}, {"clients": 2, "reserve": 0.00002}],
}
CASES = [(name, options) for name in MECHANISMS.names() for options in VARIANTS.get(name, [{}])]


@pytest.mark.parametrize("check", MECHANISM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_every_mechanism(name, options, check):
    check(lambda: MECHANISMS.build(name, options))


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_of_equals_those_go_first_whom_the_bids_prefer(name, options):
    one = dict.fromkeys("abcd", 1)
    tie = {"a": 3, "b": 1, "c": 4, "d": 2}
    bids = Bids.of(dict.fromkeys("abcd", "0.000001"), samples=one, speed=one, epsilon=one, tie=tie)
    menu = MECHANISMS.build(name, options).menu(bids)
    assert "".join(menu.bids.clients[place] for place in menu.order) == "bdac"

"""Every mechanism there is keeps the same contract, and promises exactly what holds."""

import pytest

from bara.mechanisms import MECHANISMS
from bara.testing import MECHANISM_CHECKS

VARIANTS = {
    "bid-price-first": [{}, {"reserve": 0.00001}],
    "quality": [{}, {"quality": "samples"}, {"quality": "samples", "reserve": 0.00002}],
    "fair": [{}, {"reserve": 0.00002}],
    "fl-market": [{}, {"level": "client"}, {"auction": "all-in"}, {"optimal": False}],
    "rrafl": [{}, {"reserve": 0.00002}],
    "fmore": [{}, *({"columns": ["samples", "speed"], "form": form} for form in ("additive", "cobb-douglas", "min"))],
    "proportional-share": [{}, {"quality": "samples"}],
    "a-fl": [{}, {"clients": 2, "reserve": 0.00002}],
}
CASES = [(name, options) for name in MECHANISMS.names() for options in VARIANTS.get(name, [{}])]


@pytest.mark.parametrize("check", MECHANISM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_every_mechanism(name, options, check):
    check(lambda: MECHANISMS.build(name, options))

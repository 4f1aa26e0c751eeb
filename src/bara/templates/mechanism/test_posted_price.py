"""The contract of every mechanism, and the properties that yours claims, tried on random rounds."""

import pytest
from posted_price import PostedPrice

from bara.testing import MECHANISM_CHECKS


@pytest.mark.parametrize("check", MECHANISM_CHECKS, ids=lambda check: check.__name__)
def test_posted_price_keeps_the_contract(check):
    check(PostedPrice)

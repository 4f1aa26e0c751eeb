"""The contract of every allocator; checks of what yours does not have are skipped."""

import pytest
from slow_start import SlowStart

from bara.testing import ALLOCATOR_CHECKS, CLIENTS


@pytest.mark.parametrize("check", ALLOCATOR_CHECKS, ids=lambda check: check.__name__)
def test_slow_start_keeps_the_contract(check):
    check(lambda _seed: SlowStart(clients=CLIENTS))

"""The contract of every allocator; checks of what yours does not have are skipped."""

from slow_start import SlowStart

from bara.testing import ALLOCATOR_CHECKS, CLIENTS, contract_test

test_contract = contract_test(ALLOCATOR_CHECKS, lambda _seed: SlowStart(clients=CLIENTS))

"""Every allocator there is keeps the same contract; the next one is checked without writing a test."""

import itertools

import pytest

from bara import Offer
from bara.allocators import ALLOCATORS
from bara.testing import (
    ALLOCATOR_CHECKS,
    CLIENTS,
    check_ask_is_pure,
    check_replay_rebuilds_it,
    check_same_seed_same_run,
)

VARIANTS = {
    "bara": [{"exploration_rounds": 8}, {"preset": "paper", "exploration_rounds": 8}, {"reestimate": True}],
    "even": [{}, {"carry_over": True}],
    "increasing": [{}, {"carry_over": True}],
    "decreasing": [{}, {"carry_over": True}],
    "fixed": [{"n": 3}, {"n": 3, "shortfall": "shrink"}],
}
CASES = [(name, options) for name in ALLOCATORS.names() for options in VARIANTS.get(name, [{}])]


@pytest.mark.parametrize("check", ALLOCATOR_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_every_allocator(name, options, check):
    check(lambda seed: ALLOCATORS.build(name, options, clients=CLIENTS, seed=seed))


class Moody:
    """Never gives the same answer twice."""

    answers = itertools.count(5_000_000)

    def ask(self, _purse):
        return Offer.spend(next(Moody.answers))

    def tell(self, record):
        pass


@pytest.mark.parametrize("check", [check_ask_is_pure, check_replay_rebuilds_it, check_same_seed_same_run])
def test_a_check_fails_on_an_allocator_that_breaks_it(check):
    with pytest.raises(AssertionError):
        check(lambda _seed: Moody())

"""Every allocator there is keeps the same contract.

The next one is checked without writing a test.
"""

import pytest

from bara.allocators import ALLOCATORS
from bara.records import Goal
from bara.testing import ALLOCATOR_CHECKS, CLIENTS, select_checks

VARIANTS = {
    "bara": [
        {"exploration_rounds": 8},
        {"preset": "paper", "exploration_rounds": 8},
        {"reestimate": True},
        {"cost_average": "menus", "exploration_rounds": 8},
        {"preset": "intended", "exploration_rounds": 8},
        {"vector": "column", "clip": False, "exploration_rounds": 8},
        {"vector": "column", "reestimate": True, "estimator": "piecewise", "exploration_rounds": 8},
    ],
    "even": [{}, {"carry_over": True}],
    "increasing": [{}, {"carry_over": True}],
    "decreasing": [{}, {"carry_over": True}],
    "explored": [{"n": 3, "exploration_rounds": 4}],
    "fixed": [{"n": 3}, {"n": 3, "shortfall": "shrink"}],
    "planner": [
        {},
        {"goal": Goal(target=0.5)},
        {"goal": Goal(target=0.9)},
        {"goal": Goal(worth=1_000_000)},
    ],
}
CASES = [(name, options) for name in ALLOCATORS.names() for options in VARIANTS.get(name, [{}])]
OF_BELIEFS = {"check_beliefs_are_plain", "check_failing_clients_do_not_end_learning"}
OF_MEMORY = {"check_memory_stands_in_for_menus"}


def selection(name, options):
    return select_checks(ALLOCATOR_CHECKS, ALLOCATORS.build(name, options, clients=CLIENTS, seed=0))


APPLYING = [
    (name, options, check) for name, options in CASES for check in selection(name, options).checks
]


@pytest.mark.parametrize(
    ("name", "options", "check"), APPLYING, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_every_allocator(name, options, check):
    check(lambda seed: ALLOCATORS.build(name, options, clients=CLIENTS, seed=seed))


def test_what_is_not_checked_is_what_those_that_only_count_do_not_have():
    skipped = {name: set(selection(name, options).skipped) for name, options in CASES}
    learning = {"bara": set(), "planner": set()}
    assert skipped == dict.fromkeys(ALLOCATORS.names(), OF_BELIEFS | OF_MEMORY) | learning

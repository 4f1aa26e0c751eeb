"""Contract checks for anyone's mechanism, allocator or federation; bara's own ones pass them, too.

Each check takes a function that makes a new part (a mechanism, an allocator or a federation). It
raises AssertionError with what is wrong, or whatever the part itself raises. A check of something
that the part does not have raises unittest.SkipTest, which pytest lists as skipped; `select_checks`
tells beforehand which checks apply. What is allowed but probably unintended gives a warning, a
`ContractHint`.

    from bara.testing import ALLOCATOR_CHECKS, contract_test

    test_contract = contract_test(ALLOCATOR_CHECKS, lambda seed: MyAllocator(seed=seed))
"""

from bara.testing._allocators import (
    ALLOCATOR_CHECKS,
    CLIENTS,
    MakeAllocator,
    check_ask_is_pure,
    check_beliefs_are_plain,
    check_budget_and_deadline_hold,
    check_clients_may_come_and_go,
    check_failing_clients_are_survived,
    check_failing_clients_do_not_end_learning,
    check_memory_stands_in_for_menus,
    check_replay_rebuilds_it,
    check_same_seed_same_run,
)
from bara.testing._federations import (
    FEDERATION_CHECKS,
    MakeFederation,
    check_bids_are_repeatable,
    check_deliveries_account_for_winners,
    check_every_delivered_update_counts,
    check_same_seed_same_history,
    check_training_again_comes_to_the_same,
    check_training_is_evaluated,
)
from bara.testing._mechanisms import (
    MECHANISM_CHECKS,
    MakeMechanism,
    check_absurd_bids_cost_nobody_else,
    check_claims_hold,
    check_claims_hold_at_cents,
    check_menu_is_pure,
    check_small_rounds_are_served,
    check_tell_takes_any_round,
    check_unclaimed_has_a_counter_example,
)
from bara.testing._selection import (
    Check,
    ContractHint,
    Selection,
    contract_test,
    needs,
    select_checks,
)

__all__ = [
    "ALLOCATOR_CHECKS",
    "CLIENTS",
    "FEDERATION_CHECKS",
    "MECHANISM_CHECKS",
    "Check",
    "ContractHint",
    "MakeAllocator",
    "MakeFederation",
    "MakeMechanism",
    "Selection",
    "check_absurd_bids_cost_nobody_else",
    "check_ask_is_pure",
    "check_beliefs_are_plain",
    "check_bids_are_repeatable",
    "check_budget_and_deadline_hold",
    "check_claims_hold",
    "check_claims_hold_at_cents",
    "check_clients_may_come_and_go",
    "check_deliveries_account_for_winners",
    "check_every_delivered_update_counts",
    "check_failing_clients_are_survived",
    "check_failing_clients_do_not_end_learning",
    "check_memory_stands_in_for_menus",
    "check_menu_is_pure",
    "check_replay_rebuilds_it",
    "check_same_seed_same_history",
    "check_same_seed_same_run",
    "check_small_rounds_are_served",
    "check_tell_takes_any_round",
    "check_training_again_comes_to_the_same",
    "check_training_is_evaluated",
    "check_unclaimed_has_a_counter_example",
    "contract_test",
    "needs",
    "select_checks",
]

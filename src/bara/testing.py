"""Contract checks for anyone's mechanism, allocator or federation; our own tests run them over every one there is.

Each check takes a function that makes a fresh one, and raises AssertionError with what is wrong.

    from bara.testing import ALLOCATOR_CHECKS

    @pytest.mark.parametrize("check", ALLOCATOR_CHECKS, ids=lambda check: check.__name__)
    def test_my_allocator_keeps_the_contract(check):
        check(lambda seed: MyAllocator(seed=seed))
"""

import json
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from bara.federations.bidding import Bidders
from bara.federations.costs import Distribution
from bara.federations.synthetic import LearningCurve, SyntheticFederation
from bara.ledger.retention import strip
from bara.market import Market
from bara.mechanisms import bid_price_first
from bara.mechanisms.audit import audit
from bara.mechanisms.properties import EVERY_PROPERTY, random_case
from bara.protocols import Allocator, Believer, Federation, Mechanism, Remembers, requirements_of
from bara.records import AwardedRound, Bids, Delivery, Evaluation, Offer, Purse, RoundRecord

MakeAllocator = Callable[[int], Allocator]
"""seed -> a fresh allocator for up to `CLIENTS` clients."""

MakeMechanism = Callable[[], Mechanism]
MakeFederation = Callable[[int], Federation]
"""seed -> a fresh federation."""

CLIENTS = 8
_PURSE = Purse.of(60, 30)


def _federation(seed: int, failure_rate: float = 0.0) -> SyntheticFederation:
    bidders = Bidders(CLIENTS, Distribution.parse("uniform(0.5, 1.5)"), seed)
    return SyntheticFederation(bidders, LearningCurve(), seed, failure_rate)


def _play(allocator: Allocator, federation: Federation, purse: Purse = _PURSE) -> list[RoundRecord]:
    steps = Market(allocator, bid_price_first(), federation, purse).rounds()
    return [step for step in steps if isinstance(step, RoundRecord)]


def _trace(records: list[RoundRecord]) -> list[tuple[Offer, tuple[str, ...], tuple[int, ...]]]:
    return [(r.awarded.offer, r.awarded.award.clients, r.awarded.award.payments) for r in records]


# --- allocators ----------------------------------------------------------------------------------


def check_ask_is_pure(make: MakeAllocator) -> None:
    """Asked twice, an allocator gives the same answer, and asking changes nothing it does later."""
    quiet = _play(make(3), _federation(3))
    nosy = make(3)

    class AskedTwice:
        def ask(self, purse: Purse) -> Offer:
            assert nosy.ask(purse) == nosy.ask(purse), "two answers to one question"
            return nosy.ask(purse)

        def tell(self, record: RoundRecord) -> None:
            nosy.tell(record)

    assert _trace(_play(AskedTwice(), _federation(3))) == _trace(quiet), "asking changed a later decision"


def check_replay_rebuilds_it(make: MakeAllocator) -> None:
    """Telling a fresh allocator the stored rounds makes it answer as the one that lived through them."""
    records = _play(make(5), _federation(5))
    rebuilt = make(5)
    for record, following in pairwise(records):
        rebuilt.tell(record)
        answer = rebuilt.ask(record.purse_after)
        assert answer == following.awarded.offer, f"rebuilt, it answers otherwise in round {following.round}"


def check_same_seed_same_run(make: MakeAllocator) -> None:
    """Two runs from one seed are the same."""
    assert _trace(_play(make(7), _federation(7))) == _trace(_play(make(7), _federation(7))), "two runs differ"


def check_budget_and_deadline_hold(make: MakeAllocator) -> None:
    """Whatever it offers, no run spends more than the budget or plays beyond the deadline."""
    for total, rounds in ((60, 30), (3, 30), (2000, 5), (0.5, 4)):
        records = _play(make(1), _federation(1), Purse.of(total, rounds))
        assert sum(record.paid for record in records) == records[-1].purse_after.spent, "the books do not add up"
        assert records[-1].purse_after.spent <= records[-1].awarded.purse.total, "the budget is exceeded"
        assert records[-1].round <= rounds, "the deadline is exceeded"


def check_failing_clients_are_survived(make: MakeAllocator) -> None:
    """Rounds where some or all winners do not deliver go on, and void winners are not paid."""
    for rate in (0.3, 1.0):
        for record in _play(make(2), _federation(2, failure_rate=rate)):
            assert set(record.payments) == set(record.delivery.delivered), "a void winner was paid"


def check_clients_may_come_and_go(make: MakeAllocator) -> None:
    """N may change from round to round, down to nobody."""

    class Changing:
        def __init__(self) -> None:
            self._inner = _federation(4)

        def evaluate(self) -> Evaluation:
            return self._inner.evaluate()

        def bids(self, round: int) -> Bids:  # noqa: A002 - a round is a round
            present = (CLIENTS, 3, 1, 0, 2)[round % 5]
            return self._inner.bids(round).without(self._inner.bidders.clients[present:])

        def train(self, round: int, award: object) -> Delivery:  # noqa: A002
            return self._inner.train(round, award)  # type: ignore[arg-type]

    records = _play(make(4), Changing())
    assert records[-1].purse_after.spent <= _PURSE.total, "the budget is exceeded"


def check_beliefs_are_plain(make: MakeAllocator) -> None:
    """What it believes has a mean and a deviation for every arm."""
    allocator = make(6)
    _play(allocator, _federation(6))
    if isinstance(allocator, Believer):
        belief = allocator.belief()
        assert len(belief.arms) == len(belief.mean) == len(belief.deviation), "columns of different lengths"
        assert all(deviation >= 0 for deviation in belief.deviation), "a negative deviation"


def check_memory_stands_in_for_menus(make: MakeAllocator) -> None:
    """One that remembers what menus taught it, told rounds without them, answers as the one that saw them."""
    lived = make(8)
    if not isinstance(lived, Remembers):
        return
    records = _play(lived, _federation(8))
    rebuilt = make(8)
    assert isinstance(rebuilt, Remembers)
    rebuilt.restore(json.loads(json.dumps(lived.memory())))
    for record in records:
        rebuilt.tell(strip(record))
    purse = records[-1].purse_after
    assert rebuilt.ask(purse) == lived.ask(purse), "rebuilt from its memory, it answers otherwise"
    assert rebuilt.memory() == lived.memory(), "rebuilt from its memory, it remembers otherwise"


ALLOCATOR_CHECKS: tuple[Callable[[MakeAllocator], None], ...] = (
    check_ask_is_pure,
    check_replay_rebuilds_it,
    check_same_seed_same_run,
    check_budget_and_deadline_hold,
    check_failing_clients_are_survived,
    check_clients_may_come_and_go,
    check_beliefs_are_plain,
    check_memory_stands_in_for_menus,
)


# --- mechanisms ----------------------------------------------------------------------------------


def check_claims_hold(make: MakeMechanism) -> None:
    """Every property it claims holds on random rounds."""
    mechanism = make()
    for finding in audit(mechanism, trials=100, names=mechanism.claims):
        assert not finding.broken, f"{finding.name}: {finding.counter_example}"


def check_unclaimed_has_a_counter_example(make: MakeMechanism) -> None:
    """What it does not claim really fails somewhere; otherwise it should claim it."""
    mechanism = make()
    for finding in audit(mechanism, trials=3000, names=EVERY_PROPERTY - mechanism.claims):
        assert finding.counter_example, f"{finding.name} holds; it could be claimed"


def check_menu_is_pure(make: MakeMechanism) -> None:
    """The same bids give the same menu, and the order in which they arrived does not matter."""
    mechanism = make()
    rng = np.random.default_rng(0)
    for _ in range(50):
        bids = random_case(rng, _columns(mechanism)).bids
        shuffled = rng.permutation(len(bids))
        columns = {name: values[shuffled] for name, values in bids.columns.items()}
        again = Bids(tuple(bids.clients[i] for i in shuffled), bids.prices[shuffled], columns)
        one, two = mechanism.menu(bids), mechanism.menu(again)
        assert one.costs.tolist() == two.costs.tolist(), "the order of arrival changed a cost"
        for n in range(1, len(one) + 1):
            offer = Offer.caps([0] * (n - 1) + [one.cost(n)])
            assert one.award(offer, _rich(one.cost(n))) == two.award(offer, _rich(one.cost(n))), "or an award"


def check_small_rounds_are_served(make: MakeMechanism) -> None:
    """Nobody, one, two and all-equal bidders give a menu, though it may be empty."""
    mechanism = make()
    for prices in ({}, {"a": 1}, {"a": 1, "b": 2}, dict.fromkeys("abcde", 1)):
        columns = {name: dict.fromkeys(prices, 10.0) for name in _columns(mechanism)}
        menu = mechanism.menu(Bids.of(prices, **columns))
        assert 0 <= len(menu) <= len(prices), "a menu longer than there are clients"
        assert menu.award(Offer.spend(10**9), _rich(10**9)).n <= len(prices), "more winners than clients"


def check_tell_takes_any_round(make: MakeMechanism) -> None:
    """It can be told of the initial evaluation, an empty round and a round of voids."""
    mechanism = make()
    mechanism.tell(RoundRecord.initial(_PURSE, Evaluation(0.1)))
    bids = Bids.of({"a": 1, "b": 2, "c": 3}, **{name: dict.fromkeys("abc", 10.0) for name in _columns(mechanism)})
    for offer in (Offer.skip(), Offer.recruit(2)):
        awarded = AwardedRound.of(_PURSE, offer, mechanism.menu(bids))
        mechanism.tell(awarded.settle(Delivery(Evaluation(0.2), void=dict.fromkeys(awarded.award.clients, "gone"))))


def _columns(mechanism: Mechanism) -> tuple[str, ...]:
    return tuple({"samples": 0, **dict.fromkeys(requirements_of(mechanism).columns)})


def _rich(at_least: int) -> Purse:
    return Purse(total=max(at_least, 1), max_rounds=1)


MECHANISM_CHECKS: tuple[Callable[[MakeMechanism], None], ...] = (
    check_claims_hold,
    check_unclaimed_has_a_counter_example,
    check_menu_is_pure,
    check_small_rounds_are_served,
    check_tell_takes_any_round,
)


# --- federations ---------------------------------------------------------------------------------


def check_bids_are_repeatable(make: MakeFederation) -> None:
    """Asked twice for a round's bids, a federation gives the same."""
    federation = make(1)
    first, second = federation.bids(1), federation.bids(1)
    assert first.clients == second.clients, "other clients"
    assert first.prices.tolist() == second.prices.tolist(), "other prices"


def check_same_seed_same_history(make: MakeFederation) -> None:
    """Two federations from one seed learn the same; another seed bids otherwise."""
    one, two = _evaluations(make(1)), _evaluations(make(1))
    assert one == two, "two runs differ"
    assert make(1).bids(1).prices.tolist() != make(2).bids(1).prices.tolist(), "another seed bids the same"


def check_training_again_comes_to_the_same(make: MakeFederation) -> None:
    """A fresh federation, trained with stored awards, delivers what is stored: a run without checkpoints resumes."""
    records = _play(_three_at_a_time(), make(4), Purse.of(60, 6))
    again = make(4)
    for record in records[1:]:
        if record.awarded.award.n:
            assert again.train(record.round, record.awarded.award) == record.delivery, f"round {record.round} differs"


def check_deliveries_account_for_winners(make: MakeFederation) -> None:
    """A delivery accounts for exactly the winners (a record that does not is refused), and accuracy is a fraction."""
    for evaluation in _evaluations(make(3)):
        assert 0 <= evaluation.accuracy <= 1, "no fraction"


def _three_at_a_time() -> Allocator:
    class ThreeAtATime:
        def ask(self, purse: Purse) -> Offer:  # noqa: ARG002 - the protocol's signature
            return Offer.recruit(3)

        def tell(self, record: RoundRecord) -> None:
            pass

    return ThreeAtATime()


def _evaluations(federation: Federation) -> list[Evaluation]:
    return [record.evaluation for record in _play(_three_at_a_time(), federation, Purse.of(60, 6))]


FEDERATION_CHECKS: tuple[Callable[[MakeFederation], None], ...] = (
    check_bids_are_repeatable,
    check_same_seed_same_history,
    check_training_again_comes_to_the_same,
    check_deliveries_account_for_winners,
)

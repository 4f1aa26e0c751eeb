"""Checks of what every allocator promises, made by playing it on a small federation."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.ledger.retention import strip
from bara.mechanisms import bid_price_first
from bara.protocols import Allocator, Believer, Federation, Remembers
from bara.records import Award, Bids, Delivery, Offer, Purse, RoundRecord
from bara.runs.session import Session
from bara.simulator.synthetic import LearningCurve, SyntheticFederation
from bara.testing._selection import needs

MakeAllocator = Callable[[int], Allocator]
"""Takes a seed, returns a new allocator for up to `CLIENTS` clients."""

CLIENTS = 8
PURSE = Purse.of(60, 30)


def _federation(seed: int, failure_rate: float = 0.0, a_max: float = 0.85) -> SyntheticFederation:
    bidders = Bidders(CLIENTS, Distribution.parse("uniform(0.5, 1.5)"), seed)
    return SyntheticFederation(bidders, LearningCurve(a_max=a_max), seed, failure_rate)


class _FailingAtFirst:
    """A federation in which no winner delivers in the first rounds."""

    def __init__(self, inner: Federation, rounds: int) -> None:
        self._inner = inner
        self._rounds = rounds
        self.evaluate = inner.evaluate
        self.bids = inner.bids

    def train(self, round: int, award: Award) -> Delivery:
        if round > self._rounds:
            return self._inner.train(round, award)
        return Delivery(self.evaluate(), void=dict.fromkeys(award.clients, "it did not answer"))


def play(allocator: Allocator, federation: Federation, purse: Purse = PURSE) -> list[RoundRecord]:
    steps = Session(allocator, bid_price_first(), federation).rounds(purse)
    return [step for step in steps if isinstance(step, RoundRecord)]


def trace(records: list[RoundRecord]) -> list[tuple[Offer, tuple[str, ...], tuple[int, ...]]]:
    """Return the offer, the winners and their payments of each round."""
    found = []
    for record in records:
        award = record.awarded.award
        found.append((record.awarded.offer, award.clients, award.payments))
    return found


def check_ask_is_pure(make: MakeAllocator) -> None:
    """Check that asking an allocator twice gives the same answer and changes nothing later."""
    asked_once = play(make(3), _federation(3))
    inner = make(3)

    class AskedTwice:
        def ask(self, purse: Purse) -> Offer:
            assert inner.ask(purse) == inner.ask(purse), "two answers to one question"
            return inner.ask(purse)

        def tell(self, record: RoundRecord) -> None:
            inner.tell(record)

    asked_twice = play(AskedTwice(), _federation(3))
    assert trace(asked_twice) == trace(asked_once), "asking changed a later decision"


def check_replay_rebuilds_it(make: MakeAllocator) -> None:
    """Check that a new allocator, told the stored rounds, answers as the one that played them."""
    _assert_rebuilt(make(5), play(make(5), _federation(5)))


def _assert_rebuilt(rebuilt: Allocator, records: list[RoundRecord]) -> None:
    for record, following in pairwise(records):
        rebuilt.tell(record)
        answer = rebuilt.ask(record.purse_after)
        assert answer == following.awarded.offer, (
            f"rebuilt, it answers otherwise in round {following.round}"
        )


def check_same_seed_same_run(make: MakeAllocator) -> None:
    """Check that two runs with the same seed are the same."""
    one = play(make(7), _federation(7))
    two = play(make(7), _federation(7))
    assert trace(one) == trace(two), "two runs differ"


def check_budget_and_deadline_hold(make: MakeAllocator) -> None:
    """Check that budget and deadline hold for scarce and ample, short and long purses.

    In the last round, with all money spent, the allocator must still answer with an offer.
    """
    for total, rounds in ((60, 30), (3, 30), (2000, 5), (0.5, 4)):
        allocator = make(1)
        purse = Purse.of(total, rounds)
        records = play(allocator, _federation(1), purse)
        promised = sum(sum(record.awarded.award.payments) for record in records)
        assert promised <= purse.total, "the budget is exceeded"  # everybody delivers here
        assert len(records) <= 1 + rounds, "the deadline is exceeded"
        answer = allocator.ask(replace(purse, spent=purse.total, round=rounds))
        assert isinstance(answer, Offer), (
            f"with the money gone, it answers {answer!r}; expected an Offer"
        )


def check_failing_clients_are_survived(make: MakeAllocator) -> None:
    """Check that an allocator copes with winners that do not deliver.

    It goes on, can be rebuilt from the stored rounds, and later spends the money that nobody got.
    """
    for rate in (0.3, 1.0):
        records = play(make(2), _federation(2, failure_rate=rate))
        assert any(record.delivery.void for record in records), (
            "it recruited nobody who could have failed"
        )
        _assert_rebuilt(make(2), records)
    records = play(make(2), _FailingAtFirst(_federation(2), 8))
    assert records[-1].purse_after.spent, (
        "after rounds in which nobody delivered, it pays nobody any more"
    )


@needs(Believer, "belief()")
def check_failing_clients_do_not_end_learning(make: MakeAllocator) -> None:
    """Check that beliefs still follow the results after rounds in which nobody delivered."""
    beliefs = []
    for a_max in (0.85, 0.4):
        allocator = make(9)
        play(allocator, _FailingAtFirst(_federation(9, a_max=a_max), 3))
        assert isinstance(allocator, Believer)
        beliefs.append(allocator.belief())
    assert beliefs[0] != beliefs[1], (
        "a task that is easy and one that is hard leave the same belief"
    )


def check_clients_may_come_and_go(make: MakeAllocator) -> None:
    """Check that an allocator recruits again after rounds with few bidders or none."""

    class Changing:
        def __init__(self) -> None:
            self._inner = _federation(4)
            self.evaluate = self._inner.evaluate
            self.train = self._inner.train

        def bids(self, round: int) -> Bids:
            present = (CLIENTS, 3, 1, 0, 2)[round % 5]
            absent = self._inner.bidders.clients[present:]
            return self._inner.bids(round).without(absent)

    records = play(make(4), Changing())
    assert any(record.n for record in records[4:]), (
        "after the round to which nobody came, it recruits nobody"
    )


@needs(Believer, "belief()")
def check_beliefs_are_plain(make: MakeAllocator) -> None:
    """Check that a belief has a finite mean and a deviation of at least 0 for every arm."""
    allocator = make(6)
    play(allocator, _federation(6))
    assert isinstance(allocator, Believer)
    belief = allocator.belief()
    assert len(belief.arms) == len(belief.mean) == len(belief.deviation), (
        "columns of different lengths"
    )
    assert np.isfinite(belief.mean).all(), "a mean that is no number"
    assert all(deviation >= 0 for deviation in belief.deviation), "a negative deviation"


@needs(Remembers, "memory() and restore()")
def check_memory_stands_in_for_menus(make: MakeAllocator) -> None:
    """Check that an allocator with its memory restored needs no menus in the rounds it is told.

    It must answer, remember and believe as the one that saw the menus.
    """
    for purse in (PURSE, replace(PURSE, max_rounds=8)):  # a short run is played to its deadline
        lived = make(8)
        rebuilt = make(8)
        records = play(lived, _federation(8), purse)
        assert isinstance(lived, Remembers)
        assert isinstance(rebuilt, Remembers)
        rebuilt.restore(json.loads(json.dumps(lived.memory())))
        for record in records:
            rebuilt.tell(strip(record))
        last = records[-1].purse_after
        if last.rounds_left:
            assert rebuilt.ask(last) == lived.ask(last), (
                "rebuilt from its memory, it answers otherwise"
            )
        assert rebuilt.memory() == lived.memory(), "rebuilt from its memory, it remembers otherwise"
        if isinstance(lived, Believer) and isinstance(rebuilt, Believer):
            assert rebuilt.belief() == lived.belief(), (
                "rebuilt from its memory, it believes otherwise"
            )


ALLOCATOR_CHECKS: tuple[Callable[[MakeAllocator], None], ...] = (
    check_ask_is_pure,
    check_replay_rebuilds_it,
    check_same_seed_same_run,
    check_budget_and_deadline_hold,
    check_failing_clients_are_survived,
    check_failing_clients_do_not_end_learning,
    check_clients_may_come_and_go,
    check_beliefs_are_plain,
    check_memory_stands_in_for_menus,
)

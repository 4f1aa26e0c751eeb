"""Every check fails on a part that breaks what it is about,
and says so where a part has nothing to check.
"""

import itertools
import unittest
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from bara import Award, Belief, Bids, Delivery, Evaluation, Menu, Offer, Purse
from bara.allocators import Bara, Even
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.errors import InvalidBidError, LedgerError
from bara.mechanisms import bid_price_first
from bara.mechanisms.properties import Case, exact_sum, spends_the_budget
from bara.protocols import Capabilities
from bara.simulator.synthetic import LearningCurve, SyntheticFederation
from bara.testing import (
    ALLOCATOR_CHECKS,
    CLIENTS,
    FEDERATION_CHECKS,
    MECHANISM_CHECKS,
    ContractHint,
    check_absurd_bids_cost_nobody_else,
    check_ask_is_pure,
    check_beliefs_are_plain,
    check_bids_are_repeatable,
    check_budget_and_deadline_hold,
    check_claims_hold,
    check_claims_hold_at_cents,
    check_clients_may_come_and_go,
    check_deliveries_account_for_winners,
    check_every_delivered_update_counts,
    check_failing_clients_are_survived,
    check_failing_clients_do_not_end_learning,
    check_memory_stands_in_for_menus,
    check_menu_is_pure,
    check_replay_rebuilds_it,
    check_same_seed_same_history,
    check_same_seed_same_run,
    check_small_rounds_are_served,
    check_tell_takes_any_round,
    check_training_again_comes_to_the_same,
    check_training_is_evaluated,
    check_unclaimed_has_a_counter_example,
    contract_test,
    select_checks,
)


@contextmanager
def hinted(*facts):
    """Expect a hint that names each of these facts."""
    with pytest.warns(ContractHint) as hints:
        yield
    said = [str(hint.message) for hint in hints]
    assert any(all(fact in one for fact in facts) for one in said), said


class Wrapped:
    """A part that does what another one does, but for what a test says."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


# --- allocators ----------------------------------------------------------------------------------


class Moody:
    """Never gives the same answer twice."""

    answers = itertools.count(5_000_000)

    def ask(self, _purse):
        return Offer.spend(next(Moody.answers))

    def tell(self, record):
        pass


class DividesByTheRoundsAfterThis(Moody):
    def ask(self, purse):
        return Offer.spend(purse.left // (purse.rounds_left - 1))


class WantsNothingForNoMoney(Moody):
    def ask(self, purse):
        return Offer.spend(purse.left) if purse.left else None


class DividesByThoseWhoDelivered(Moody):
    share = 2_000_000

    def ask(self, _purse):
        return Offer.spend(self.share)

    def tell(self, record):
        if record.awarded.award.n:
            self.share = 2_000_000 * record.awarded.award.n // len(record.delivery.delivered)


class CountsPromisesAsSpent(Moody):
    """For it the money of winners that did not deliver is gone."""

    def __init__(self):
        self.promised = 0

    def ask(self, purse):
        return Offer.spend(8_000_000) if self.promised < 12_000_000 and purse.left else Offer.stop()

    def tell(self, record):
        self.promised += record.awarded.award.cost


class GivesUpAfterAnEmptyRound(CountsPromisesAsSpent):
    def ask(self, _purse):
        return Offer.skip() if self.promised else Offer.recruit(3)

    def tell(self, record):
        self.promised += bool(record.round and not len(record.awarded.bids))


class NoLongerLearnsOnceOneFailed(Wrapped):
    failed = False

    def tell(self, record):
        self.failed = self.failed or bool(record.delivery.void)
        if not self.failed:
            self.inner.tell(record)


class BelievesLopsidedly(Wrapped):
    def belief(self):
        return Belief("odd", arms=(1, 2), mean=(0.5,), deviation=(0.1, 0.1))


class BelievesNoNumber(Wrapped):
    def belief(self):
        return Belief("odd", arms=(1,), mean=(float("nan"),), deviation=(0.1,))


class ForgetsWhatItRemembered(Wrapped):
    def restore(self, _memory):
        pass


def learner(seed):
    return Bara(CLIENTS, seed=seed, exploration_rounds=8, cost_average="menus")


@pytest.mark.parametrize(
    ("check", "make"),
    [
        (check_ask_is_pure, lambda _: Moody()),
        (check_replay_rebuilds_it, lambda _: Moody()),
        (check_same_seed_same_run, lambda _: Moody()),
        (check_budget_and_deadline_hold, lambda _: DividesByTheRoundsAfterThis()),
        (check_budget_and_deadline_hold, lambda _: WantsNothingForNoMoney()),
        (check_failing_clients_are_survived, lambda _: DividesByThoseWhoDelivered()),
        (check_failing_clients_are_survived, lambda _: CountsPromisesAsSpent()),
        (check_failing_clients_are_survived, lambda _: Moody()),
        (
            check_failing_clients_do_not_end_learning,
            lambda seed: NoLongerLearnsOnceOneFailed(learner(seed)),
        ),
        (check_clients_may_come_and_go, lambda _: GivesUpAfterAnEmptyRound()),
        (check_beliefs_are_plain, lambda seed: BelievesLopsidedly(learner(seed))),
        (check_beliefs_are_plain, lambda seed: BelievesNoNumber(learner(seed))),
        (check_memory_stands_in_for_menus, lambda seed: ForgetsWhatItRemembered(learner(seed))),
    ],
)
def test_an_allocator_that_breaks_it_fails(check, make):
    with pytest.raises((AssertionError, ZeroDivisionError, LedgerError)):
        check(make)


# --- mechanisms ----------------------------------------------------------------------------------


class PaysWhatTheyAsk(Wrapped):
    """Claims that asking one's cost is best, and pays everyone what it asks."""

    def menu(self, bids):
        menu = self.inner.menu(bids)
        ranked = bids.prices[menu.order]
        return Menu(bids, menu.order, ranked.cumsum()[: len(menu)], lambda n, _cap: ranked[:n])


class ClaimsNothing(Wrapped):
    claims = frozenset()


class TakesTurns(Wrapped):
    """Each menu begins with another client."""

    turns = itertools.count()

    def menu(self, bids):
        order = np.roll(np.arange(len(bids)), next(self.turns))
        ranked = bids.prices[order]
        return Menu(bids, order, ranked.cumsum(), lambda n, _cap: ranked[:n])


class NeedsTwo(Wrapped):
    def menu(self, bids):
        return self.inner.menu(
            Bids(bids.clients, bids.prices - bids.prices.min() + 1, bids.columns)
        )


class LearnsFromTheFirstThatDelivered(Wrapped):
    def tell(self, record):
        if record.awarded.award.n:
            next(iter(record.delivery.delivered))


class RefusesHighPrices(Wrapped):
    def menu(self, bids):
        if len(bids) and bids.prices.max() > 10**15:
            raise InvalidBidError("too much")
        return self.inner.menu(bids)


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (check_claims_hold, PaysWhatTheyAsk),
        (check_claims_hold_at_cents, PaysWhatTheyAsk),
        (check_unclaimed_has_a_counter_example, ClaimsNothing),
        (check_menu_is_pure, TakesTurns),
        (check_small_rounds_are_served, NeedsTwo),
        (check_tell_takes_any_round, LearnsFromTheFirstThatDelivered),
        (check_absurd_bids_cost_nobody_else, RefusesHighPrices),
    ],
)
def test_a_mechanism_that_breaks_it_fails(check, broken):
    with pytest.raises((AssertionError, ValueError, StopIteration, ContractHint)):
        check(lambda: broken(bid_price_first()))


def test_a_mechanism_that_claims_less_than_it_keeps_gets_a_hint_and_passes():
    class Modest(Wrapped):
        claims = bid_price_first().claims - {"budget-feasible"}

    with hinted("budget-feasible", "3000"):
        check_unclaimed_has_a_counter_example(lambda: Modest(bid_price_first()))


@pytest.mark.parametrize("check", [exact_sum, spends_the_budget])
def test_a_counter_example_prints_the_offer_that_was_tried(check):
    class PaysTwice(Wrapped):
        def menu(self, bids):
            menu = self.inner.menu(bids)
            return Menu(bids, menu.order, menu.costs, lambda n, _cap: np.full(n, 1))

    case = Case(Bids.of({"ann": 1, "bob": 2, "cat": 4}), Offer.recruit(2), Purse.of(100, 1))
    found = check(PaysTwice(bid_price_first()), case)
    tried = {exact_sum: "caps 2.00", spends_the_budget: "up to 100.00"}[check]
    assert f"offer: {tried};" in found.text


# --- federations ---------------------------------------------------------------------------------


def synthetic(seed, failure_rate=0.0):
    bidders = Bidders(6, Distribution.parse("uniform(0.5, 1.5)"), seed)
    return SyntheticFederation(bidders, LearningCurve(), seed, failure_rate)


class BidsAnew(Wrapped):
    asked = 0

    def bids(self, round):
        self.asked += 1
        return self.inner.bids(round + self.asked)


class Drifting(Wrapped):
    """Does not come to the same when trained again."""

    seeds = itertools.count()

    def __init__(self, inner):
        super().__init__(inner)
        self.drift = next(self.seeds) * 1e-6

    def train(self, round, award):
        delivery = self.inner.train(round, award)
        return replace(
            delivery, evaluation=Evaluation(delivery.evaluation.accuracy + self.drift, 1.0)
        )


class ForgetsAWinner(Wrapped):
    def train(self, round, award):
        delivery = self.inner.train(round, award)
        return replace(delivery, delivered=dict(list(delivery.delivered.items())[1:]))


class NamesStrangers(Wrapped):
    def train(self, round, award):
        delivery = self.inner.train(round, award)
        return replace(delivery, void={"stranger": "it was not asked"})


class NeverEvaluates(Wrapped):
    def train(self, round, award):
        return replace(self.inner.train(round, award), evaluation=synthetic(0).evaluate())


class EvaluatesTooEarly(Wrapped):
    """Reports the model that the round began with."""

    def train(self, round, award):
        before = self.inner.evaluate()
        return replace(self.inner.train(round, award), evaluation=before)


class DropsTheLastUpdate(Wrapped):
    """Names the last winner as delivered, and trains without it."""

    def train(self, round, award):
        used = Award(award.clients[:2], award.payments[:2])
        return Delivery.complete(award, self.inner.train(round, used).evaluation)


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (check_bids_are_repeatable, BidsAnew),
        (check_same_seed_same_history, Drifting),
        (check_training_again_comes_to_the_same, Drifting),
        (check_deliveries_account_for_winners, ForgetsAWinner),
        (check_deliveries_account_for_winners, NamesStrangers),
        (check_training_is_evaluated, NeverEvaluates),
        (check_every_delivered_update_counts, EvaluatesTooEarly),
        (check_every_delivered_update_counts, DropsTheLastUpdate),
    ],
)
def test_a_federation_that_breaks_it_fails(check, broken):
    with pytest.raises(AssertionError):
        check(lambda seed: broken(synthetic(seed)))


# --- what is not checked -------------------------------------------------------------------------


class WithRealBids(Wrapped):
    """Its bids are what its clients ask, whatever the seed."""

    def bids(self, round):
        return synthetic(0).bids(round)


def test_a_federation_whose_bids_do_not_depend_on_a_seed_gets_a_hint_and_passes():
    with hinted("seed", "bids"):
        check_same_seed_same_history(lambda seed: WithRealBids(synthetic(seed)))


class OnRealDevices(Wrapped):
    """Neither comes to the same again nor measures a loss."""

    capabilities = Capabilities(repeatable=False)

    def evaluate(self):
        return Evaluation(self.inner.evaluate().accuracy)


def test_every_check_that_needs_something_skips_a_part_without_it_and_says_why():
    for checks, make in (
        (ALLOCATOR_CHECKS, lambda _seed: Even()),
        (FEDERATION_CHECKS, lambda seed: OnRealDevices(synthetic(seed))),
    ):
        applying, skipped = select_checks(checks, make(0))
        assert skipped
        for check in checks:
            if check in applying:
                check(make)
                continue
            with pytest.raises(unittest.SkipTest) as raised:
                check(make)
            assert str(raised.value) in skipped[check.__name__]


def test_the_reasons_name_everything_that_is_lacking():
    skipped = select_checks(FEDERATION_CHECKS, OnRealDevices(synthetic(0))).skipped
    assert set(skipped) == {
        "check_same_seed_same_history",
        "check_training_again_comes_to_the_same",
        "check_every_delivered_update_counts",
    }
    assert "`Capabilities.repeatable`" in skipped["check_every_delivered_update_counts"]
    assert "loss" in skipped["check_every_delivered_update_counts"]


def test_every_check_there_is_stands_above_with_a_part_that_fails_it():
    broken = {
        mark.args[1][i][0]
        for test in (
            test_an_allocator_that_breaks_it_fails,
            test_a_mechanism_that_breaks_it_fails,
            test_a_federation_that_breaks_it_fails,
        )
        for mark in test.pytestmark
        for i in range(len(mark.args[1]))
    }
    assert broken == {*ALLOCATOR_CHECKS, *MECHANISM_CHECKS, *FEDERATION_CHECKS}


def test_the_contract_is_one_line_for_pytest():
    test = contract_test(MECHANISM_CHECKS, bid_price_first)
    (mark,) = test.pytestmark
    assert mark.args == ("check", list(MECHANISM_CHECKS))
    with pytest.raises(AssertionError):
        contract_test([check_ask_is_pure], lambda _seed: TwoAnswers())(check_ask_is_pure)


class TwoAnswers:
    """Asked twice, it gives two answers."""

    def __init__(self):
        self.asked = itertools.count()

    def ask(self, _purse):
        return Offer.recruit(next(self.asked) % 3)

    def tell(self, record):
        pass

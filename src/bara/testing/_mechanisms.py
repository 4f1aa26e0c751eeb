"""Checks of what every mechanism promises, made on random rounds and on very small ones."""

import warnings
from collections.abc import Callable

import numpy as np

from bara.mechanisms.audit import audit, columns_of
from bara.mechanisms.properties import EVERY_PROPERTY, random_case
from bara.protocols import Mechanism
from bara.records import AwardedRound, Bids, Delivery, Evaluation, Offer, Purse, RoundRecord
from bara.testing._selection import ContractHint

MakeMechanism = Callable[[], Mechanism]
"""Returns a new mechanism."""

_PURSE = Purse.of(60, 30)


def check_claims_hold(make: MakeMechanism) -> None:
    """Check that every claimed property holds on random rounds, also after learning from some."""
    for finding in audit(make, trials=100, names=make().claims):
        assert not finding.broken, f"{finding.name}: {finding.counter_example}"


def check_claims_hold_at_cents(make: MakeMechanism) -> None:
    """Check that every claimed property also holds if only whole cents can be paid."""
    for finding in audit(make, trials=25, names=make().claims, unit=10_000):
        assert not finding.broken, f"{finding.name}: {finding.counter_example}"


def check_unclaimed_has_a_counter_example(make: MakeMechanism) -> None:
    """Check that every unclaimed property fails in some round; warn about others."""
    for finding in audit(make, trials=3000, names=EVERY_PROPERTY - make().claims):
        if finding.counter_example is None:
            hint = (
                f"{finding.name} held in all {finding.trials} rounds that were tried; "
                "it could be claimed"
            )
            warnings.warn(ContractHint(hint), stacklevel=2)


def check_menu_is_pure(make: MakeMechanism) -> None:
    """Check that the same bids give the same menu, whatever order they arrived in."""
    mechanism = make()
    rng = np.random.default_rng(0)
    for _ in range(50):
        bids = random_case(rng, columns_of(mechanism)).bids
        shuffled = rng.permutation(len(bids))
        columns = {name: values[shuffled] for name, values in bids.columns.items()}
        clients = tuple(bids.clients[i] for i in shuffled)
        one = mechanism.menu(bids)
        two = mechanism.menu(Bids(clients, bids.prices[shuffled], columns))
        assert one.costs.tolist() == two.costs.tolist(), "the order of arrival changed a cost"
        for n in range(1, len(one) + 1):
            offer = Offer.caps([0] * (n - 1) + [one.cost(n)])
            purse = rich(one.cost(n))
            assert one.award(offer, purse) == two.award(offer, purse), "or an award"


def check_small_rounds_are_served(make: MakeMechanism) -> None:
    """Check that no bidder, one, two and equal bidders give a menu, though it may be empty."""
    mechanism = make()
    for prices in ({}, {"a": 1}, {"a": 1, "b": 2}, dict.fromkeys("abcde", 1)):
        columns = {name: dict.fromkeys(prices, 10.0) for name in columns_of(mechanism)}
        menu = mechanism.menu(Bids.of(prices, **columns))
        assert 0 <= len(menu) <= len(prices), "a menu longer than there are clients"
        award = menu.award(Offer.spend(10**9), rich(10**9))
        assert award.n <= len(prices), "more winners than clients"


def check_tell_takes_any_round(make: MakeMechanism) -> None:
    """Check that `tell` takes the initial evaluation, an empty round and a round of voids."""
    mechanism = make()
    mechanism.tell(RoundRecord.initial(_PURSE, Evaluation(0.1)))
    columns = {name: dict.fromkeys("abc", 10.0) for name in columns_of(mechanism)}
    bids = Bids.of({"a": 1, "b": 2, "c": 3}, **columns)
    for offer in (Offer.skip(), Offer.recruit(2)):
        awarded = AwardedRound.of(_PURSE, offer, mechanism.menu(bids))
        void = dict.fromkeys(awarded.award.clients, "gone")
        mechanism.tell(awarded.settle(Delivery(Evaluation(0.2), void=void)))


def rich(at_least: int) -> Purse:
    """Return a purse for one round that holds at least this much, in micro-units."""
    return Purse(total=max(at_least, 1), max_rounds=1)


MECHANISM_CHECKS: tuple[Callable[[MakeMechanism], None], ...] = (
    check_claims_hold,
    check_claims_hold_at_cents,
    check_unclaimed_has_a_counter_example,
    check_menu_is_pure,
    check_small_rounds_are_served,
    check_tell_takes_any_round,
)

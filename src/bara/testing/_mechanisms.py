"""What every mechanism promises, checked on random rounds and on the smallest."""

import warnings
from collections.abc import Callable

import numpy as np

from bara.mechanisms.audit import audit, columns_of
from bara.mechanisms.properties import EVERY_PROPERTY, random_case
from bara.protocols import Mechanism
from bara.records import AwardedRound, Bids, Delivery, Evaluation, Offer, Purse, RoundRecord
from bara.testing._selection import ContractHint

MakeMechanism = Callable[[], Mechanism]
_PURSE = Purse.of(60, 30)


def check_claims_hold(make: MakeMechanism) -> None:
    """Every property it claims holds on random rounds, and still does once it has learned from some."""
    for finding in audit(make, trials=100, names=make().claims):
        assert not finding.broken, f"{finding.name}: {finding.counter_example}"


def check_claims_hold_at_cents(make: MakeMechanism) -> None:
    """What it claims holds, too, where nothing below a cent can be paid."""
    for finding in audit(make, trials=25, names=make().claims, unit=10_000):
        assert not finding.broken, f"{finding.name}: {finding.counter_example}"


def check_unclaimed_has_a_counter_example(make: MakeMechanism) -> None:
    """What it does not claim fails somewhere; a hint where it does not, for then it could be claimed."""
    for finding in audit(make, trials=3000, names=EVERY_PROPERTY - make().claims):
        if finding.counter_example is None:
            hint = f"{finding.name} held in all {finding.trials} rounds that were tried; it could be claimed"
            warnings.warn(ContractHint(hint), stacklevel=2)


def check_menu_is_pure(make: MakeMechanism) -> None:
    """The same bids give the same menu, and the order in which they arrived does not matter."""
    mechanism = make()
    rng = np.random.default_rng(0)
    for _ in range(50):
        bids = random_case(rng, columns_of(mechanism)).bids
        shuffled = rng.permutation(len(bids))
        columns = {name: values[shuffled] for name, values in bids.columns.items()}
        again = Bids(tuple(bids.clients[i] for i in shuffled), bids.prices[shuffled], columns)
        one, two = mechanism.menu(bids), mechanism.menu(again)
        assert one.costs.tolist() == two.costs.tolist(), "the order of arrival changed a cost"
        for n in range(1, len(one) + 1):
            offer = Offer.caps([0] * (n - 1) + [one.cost(n)])
            assert one.award(offer, rich(one.cost(n))) == two.award(offer, rich(one.cost(n))), (
                "or an award"
            )


def check_small_rounds_are_served(make: MakeMechanism) -> None:
    """Nobody, one, two and all-equal bidders give a menu, though it may be empty."""
    mechanism = make()
    for prices in ({}, {"a": 1}, {"a": 1, "b": 2}, dict.fromkeys("abcde", 1)):
        columns = {name: dict.fromkeys(prices, 10.0) for name in columns_of(mechanism)}
        menu = mechanism.menu(Bids.of(prices, **columns))
        assert 0 <= len(menu) <= len(prices), "a menu longer than there are clients"
        assert menu.award(Offer.spend(10**9), rich(10**9)).n <= len(prices), (
            "more winners than clients"
        )


def check_tell_takes_any_round(make: MakeMechanism) -> None:
    """It can be told of the initial evaluation, an empty round and a round of voids."""
    mechanism = make()
    mechanism.tell(RoundRecord.initial(_PURSE, Evaluation(0.1)))
    bids = Bids.of(
        {"a": 1, "b": 2, "c": 3},
        **{name: dict.fromkeys("abc", 10.0) for name in columns_of(mechanism)},
    )
    for offer in (Offer.skip(), Offer.recruit(2)):
        awarded = AwardedRound.of(_PURSE, offer, mechanism.menu(bids))
        mechanism.tell(
            awarded.settle(
                Delivery(Evaluation(0.2), void=dict.fromkeys(awarded.award.clients, "gone"))
            )
        )


def rich(at_least: int) -> Purse:
    return Purse(total=max(at_least, 1), max_rounds=1)


MECHANISM_CHECKS: tuple[Callable[[MakeMechanism], None], ...] = (
    check_claims_hold,
    check_claims_hold_at_cents,
    check_unclaimed_has_a_counter_example,
    check_menu_is_pure,
    check_small_rounds_are_served,
    check_tell_takes_any_round,
)

"""Checks of what every mechanism promises, made on random rounds and on very small ones."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from bara.market import Market
from bara.mechanisms.audit import audit, columns_of
from bara.mechanisms.properties import EVERY_PROPERTY, random_case
from bara.protocols import LearnsNothing, Mechanism
from bara.records import (
    MAX_MONEY,
    AwardedRound,
    Bids,
    Delivery,
    Evaluation,
    Evidence,
    Offer,
    Purse,
    RoundRecord,
    show_money,
)
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


def check_absurd_bids_cost_nobody_else(make: MakeMechanism) -> None:
    """Check that no single bid stops a round, and that an absurd one is as good as left out.

    The market leaves out absurd bids before a mechanism sees them. All others, however large, the
    mechanism must take.
    """
    rng = np.random.default_rng(7)
    mechanism = make()
    for tried in range(20):
        number = 1 + tried % 10
        if number == 1:
            mechanism = make()
        case = random_case(rng, columns_of(mechanism), unit=(1, 10_000)[tried % 2])
        honest = case.bids
        if len(honest) < 2:
            continue
        market = Market(_Asks(case.offer), mechanism, case.purse)
        market.purse = replace(case.purse, round=number)
        alone = market.award(case.offer, honest)
        for bid in absurd_bids(honest, market.purse):
            awarded = market.award(case.offer, honest.joined(bid))
            assert _decided(awarded) == _decided(alone), f"{_told(bid)} changed the others' award"
        market.purse = replace(market.purse, total=MAX_MONEY)
        for bid in _large_bids(honest):
            market.award(case.offer, honest.joined(bid))
        if alone is not None:
            delivered = {client: Evidence(10, 2.0, 1.0) for client in alone.award.clients}
            mechanism.tell(alone.settle(Delivery(Evaluation(0.5), delivered)))


@dataclass(frozen=True)
class _Asks(LearnsNothing):
    """An allocator with a single offer."""

    offer: Offer

    def ask(self, _purse: Purse) -> Offer:
        return self.offer


def absurd_bids(honest: Bids, purse: Purse) -> Iterator[Bids]:
    """Yield single bids that no market lets into a round, whatever the mechanism.

    Args:
        honest: The bids of the others, at least two.
        purse: The purse before the round.
    """
    most = MAX_MONEY >> (len(honest) + 1).bit_length()
    for price in (purse.total + 1, 1000 * purse.total, most):
        yield _one_bid(honest, -(-price // honest.unit) * honest.unit)
    for name, values in honest.columns.items():
        for number in (101 * float(values.max()), 1e13, 1.7e308, 1e-10, 5e-324):
            yield _one_bid(honest, honest.unit, {name: number})


def _large_bids(honest: Bids) -> Iterator[Bids]:
    """Yield single bids that are as large as a market with all money lets into a round."""
    most = MAX_MONEY >> (len(honest) + 1).bit_length()
    for price in (honest.unit, most - most % honest.unit):
        yield _one_bid(honest, price)
        for name, values in honest.columns.items():
            for number in (99 * float(values.min()), 1e-9):
                yield _one_bid(honest, price, {name: number})


def _one_bid(like: Bids, price: int, columns: Mapping[str, float] = MappingProxyType({})) -> Bids:
    """Return the bid of one client, with the columns of other bids, 1 each unless given."""
    values = {name: np.array([columns.get(name, 1.0)]) for name in like.columns}
    most = MAX_MONEY >> (len(like) + 1).bit_length()
    price = min(price, most - most % like.unit)
    return Bids(("a stranger",), np.array([price], np.int64), values, like.unit)


def _decided(awarded: AwardedRound | None) -> tuple[object, ...] | None:
    """Return what a round costs and who wins it; None where the run ends."""
    if awarded is None:
        return None
    return awarded.award, awarded.costs.tolist(), awarded.bids.clients


def _told(bid: Bids) -> str:
    """Return a bid in words."""
    columns = {name: float(values[0]) for name, values in bid.columns.items()}
    return f"a bid of {show_money(int(bid.prices[0]))} with {columns}"


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
    check_absurd_bids_cost_nobody_else,
)

"""The properties find what deliberately broken mechanisms do wrong, and nothing in honest ones."""

import re
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bara import Award, Bids, Delivery, Evaluation, Evidence, Menu, Offer, Purse
from bara.errors import InvalidOfferError
from bara.mechanisms import QualityAuction, bid_price_first
from bara.mechanisms.a_fl import AFL
from bara.mechanisms.audit import audit, regret
from bara.mechanisms.fair import Fair
from bara.mechanisms.fl_market import FLMarket
from bara.mechanisms.fmore import FMore
from bara.mechanisms.properties import EVERY_PROPERTY, PROPERTIES, Case
from bara.mechanisms.proportional_share import ProportionalShare
from bara.mechanisms.rrafl import Rrafl
from bara.records import AwardedRound


@dataclass(frozen=True)
class Broken:
    """Bid price first with one thing wrong."""

    fault: str
    claims: frozenset[str] = field(default=EVERY_PROPERTY)

    def menu(self, bids):
        honest = bid_price_first().menu(bids)
        prices = bids.prices[honest.order]
        pay = {
            "first price": lambda n, _cap: prices[:n],
            "the wrong loser's price": lambda n, _cap: np.full(
                n, prices[min(n + 1, len(prices) - 1)]
            ),
            "too little": lambda n, _cap: np.full(n, max(prices[n - 1] - 1, 1)),
            "overspending": lambda n, _cap: np.full(n, 2 * prices[n]),
            "lying about costs": lambda n, _cap: np.full(n, prices[n]),
        }[self.fault]
        if self.fault in ("overspending", "lying about costs"):
            factor = 1 if self.fault == "overspending" else 0.5
            costs = np.maximum((honest.costs * factor).astype(np.int64), 1)
        else:
            costs = np.array([int(pay(n, 0).sum()) for n in range(1, len(prices))], np.int64)
        return Menu(bids, honest.order, costs, pay)

    def tell(self, record):
        pass


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("first price", {"truthful-in-price"}),
        ("the wrong loser's price", {"truthful-in-price"}),
        ("too little", {"individually-rational"}),
        ("overspending", {"budget-feasible", "exact-sum"}),
        ("lying about costs", {"exact-sum"}),
    ],
)
def test_an_audit_finds_the_fault(fault, found):
    broken = {
        finding.name
        for finding in audit(partial(Broken, fault), trials=300, names=found)
        if finding.broken
    }
    assert found == broken


@pytest.mark.parametrize("claims", [EVERY_PROPERTY, frozenset()], ids=["claimed", "not claimed"])
def test_an_underpayment_is_a_finding_whatever_is_claimed(claims):
    """Winners of the smallest price are paid nothing, an award that the records refuse."""

    class Underpaid:
        def __init__(self):
            self.claims = claims

        def menu(self, bids):
            honest = bid_price_first().menu(bids)
            return Menu(bids, honest.order, honest.costs, lambda n, _cap: np.zeros(n, np.int64))

        def tell(self, record):
            pass

    findings = list(audit(Underpaid, trials=50))
    assert {finding.name for finding in findings if finding.broken} == EVERY_PROPERTY
    assert all("0.00" in finding.counter_example for finding in findings)
    assert all("costs: client-0" in finding.counter_example for finding in findings)


def test_an_audit_finds_who_breaks_a_promise_only_after_it_has_learned():
    """Honest until it has been told of three rounds: then winners are paid what they ask."""

    class Spoiled:
        claims = EVERY_PROPERTY - {"spends-the-budget"}

        def __init__(self):
            self.rounds = []

        def menu(self, bids):
            return (Broken("first price") if len(self.rounds) >= 3 else bid_price_first()).menu(
                bids
            )

        def tell(self, record):
            self.rounds.append(record)

    (finding,) = audit(Spoiled, names={"truthful-in-price"})
    assert finding.broken
    assert re.match(r"after [3-9] rounds, client-\d has a cost of", finding.counter_example)


def test_what_an_audit_tells_holds_evidence_and_failures():
    told = []

    class Listening:
        claims = frozenset({"monotone"})
        menu = staticmethod(bid_price_first().menu)
        tell = staticmethod(told.append)

    assert not next(audit(Listening, trials=60, names={"monotone"})).broken
    assert [record.round for record in told] == [*range(1, 11)] * 6
    evidence = [one for record in told for one in record.delivery.delivered.values()]
    assert any(one.loss_after < one.loss_before for one in evidence)
    assert any(one.loss_after > one.loss_before for one in evidence)
    assert any(record.delivery.void for record in told)


def test_a_counter_example_names_client_and_amounts():
    finding = next(
        f for f in audit(partial(Broken, "first price")) if f.name == "truthful-in-price"
    )
    assert "client-" in finding.counter_example
    assert "gains" in finding.counter_example
    assert "costs: client-0" in finding.counter_example


def test_a_cost_above_its_cap_is_found_in_a_mechanism_that_ignores_the_offer():
    class Deaf:
        claims = EVERY_PROPERTY

        def menu(self, bids):
            inner = bid_price_first().menu(bids)

            class DeafMenu:
                def award(self, _offer, _purse):
                    return inner.award(Offer.recruit(len(inner)), Purse(2**62, 1))

            return DeafMenu()

    case = Case(Bids.of({"a": 1, "b": 2, "c": 3}), Offer.spend(1), Purse.of(100, 1))
    assert PROPERTIES["budget-feasible"](Deaf(), case).text.startswith(
        "6.00 is paid to 2 clients, but its cap is 0.000001"
    )


def test_who_loses_by_asking_less_shows_that_a_mechanism_is_not_monotone():
    class DearestFirst:
        claims = EVERY_PROPERTY

        def menu(self, bids):
            dearest = np.argsort(-bids.prices)
            return Menu(bids, dearest, np.array([1]), lambda n, _cap: np.ones(n, np.int64))

    case = Case(Bids.of({"a": 1, "b": 2, "c": 3}), Offer.recruit(1), Purse.of(100, 1))
    assert "c wins at 3.00 but not at " in PROPERTIES["monotone"](DearestFirst(), case).text


def test_more_clients_for_less_show_that_a_mechanism_is_not_monotone():
    class Discount:
        claims = EVERY_PROPERTY

        def menu(self, bids):
            costs = np.array([3_000_000, 2_000_000])
            return Menu(bids, np.arange(3), costs, lambda n, _cap: np.ones(n, np.int64))

    case = Case(Bids.of({"a": 1, "b": 2, "c": 3}), Offer.skip(), Purse.of(100, 1))
    found = PROPERTIES["monotone"](Discount(), case).text
    assert "recruiting 1 costs 3.00 but 2 only 2.00" in found


def test_nobody_regrets_the_truth_where_everyone_is_paid_the_first_losers_price():
    found = regret(bid_price_first(), rounds=20, clients=5)
    assert (found.mean, found.most) == (0, 0)


@cache
def numbers(least, most):
    return st.integers(least, most)


@cache
def columns(count, values):
    return st.lists(values, min_size=count, max_size=count)


SCORES = st.sampled_from([0.1, 1 / 3, 1.0, 2.0, 7.0])
SCALES = st.sampled_from([3, 30, 10**6])
SHORTFALLS = st.sampled_from(["shrink", "stop"])


@st.composite
def cases(draw):
    """A round; strategies are made once each, or making them would take longer than the round."""
    count = draw(numbers(1, 7))
    prices = np.array(draw(columns(count, numbers(1, draw(SCALES)))))
    scores = {name: np.array(draw(columns(count, SCORES))) for name in ("samples", "epsilon")}
    most = int(prices.max()) * count * 3
    shortfall, kind = draw(SHORTFALLS), draw(numbers(0, 2))
    if kind == 0:
        offer = Offer.recruit(draw(numbers(0, count + 1)), shortfall=shortfall)
    elif kind == 1:
        offer = Offer.spend(draw(st.integers(0, most)), shortfall=shortfall)
    else:
        caps = [draw(st.integers(0, most)) for _ in range(draw(numbers(0, count + 1)))]
        offer = Offer.caps(caps, shortfall=shortfall)
    return Case(
        Bids(tuple("abcdefg"[:count]), prices, scores), offer, Purse(draw(st.integers(1, most)), 1)
    )


def taught(mechanism):
    """One that has learned: b improved much, c little, d not at all."""
    clients = tuple("abcd")
    bids = Bids(clients, np.ones(4, np.int64))
    awarded = AwardedRound(
        Purse(100, 9), Offer.recruit(4), bids, bids.prices, Award(clients, (1,) * 4)
    )
    losses = {"a": 0.7, "b": 0.2, "c": 0.9, "d": 1.0}
    mechanism.tell(
        awarded.settle(
            Delivery(Evaluation(0.5), {c: Evidence(1, 1.0, loss) for c, loss in losses.items()})
        )
    )
    return mechanism


STRIDE = 60
"""Of the lies worth trying, a property test tries one in so many a round.

The contract checks try them all.
"""

FIELD = {
    "bid price first": bid_price_first(),
    "bid price first with reserve": bid_price_first(reserve="0.00001"),
    "quality": QualityAuction("samples"),
    "quality with reserve": QualityAuction("samples", 0.00002),
    "FAIR": taught(Fair()),
    "RRAFL": taught(Rrafl()),
    "FMore": FMore(),
    "proportional share": ProportionalShare(),
    "proportional share by quality": ProportionalShare("samples"),
    "A_FL": taught(AFL(clients=1)),
    "FL-Market": FLMarket(),
    "FL-Market, All-in": FLMarket(auction="all-in"),
    "FL-Market, DM-RegretNet": FLMarket(auction="dm-regretnet"),
}


@pytest.mark.parametrize("who", FIELD)
@settings(max_examples=max(500, settings.default.max_examples))
@given(case=cases(), start=st.integers(0, STRIDE - 1))
def test_property_every_mechanism_keeps_what_it_promises(who, case, start):
    thinned = replace(case, lies=slice(start, None, STRIDE))
    for name in FIELD[who].claims:
        assert PROPERTIES[name](FIELD[who], thinned) is None


@pytest.mark.parametrize("who", FIELD)
@settings(max_examples=30)
@given(case=cases())
def test_property_what_one_client_is_paid_is_what_the_award_pays_it(who, case):
    menu = FIELD[who].menu(case.bids)
    award = menu.award(case.offer, case.purse)
    paid = dict(zip(award.clients, award.payments, strict=True))
    for client in case.bids.clients:
        assert menu.payment_of(client, case.offer, case.purse) == paid.get(client, 0)


@pytest.mark.parametrize(
    ("who", "broken"), [("FMore", "truthful-in-price"), ("FL-Market, All-in", "truthful-in-price")]
)
def test_an_audit_shows_who_gains_by_lying(who, broken):
    finding = next(iter(audit(lambda: FIELD[who], names={broken})))
    assert not finding.claimed
    assert "by asking" in finding.counter_example


def test_choosing_n_after_looking_at_the_bids_is_not_truthful():
    """Costs 1, 2, 3; worth V(1) = 10, V(2) = 13.5.

    Honest: n = 1, b loses. b asks 2.9: n = 2, and b is paid 3.
    """
    worth = {1: 10.0, 2: 13.5}

    def look_then_choose(prices):
        menu = bid_price_first().menu(Bids.of(prices))
        best = max(worth, key=lambda n: worth[n] - menu.cost(n) / 1e6)
        return menu.award(Offer.recruit(best), Purse.of(100, 1))

    honest = look_then_choose({"a": 1, "b": 2, "c": 3})
    lying = look_then_choose({"a": 1, "b": "2.9", "c": 3})
    assert honest.clients == ("a",)
    assert lying == Award(("a", "b"), (3_000_000, 3_000_000))


def test_what_it_claims_holds_is_said_with_the_number_of_trials():
    findings = list(audit(bid_price_first, trials=50))
    assert {f.name for f in findings} == EVERY_PROPERTY
    assert not any(f.broken for f in findings)
    assert all(f.trials == 50 and f.counter_example is None for f in findings if f.claimed)


def test_an_impossible_n_is_not_silently_priced():
    with pytest.raises(InvalidOfferError):
        bid_price_first().menu(Bids.of({"a": 1, "b": 1})).cost(0)

"""Every mechanism there is keeps the same contract, and promises exactly what holds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bara import ALLOCATORS, Bids, Market, Offer, Purse
from bara.mechanisms import MECHANISMS
from bara.records import MAX_MONEY
from bara.testing import MECHANISM_CHECKS

VARIANTS = {
    "bid-price-first": [{}, {"reserve": 0.00001}],
    "quality": [{}, {"quality": "samples"}, {"quality": "samples", "reserve": 0.00002}],
    "fair": [{}, {"reserve": 0.00002}],
    "fl-market": [
        {},
        {"level": "client"},
        {"auction": "all-in"},
        {"auction": "dm-regretnet"},
        {"optimal": False},
    ],
    "rrafl": [{}, {"reserve": 0.00002}],
    "fmore": [
        {},
        *(
            {"columns": ["samples", "speed"], "form": form}
            for form in ("additive", "cobb-douglas", "min")
        ),
    ],
    "turns": [{}, {"quality": "samples"}, {"reserve": 0.00001}],
    "standing": [{"reserve": 1}, {"reserve": 0.00001}],
    "proportional-share": [{}, {"quality": "samples"}],
    "posted-price": [{"price": 1}, {"price": 0.000002}],
    "tariff": [{"per_round": 1}, {"per_round": "0.000001", "per_sample": "0.0000005"}],
    "a-fl": [{}, {"clients": 2, "reserve": 0.00002}],
}
CASES = [(name, options) for name in MECHANISMS.names() for options in VARIANTS.get(name, [{}])]


@pytest.mark.parametrize("check", MECHANISM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_every_mechanism(name, options, check):
    check(lambda: MECHANISMS.build(name, options))


ABSURD = st.one_of(
    st.tuples(st.just("price"), st.integers(1, MAX_MONEY >> 5)),
    st.tuples(
        st.sampled_from(["samples", "speed", "epsilon"]),
        st.one_of(
            st.floats(10_001, 1.7e308), st.floats(5e-324, 9e-10, exclude_max=True), st.just(1e300)
        ),
    ),
)


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@settings(max_examples=15, deadline=None)
@given(
    honest=st.lists(
        st.tuples(st.integers(1, 10**7), *[st.floats(1, 100)] * 3), min_size=2, max_size=8
    ),
    absurd=ABSURD,
    offer=st.one_of(st.integers(1, 9).map(Offer.recruit), st.integers(0, 10**8).map(Offer.spend)),
)
def test_property_one_absurd_bid_leaves_the_others_award_as_it_were_without_it(
    name, options, honest, absurd, offer
):
    purse = Purse(10**8, 10)
    what, number = absurd
    eve = {"price": 1, "samples": 1.0, "speed": 1.0, "epsilon": 1.0, what: number}
    if what == "price":
        eve["price"] += purse.total

    def awarded(*bids):
        clients = [f"client-{place}" for place in range(len(bids))]
        prices, *values = map(np.array, zip(*bids, strict=True))
        columns = dict(zip(("samples", "speed", "epsilon"), values, strict=True))
        made = Bids(tuple(clients), prices, columns)
        market = Market(ALLOCATORS.build("even", {}), MECHANISMS.build(name, options), purse)
        return market.award(offer, made)

    alone = awarded(*honest)
    attacked = awarded(*honest, tuple(eve.values()))
    if alone is None:  # the money cannot pay what the offer wants: the run ends, with or without
        assert attacked is None
        return
    assert attacked.award == alone.award
    assert attacked.costs.tolist() == alone.costs.tolist()
    assert list(attacked.left_out.reasons) == [f"client-{len(honest)}"]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_of_equals_those_go_first_whom_the_bids_prefer(name, options):
    one = dict.fromkeys("abcd", 1)
    tie = {"a": 3, "b": 1, "c": 4, "d": 2}
    bids = Bids.of(dict.fromkeys("abcd", "0.000001"), samples=one, speed=one, epsilon=one, tie=tie)
    menu = MECHANISMS.build(name, options).menu(bids)
    assert "".join(menu.bids.clients[place] for place in menu.order) == "bdac"

"""The vectorised auction against the paper's formulas in exact fractions, one client at a time."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bara import Bids, Offer, Purse
from bara.mechanisms import capped_menu, critical_menu

prices = st.one_of(st.integers(1, 5), st.integers(1, 10**6), st.integers(1, 2**50))
qualities = st.one_of(st.sampled_from([1.0, 2.0, 3.0, 1 / 3]), st.floats(0.1, 10))


@st.composite
def rounds(draw):
    count = draw(st.integers(1, 8))
    bids = Bids(
        tuple("abcdefgh"[:count]), np.array(draw(st.lists(prices, min_size=count, max_size=count)))
    )
    quality = draw(st.none() | st.lists(qualities, min_size=count, max_size=count))
    return bids, quality, draw(st.none() | prices)


def naive(bids, quality, reserve):
    """[(winners, payments)] for n = 1, 2, ..."""
    q = [Fraction(x) for x in (quality or [1.0] * len(bids))]
    ranked = sorted(range(len(bids)), key=lambda i: (int(bids.prices[i]) / q[i], bids.clients[i]))
    units = [int(bids.prices[i]) / q[i] for i in ranked]
    if reserve is not None:
        ranked = [i for i, unit in zip(ranked, units, strict=True) if unit <= reserve]
        units = [unit for unit in units if unit <= reserve] + [Fraction(reserve)]
    return [
        (
            tuple(bids.clients[i] for i in ranked[:n]),
            tuple(int(q[i] * units[n] // 1) for i in ranked[:n]),
        )
        for n in range(1, len(units))
    ]


@given(rounds())
def test_property_the_fast_auction_is_the_formula_to_the_micro_unit(case):
    bids, quality, reserve = case
    menu = critical_menu(bids, None if quality is None else np.array(quality), reserve)
    expected = naive(bids, quality, reserve)
    assert len(menu) == len(expected)
    for n, (winners, payments) in enumerate(expected, 1):
        cost = menu.cost(n)
        award = menu.award(Offer.caps([0] * (n - 1) + [cost]), Purse(2**62, 1))
        assert (award.clients, award.payments, cost) == (winners, payments, sum(payments))
        assert cost <= menu.costs[n - 1] <= cost + 2 * n + cost * (n + 4) * 2.0**-48


@given(rounds(), st.data())
def test_property_what_a_cap_on_payments_costs_is_the_formula_to_the_micro_unit(case, drawn):
    bids, _, _ = case
    unit = drawn.draw(st.sampled_from([1, 2, 100]))
    bids = Bids(bids.clients, bids.prices * unit).in_units_of(unit)
    q = drawn.draw(st.lists(qualities, min_size=len(bids), max_size=len(bids)))
    most = drawn.draw(st.integers(int(bids.prices.min()), 2 * int(bids.prices.max())))
    menu = capped_menu(bids, np.array(q), most)
    most -= most % unit
    inside = [i for i in range(len(bids)) if bids.prices[i] <= most]
    ranked = sorted(inside, key=lambda i: (int(bids.prices[i]) / Fraction(q[i]), i))
    units = [int(bids.prices[i]) / Fraction(q[i]) for i in ranked]
    units.append(most / Fraction(min(q[i] for i in inside)))
    assert len(menu) == len(ranked)
    for n in range(1, len(menu) + 1):
        payments = [min(Fraction(q[i]) * units[n] // unit * unit, most) for i in ranked[:n]]
        cost = menu.cost(n)
        award = menu.award(Offer.caps([0] * (n - 1) + [cost]), Purse(2**62, 1))
        assert award.clients == tuple(bids.clients[i] for i in ranked[:n])
        assert list(award.payments) == payments
        assert cost == sum(payments) <= menu.costs[n - 1]


@given(rounds(), st.integers(0, 2**8))
def test_property_clients_that_are_not_admitted_might_as_well_not_bid(case, drawn):
    bids, quality, reserve = case
    admitted = np.array([bool(drawn >> i & 1) for i in range(len(bids))], bool)
    scores = None if quality is None else np.array(quality)
    menu = critical_menu(bids, scores, reserve, admitted)
    outsiders = [
        client for client, inside in zip(bids.clients, admitted, strict=True) if not inside
    ]
    kept = None if scores is None else scores[admitted]
    alone = critical_menu(bids.without(outsiders), kept, reserve)
    assert [menu.cost(n) for n in range(1, len(menu) + 1)] == [
        alone.cost(n) for n in range(1, len(alone) + 1)
    ]


@pytest.mark.parametrize("price", [10**6, 2**40, 2**50])
def test_unit_prices_that_floats_cannot_tell_apart_are_ordered_exactly(price):
    """(price + 1) / 3 and price / 3, scaled so that the quotients round to the same float."""
    scale = 2.0**52 + 1
    bids = Bids(("a", "b"), np.array([price + 1, price]))
    quality = np.array([scale + 1, scale]) if price == 2**50 else np.array([3.0, 3.0])
    menu = critical_menu(bids, quality)
    best = min(
        range(2), key=lambda i: (Fraction(int(bids.prices[i])) / Fraction(float(quality[i])), i)
    )
    assert menu.order[0] == best


def test_a_menu_of_many_bids_equals_the_naive_one():
    rng = np.random.default_rng(0)
    names = tuple(f"c{i:05d}" for i in range(3000))
    bids = Bids(names, rng.integers(1, 1000, 3000))
    menu = critical_menu(bids)
    ranked = sorted(range(3000), key=lambda i: (bids.prices[i], i))
    assert menu.order.tolist() == ranked
    assert menu.costs.tolist() == [n * int(bids.prices[ranked[n]]) for n in range(1, 3000)]

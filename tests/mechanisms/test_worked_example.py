"""Five clients by hand. Prices: ann 3, bob 1, cat 2, dan 5, eve 4."""

from fractions import Fraction

import numpy as np
import pytest
from refusals import refused

from bara import Bids, Offer, Purse
from bara.errors import ConfigError, InvalidOfferError
from bara.mechanisms import QualityAuction, bid_price_first
from bara.mechanisms.a_fl import AFL
from bara.mechanisms.fair import Fair
from bara.mechanisms.rrafl import Rrafl
from bara.records import MAX_MONEY

PRICES = {"ann": 3, "bob": 1, "cat": 2, "dan": 5, "eve": 4}
RICH = Purse.of(1000, 1)


def units(award):
    return dict(zip(award.clients, (payment / 1e6 for payment in award.payments), strict=True))


def test_bid_price_first_pays_everyone_the_first_losers_price():
    """Sorted: bob 1, cat 2, ann 3, eve 4, dan 5. B(1) = 2, B(2) = 2*3, B(3) = 3*4, B(4) = 4*5."""
    menu = bid_price_first().menu(Bids.of(PRICES))
    assert (menu.costs / 1e6).tolist() == [2, 6, 12, 20]
    assert units(menu.award(Offer.recruit(1), RICH)) == {"bob": 2}
    assert units(menu.award(Offer.recruit(2), RICH)) == {"bob": 3, "cat": 3}
    assert units(menu.award(Offer.recruit(3), RICH)) == {"bob": 4, "cat": 4, "ann": 4}
    assert units(menu.award(Offer.recruit(4), RICH)) == {"bob": 5, "cat": 5, "ann": 5, "eve": 5}


def test_quality_per_price_pays_in_proportion_to_quality():
    """Quality: ann 6, bob 1, cat 1, dan 5, eve 2. Unit prices: ann .5, bob 1, dan 1, cat 2, eve 2.

    bob before dan and cat before eve by name. B(1) = 6*1; B(2) = (6+1)*1; B(3) = (6+1+5)*2; B(4) =
    (6+1+5+1)*2.
    """
    quality = {"ann": 6, "bob": 1, "cat": 1, "dan": 5, "eve": 2}
    menu = QualityAuction(quality="samples").menu(Bids.of(PRICES, samples=quality))
    assert [menu.cost(n) / 1e6 for n in (1, 2, 3, 4)] == [6, 7, 24, 26]
    assert units(menu.award(Offer.recruit(3), RICH)) == {"ann": 12, "bob": 2, "dan": 10}
    assert units(menu.award(Offer.recruit(4), RICH)) == {"ann": 12, "bob": 2, "dan": 10, "cat": 2}


def test_equals_are_ranked_by_the_column_that_settles_ties():
    """As above, but dan goes before bob and eve before cat.

    Of equal prices the lower number wins, at the same cost.
    """
    quality = {"ann": 6, "bob": 1, "cat": 1, "dan": 5, "eve": 2}
    tie = {"ann": 1, "bob": 5, "cat": 4, "dan": 2, "eve": 3}
    menu = QualityAuction(quality="samples").menu(Bids.of(PRICES, samples=quality, tie=tie))
    assert menu.award(Offer.recruit(4), RICH).clients == ("ann", "dan", "bob", "eve")
    equal = bid_price_first().menu(Bids.of(dict.fromkeys(PRICES, 1), tie=tie))
    assert units(equal.award(Offer.recruit(3), RICH)) == {"ann": 1, "dan": 1, "eve": 1}
    capped = AFL(reserve=2).menu(Bids.of(dict.fromkeys(PRICES, 1), tie=tie))
    assert capped.award(Offer.recruit(2), RICH).clients == ("ann", "dan")


def test_payments_round_down_to_the_micro_unit():
    """ann is paid 1 * 1 / 3 = 0.333333 (3), which is still at least the 0.1 she asked."""
    bids = Bids.of({"ann": "0.1", "bob": 1}, samples={"ann": 1, "bob": 3})
    menu = QualityAuction(quality="samples").menu(bids)
    assert menu.award(Offer.recruit(1), RICH).payments == (333_333,)
    assert menu.cost(1) == 333_333


@pytest.mark.parametrize(
    ("budget", "n"),
    [("1.999999", 0), (2, 1), ("5.999999", 1), (6, 2), (12, 3), (19, 3), (20, 4), (99, 4)],
)
def test_a_budget_buys_the_largest_n_it_covers(budget, n):
    menu = bid_price_first().menu(Bids.of(PRICES))
    assert menu.award(Offer.spend(int(float(budget) * 1e6)), RICH).n == n


def test_caps_buy_the_largest_n_whose_own_cap_covers_it():
    """caps 2, 5, 13, 19 against costs 2, 6, 12, 20: n = 3, though 2 and 4 are refused."""
    menu = bid_price_first().menu(Bids.of(PRICES))
    assert menu.award(Offer.caps([2_000_000, 5_000_000, 13_000_000, 19_000_000]), RICH).n == 3


def test_the_purse_clamps_and_the_offer_says_what_then():
    menu = bid_price_first().menu(Bids.of(PRICES))
    shrunk = menu.award(Offer.recruit(4), Purse.of(15, 1))
    stopped = menu.award(Offer.recruit(4, shortfall="stop"), Purse.of(15, 1))
    assert (shrunk.n, shrunk.fell_short) == (3, True)
    assert (stopped.n, stopped.fell_short) == (0, True)
    assert menu.award(Offer.recruit(3, shortfall="stop"), Purse.of(15, 1)).n == 3


def test_an_n_that_is_not_served_is_no_shortfall():
    """Nine are wanted, four can be served: a matter of clients, not of money."""
    award = bid_price_first().menu(Bids.of(PRICES)).award(Offer.recruit(9, shortfall="stop"), RICH)
    assert (award.n, award.fell_short) == (4, False)


def test_a_reserve_price_is_a_virtual_last_bid():
    """Reserve 4.5: dan (5) is out, the other four can all be recruited,
    the last at the reserve itself.
    """
    menu = bid_price_first(reserve="4.5").menu(Bids.of(PRICES))
    assert (menu.costs / 1e6).tolist() == [2, 6, 12, 18]
    assert units(menu.award(Offer.recruit(4), RICH)) == dict.fromkeys(
        ("bob", "cat", "ann", "eve"), 4.5
    )


def test_a_reserve_price_bounds_a_unit_of_quality():
    """Unit prices ann .5, bob 1; reserve .75 a unit: only ann, at 6 * .75."""
    bids = Bids.of({"ann": 3, "bob": 1}, samples={"ann": 6, "bob": 1})
    menu = QualityAuction(quality="samples", reserve=0.75).menu(bids)
    assert len(menu) == 1
    assert menu.cost(1) == 4_500_000


def test_a_lone_client_can_be_recruited_only_with_a_reserve_price():
    lone = Bids.of({"ann": 1})
    assert len(bid_price_first().menu(lone)) == 0
    assert units(bid_price_first(reserve=2).menu(lone).award(Offer.recruit(1), RICH)) == {"ann": 2}
    assert len(bid_price_first(reserve="0.5").menu(lone)) == 0


def test_two_clients_are_one_winner_at_the_others_price():
    menu = bid_price_first().menu(Bids.of({"ann": 1, "bob": 2}))
    assert len(menu) == 1
    assert units(menu.award(Offer.recruit(5), RICH)) == {"ann": 2}


def test_equal_bids_go_to_the_names_that_sort_first():
    menu = bid_price_first().menu(Bids.of(dict.fromkeys(("zoe", "bob", "ann", "cat"), 1)))
    assert menu.award(Offer.recruit(2), RICH).clients == ("ann", "bob")
    assert (menu.costs / 1e6).tolist() == [1, 2, 3]


def test_a_cost_beyond_the_menu_is_refused():
    with refused(InvalidOfferError, "1 to 4", "5"):
        bid_price_first().menu(Bids.of(PRICES)).cost(5)


def test_a_reserve_price_of_zero_is_refused():
    with refused(ConfigError, "reserve price", "positive", "0"):
        QualityAuction(reserve=0)


def test_a_menu_ends_before_a_cost_that_no_purse_pays():
    bids = Bids.of({"ann": 1, "bob": 1, "cat": 2}, samples={"ann": 9, "bob": 3, "cat": 2.0**-30})
    menu = QualityAuction(quality="samples").menu(bids)
    assert len(menu) == 2
    assert menu.cost(1) == 3_000_000
    assert menu.cost(2) == 24_000_000 * 2**30
    bids = Bids.of({"ann": 1, "bob": 1, "cat": 2}, samples={"ann": 9, "bob": 3, "cat": 2.0**-40})
    assert len(QualityAuction(quality="samples").menu(bids)) == 1


def test_the_highest_payment_may_be_just_below_the_limit_and_no_more():
    def bids(quality):
        return Bids(("ann", "bob"), np.array([2**59, 2**59]), {"samples": [quality, 1.0]})

    auction = QualityAuction("samples")
    largest = auction.menu(bids(3.0)).award(Offer.recruit(1), Purse(2**62 - 1, 1))
    assert (largest.clients, largest.payments) == (("ann",), (3 * 2**59,))
    assert len(auction.menu(bids(7.9))) == 1
    assert len(auction.menu(bids(8.0))) == 0


@pytest.mark.parametrize("quality", [None, "samples"])
def test_a_reserve_price_beyond_all_money_is_refused(quality):
    bids = Bids.of(PRICES, samples=dict.fromkeys(PRICES, 2.0))
    with refused(ConfigError, "reserve price", "9000000000000.00", "5 clients", "63 bits"):
        QualityAuction(quality, reserve="9e12").menu(bids)


def test_many_clients_of_few_qualities_are_paid_exactly():
    bids = Bids(
        tuple("abcdef"),
        np.array([1, 2, 3, 4, 5, 7]),
        {"samples": np.array([3.0, 3.0, 1.0, 1.0, 3.0, 3.0])},
    )
    menu = QualityAuction("samples").menu(bids)
    unit = Fraction(4, 1)
    assert menu.award(Offer.recruit(5), RICH).payments == tuple(
        int(q * unit) for q in (3, 3, 3, 3, 1)
    )


THIRD = 1 / 3  # less than a third, so that 1 / THIRD is more than 3, though not in floats
CLOSE = float(np.nextafter(1.9, 2))  # 1 / CLOSE is 1 / 1.9 in floats


@pytest.mark.parametrize(
    ("rows", "order"),
    [
        ({"a": (1, THIRD), "b": (3, 1.0), "c": (1, THIRD), "d": (9, 1.0)}, "bacd"),
        ({"a": (1, 1.0), "b": (1, 1.0), "c": (5, 1.0), "d": (3, THIRD), "e": (9, 1.0)}, "abced"),
        ({"a": (1, 1.9), "b": (1, CLOSE), "c": (1, 1.0)}, "bac"),
        ({"a": (2**55 + 1, 1.0), "b": (2**55, 1.0), "c": (2**55 + 2, 1.0)}, "bac"),
        ({"a": (1, CLOSE), "b": (2, 1.9), "c": (2, CLOSE)}, "acb"),
        ({"a": (2**55, 2.0), "b": (2**55 + 1, 1.0), "c": (2**55, 1.0)}, "acb"),
    ],
    ids=[
        "both differ",
        "only the last differ",
        "qualities differ",
        "prices differ",
        "one of the qualities is the first's",
        "one of the prices is the first's",
    ],
)
def test_unit_prices_that_floats_cannot_tell_apart_are_ranked_exactly(rows, order):
    prices = np.array([price for price, _ in rows.values()])
    scores = np.array([score for _, score in rows.values()])
    exact = sorted(rows, key=lambda name: (Fraction(rows[name][0]) / Fraction(rows[name][1]), name))
    menu = QualityAuction("samples").menu(Bids(tuple(rows), prices, {"samples": scores}))
    assert [menu.bids.clients[i] for i in menu.order] == exact == list(order)


def test_many_equal_bids_of_equal_quality_go_to_the_names_that_sort_first():
    prices = np.resize([7, 8], 500)
    bids = Bids(tuple(f"{i:03d}" for i in range(500)), prices, {"samples": np.ones(500)})
    order = QualityAuction("samples").menu(bids).order
    assert order.tolist() == [*range(0, 500, 2), *range(1, 500, 2)]


@pytest.mark.parametrize(
    "scores",
    [np.random.default_rng(0).uniform(0.1, 1, 3000), np.full(3000, 0.3)],
    ids=["which differ", "whose sum in floats is too small"],
)
def test_the_costs_of_many_clients_are_never_less_than_they_are_exactly(scores):
    prices = np.full(3000, 10**14)
    menu = QualityAuction("samples").menu(
        Bids(tuple(f"{i:04d}" for i in range(3000)), prices, {"samples": scores})
    )
    ranked = [Fraction(score) for score in scores[menu.order]]
    total = sum(ranked[:-1])
    assert menu.costs[-1] >= total * 10**14 / ranked[-1]


def test_no_menu_says_less_than_its_clients_are_paid_however_large_the_amounts():
    price = 2**57 + 1  # beyond what a float holds exactly
    bids = Bids(tuple("abcdef"), np.full(6, price), {"samples": np.ones(6)})
    menu = QualityAuction("samples").menu(bids)
    costs = menu.costs.tolist()
    assert [cost >= n * price for n, cost in enumerate(costs, 1)] == [True] * 5
    assert [menu.cost(n) for n in range(1, 6)] == [n * price for n in range(1, 6)]


def test_payments_and_reserve_prices_round_down_to_the_cent():
    cents = Bids.of({"ann": 1, "bob": 2, "cat": 3}, samples={"ann": 1.0, "bob": 1.5, "cat": 1.3})
    cents = cents.in_units_of(10_000)
    award = QualityAuction("samples").menu(cents).award(Offer.recruit(2), RICH)
    assert units(award) == {"ann": 2.3, "bob": 3.46}  # 3 / 1.3 times 1 and 1.5
    with_reserve = bid_price_first(reserve="3.509").menu(cents).award(Offer.recruit(3), RICH)
    assert units(with_reserve) == {"ann": 3.5, "bob": 3.5, "cat": 3.5}


def test_a_reserve_price_may_be_the_smallest_amount_and_nearly_all_money():
    one = Bids(("ann",), np.array([1]), {"samples": [1.0]})
    assert bid_price_first(reserve="0.000001").menu(one).cost(1) == 1
    assert bid_price_first(reserve=show(MAX_MONEY)).menu(one).cost(1) == MAX_MONEY

    def menu(quality):
        two = Bids(("ann", "bob"), np.array([1, 1]), {"samples": [quality, 1.0]})
        return QualityAuction("samples", reserve=show(2**59)).menu(two)

    assert menu(3.0).cost(2) == 4 * 2**59
    assert len(menu(8.0)) == 1  # of both, no purse could pay the cost


def show(amount):
    """An amount in micro-units, written out."""
    return f"{amount // 10**6}.{amount % 10**6:06d}"


@pytest.mark.parametrize("made", [bid_price_first, QualityAuction, Fair, Rrafl, AFL])
@pytest.mark.parametrize("reserve", [0, -1, "-0.5", "much"])
def test_a_reserve_price_that_is_none_is_refused(made, reserve):
    with refused(ConfigError, "reserve price", reserve):
        made(reserve=reserve)

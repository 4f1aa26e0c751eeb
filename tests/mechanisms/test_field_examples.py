"""The auctions of the field, and OptAggr, worked by hand."""

import numpy as np
import pytest
from refusals import refused

from bara import Award, Bids, Delivery, Evaluation, Evidence, Offer, Purse
from bara.errors import ConfigError, InvalidBidError
from bara.ledger.retention import strip
from bara.mechanisms.a_fl import AFL
from bara.mechanisms.client_cap import ClientCap
from bara.mechanisms.fair import Fair
from bara.mechanisms.fl_market import FLMarket, optimal_weights
from bara.mechanisms.fmore import FMore
from bara.mechanisms.posted_price import Tariff
from bara.mechanisms.proportional_share import ProportionalShare
from bara.mechanisms.rrafl import Rrafl
from bara.records import AwardedRound

RICH = Purse.of(1000, 10)


def units(award):
    return dict(zip(award.clients, (payment / 1e6 for payment in award.payments), strict=True))


def spend(budget):
    return Offer.spend(int(budget * 1e6))


def teach(mechanism, bids, losses, round_number=1, void=(), blameless=()):
    """Tell the mechanism of a round in which these clients delivered
    with these losses before and after.
    """
    purse = Purse(10**12, 100, round=round_number)
    everyone = [*losses, *void]
    menu = mechanism.menu(bids)
    award = Award(tuple(everyone), (1,) * len(everyone))
    awarded = AwardedRound(purse, Offer.recruit(9), bids, menu.costs, award)
    evidence = {c: Evidence(10, before, after) for c, (before, after) in losses.items()}
    record = awarded.settle(
        Delivery(Evaluation(0.5), evidence, dict.fromkeys(void, "gone"), blameless=blameless)
    )
    mechanism.tell(record)
    return record


# --- FAIR ----------------------------------------------------------------------------------------


def test_fair_starts_from_data_size():
    """Data 30, 20, 10 at price 3, 1, 1: unit prices .1, .05, .1.

    Bob first, then ann (by name before cat).

    B(1) = 20 * .1 = 2; B(2) = (20 + 30) * .1 = 5.
    """
    bids = Bids.of({"ann": 3, "bob": 1, "cat": 1}, samples={"ann": 30, "bob": 20, "cat": 10})
    menu = Fair().menu(bids)
    assert [menu.cost(n) / 1e6 for n in (1, 2)] == [2, 5]
    assert units(menu.award(Offer.recruit(2), RICH)) == {"bob": 2, "ann": 3}


def test_fair_learns_the_drop_times_the_data_and_forgets():
    """rho = 1/2. ann drops 0.8 in round 1 and 0.2 in round 3:
    (1/4 * 0.8 + 0.2) / (1/4 + 1) = 0.32; times 10.
    """
    fair = Fair(forgetting=0.5)
    bids = Bids.of({"ann": 1, "bob": 1}, samples={"ann": 10, "bob": 20})
    teach(fair, bids, {"ann": (1.0, 0.2)}, 1)
    teach(fair, bids, {"ann": (0.5, 0.3)}, 3)
    assert fair.quality(bids) == pytest.approx(
        [3.2, 6.4]
    )  # bob, not seen: his data times what is usual


def test_fair_weighs_updates_by_quality():
    fair = Fair()
    bids = Bids.of({"ann": 1, "bob": 1, "cat": 9}, samples=dict.fromkeys(("ann", "bob", "cat"), 10))
    teach(fair, bids, {"ann": (1.0, 0.7), "bob": (1.0, 0.9), "cat": (1.0, 0.8)})
    assert fair.menu(bids).award(Offer.recruit(2), RICH).weights == pytest.approx((3.0, 1.0))


@pytest.mark.parametrize("after", [1.0, 1.5])
def test_who_does_not_improve_scores_nothing_and_stops_winning(after):
    fair = Fair()
    bids = Bids.of(
        {"ann": 5, "bob": 6, "idle": "0.01"}, samples=dict.fromkeys(("ann", "bob", "idle"), 10)
    )
    assert fair.menu(bids).award(Offer.recruit(1), RICH).clients == ("idle",)
    teach(fair, bids, {"ann": (1.0, 0.5), "idle": (1.0, after)})
    assert fair.quality(bids)[2] == 0
    assert fair.menu(bids).award(Offer.recruit(3), RICH).clients == ("ann",)


def test_who_scores_nothing_leaves_the_others_their_own_scores():
    """Drops of 1, 2 and 0.5 on equal data: cat, who asks 1, loses at 2 for a unit of quality."""
    fair = Fair()
    data = dict.fromkeys(("ann", "bob", "cat", "dan"), 10)
    bids = Bids.of(dict.fromkeys(data, 1), samples=data)
    losses = {"ann": (3, 2), "bob": (3, 1), "cat": (3, 2.5), "dan": (3, 3)}
    teach(fair, bids, losses)
    assert units(fair.menu(bids).award(Offer.recruit(2), RICH)) == {"bob": 4, "ann": 2}


def test_fair_learns_nothing_where_losses_are_not_measured():
    fair = Fair()
    bids = Bids.of({"ann": 1, "bob": 2}, samples={"ann": 10, "bob": 10})
    teach(fair, bids, {"ann": (None, None)})
    assert fair.quality(bids).tolist() == [10, 10]


def test_a_tariff_leaves_out_whom_all_money_could_not_pay():
    bids = Bids.of({"ann": 1, "bob": 1}, samples={"ann": 1, "bob": 10})
    menu = Tariff(per_sample=10**12).menu(bids)
    assert menu.bids.clients == ("ann",)
    assert "63 bits" in menu.left_out["bob"]


def test_a_cap_is_each_clients_own_where_the_mechanism_leaves_others_out():
    """FAIR leaves idle out, which moves the others up: zoe, paid 3 of 5, may get 2,
    and not the 5 that are yan's.
    """
    capped = ClientCap(Fair(), 5_000_000)
    bids = Bids.of(
        {"bob": 9, "idle": 1, "yan": 4, "zoe": 1},
        samples=dict.fromkeys(("bob", "idle", "yan", "zoe"), 10),
    )
    awarded = AwardedRound(
        RICH, Offer.recruit(9), bids, bids.prices, Award(("idle", "zoe"), (1, 3_000_000))
    )
    evidence = {"idle": Evidence(10, 1.0, 1.0), "zoe": Evidence(10, 1.0, 0.5)}
    capped.tell(awarded.settle(Delivery(Evaluation(0.5), evidence)))
    assert units(capped.menu(bids).award(Offer.recruit(1), RICH)) == {"zoe": 2}


# --- RRAFL ---------------------------------------------------------------------------------------


def test_rrafl_pays_reputation_times_the_first_losers_unit_price():
    """s = 1/2 from 0.5: ann contributes 1 -> .75, bob 0.5 -> .5, cat is void -> .25.

    Prices 3, 1, 1: 4, 2, 4 a unit.

    bob first; B(1) = .5 * 4 = 2; then ann (before cat by name): B(2) = (.5 + .75) * 4 = 5.
    """
    rrafl = Rrafl(smoothing=0.5)
    bids = Bids.of({"ann": 3, "bob": 1, "cat": 1})
    teach(rrafl, bids, {"ann": (1.0, 0.5), "bob": (1.0, 0.75)}, void=("cat",))
    assert rrafl.reputation(bids).tolist() == [0.75, 0.5, 0.25]
    assert units(rrafl.menu(bids).award(Offer.recruit(2), RICH)) == {"bob": 2, "ann": 3}


def test_the_few_whom_rrafl_knows_are_found_among_many_bids():
    rrafl = Rrafl(smoothing=0.5)
    known = {"ann": 1, "client-07": 1, "client-07b": 1, "zed": 1}
    teach(rrafl, Bids.of(known), dict.fromkeys(known, (1.0, 0.5)))
    bids = Bids.of({f"client-{i:02d}": 1 for i in range(99)})
    assert rrafl.reputation(bids).tolist() == [0.75 if i == 7 else 0.5 for i in range(99)]


def test_rrafl_lets_reputation_fall_easily_and_rise_slowly_where_it_is_told_to():
    """From 0.5 ann rises by a tenth of what is missing, cat falls by half of what it has."""
    rrafl = Rrafl(smoothing=0.5, rising=0.1)
    bids = Bids.of({"ann": 3, "bob": 1, "cat": 1})
    teach(rrafl, bids, {"ann": (1.0, 0.5), "bob": (1.0, 0.75)}, void=("cat",))
    assert rrafl.reputation(bids).tolist() == pytest.approx([0.55, 0.5, 0.25])


def test_rrafl_thinks_no_less_of_who_was_never_asked():
    rrafl = Rrafl(smoothing=0.5)
    bids = Bids.of({"ann": 3, "bob": 1, "cat": 1})
    teach(rrafl, bids, {"ann": (1.0, 0.5)}, void=("bob", "cat"), blameless=("bob",))
    assert rrafl.reputation(bids).tolist() == [0.75, 0.5, 0.25]


# --- FMore ---------------------------------------------------------------------------------------


def test_fmore_takes_the_best_scores_and_pays_what_they_ask():
    """x = (1, .5, .25); scores 1 - .9 = .1, .5 - .2 = .3, .25 - .3 = -.05: bob, ann, cat."""
    bids = Bids.of(
        {"ann": "0.9", "bob": "0.2", "cat": "0.3"}, samples={"ann": 400, "bob": 200, "cat": 100}
    )
    menu = FMore().menu(bids)
    assert [menu.cost(n) / 1e6 for n in (1, 2, 3)] == pytest.approx([0.2, 1.1, 1.4])
    assert units(menu.award(spend(1.2), RICH)) == {"bob": 0.2, "ann": 0.9}


@pytest.mark.parametrize(
    ("form", "scores"),
    [
        ("additive", [1 + 0.5 - 0.5, 0.5 + 2 - 0.5]),
        ("cobb-douglas", [0.25**2 - 0.5, 0.5 - 0.5]),
        ("min", [0.0, 0.0]),
    ],
)
def test_fmore_scores_several_dimensions(form, scores):
    """x = (1, .25) for ann, (.5, 1) for bob, a = (1, 2), price .5 each: 1 + 2 * .25,
    1 * .25^2, min(1, 2 * .25), ...
    """
    bids = Bids.of(
        {"ann": "0.5", "bob": "0.5"}, samples={"ann": 4, "bob": 2}, speed={"ann": 1, "bob": 4}
    )
    fmore = FMore(columns=["samples", "speed"], weights=[1, 2], form=form)
    assert fmore.scores(bids) / 1e6 == pytest.approx(scores)


def test_in_fmore_a_winner_gains_by_asking_more():
    """Ann wins at 1 and is paid 1; asking 1.5 she still wins, against bob's 2, and is paid 1.5."""
    for ask in ("1", "1.5"):
        award = (
            FMore()
            .menu(Bids.of({"ann": ask, "bob": 2}, samples={"ann": 1, "bob": 1}))
            .award(Offer.recruit(1), RICH)
        )
        assert units(award) == {"ann": float(ask)}


@pytest.mark.parametrize(("ask", "winners"), [("2", ("ann", "bob")), ("1", ())])
def test_in_fmore_asking_less_may_end_a_run_that_ends_on_a_shortfall(ask, winners):
    """Caps of 12, a purse of 3, cat asks 10.

    Bob at 2: all cost 13, over the caps. At 1: 12, over the purse alone.
    """
    menu = FMore().menu(
        Bids.of({"ann": 1, "bob": ask, "cat": 10}, samples={"ann": 1, "bob": 1, "cat": 1})
    )
    assert menu.award(Offer.spend(12_000_000, shortfall="stop"), Purse.of(3, 1)).clients == winners
    assert menu.award(Offer.spend(12_000_000), Purse.of(3, 1)).clients == ("ann", "bob")


# --- proportional share --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "payments"),
    [
        (1, {"ann": 1}),  # 1 pays ann her price
        (1.5, {"ann": 1.5}),  # all of it
        (3, {"ann": 2}),  # no more than bob asks; two clients need 2 * 2 = 4
        (4, {"ann": 2, "bob": 2}),
        (5, {"ann": 2.5, "bob": 2.5}),
        (
            10,
            {"ann": 4, "bob": 4},
        ),  # no more than cat asks; all three are not served without a loser
    ],
)
def test_proportional_share_by_hand(budget, payments):
    """Prices 1, 2, 4, equal quality: k clients share B when B / k is at least the k-th price."""
    menu = ProportionalShare().menu(Bids.of({"ann": 1, "bob": 2, "cat": 4}))
    assert units(menu.award(spend(budget), RICH)) == payments


def test_proportional_share_shares_by_quality():
    """Quality 2, 1, 1 at prices 2, 2, 9: unit prices 1, 2, 9.

    Both fit in 2 * 3 = 6; 7.5 is shared 5 to 2.5.
    """
    bids = Bids.of({"ann": 2, "bob": 2, "cat": 9}, samples={"ann": 2, "bob": 1, "cat": 1})
    menu = ProportionalShare("samples").menu(bids)
    assert menu.cost(2) == 6_000_000
    assert units(menu.award(spend(7.5), RICH)) == {"ann": 5, "bob": 2.5}


# --- A_FL ----------------------------------------------------------------------------------------

LEFT = {"ann": (1.0, 0.5), "bob": (1.0, 0.8), "cat": (2.0, 1.0), "dan": (1.0, 0.8)}
"""Training leaves half of ann's and cat's loss, so that T = 2 rounds admit them;
0.8 of the others', so T = 5.
"""


def asks(**prices):
    return Bids.of({"ann": 3, "bob": 1, "cat": 4, "dan": 2} | prices)


@pytest.mark.parametrize(
    ("bob", "order", "costs"),
    [
        (
            1,
            ("bob", "dan", "ann"),
            [2, 6, 12],
        ),  # 5 rounds of bob cost 5, 2 of ann 6: T = 5 admits everyone
        (
            "1.25",
            ("ann",),
            [4],
        ),  # 5 rounds of bob cost 6.25: T = 2 admits ann and cat, whose 4 is the first loser's
    ],
)
def test_a_fl_takes_the_number_of_rounds_that_costs_society_least(bob, order, costs):
    """K = 1.

    T is chosen on the round that bob's price is of; the next round's prices are 3, 1, 4, 2.
    """
    afl = AFL(clients=1)
    teach(afl, asks(bob=bob), LEFT)
    menu = afl.menu(asks())
    assert [menu.cost(n) / 1e6 for n in range(1, len(menu) + 1)] == costs
    assert menu.award(Offer.recruit(len(costs)), RICH).clients == order


def test_a_fl_keeps_enough_clients_for_a_round():
    """K = 2 needs three: T = 2 would leave ann and cat alone."""
    afl = AFL(clients=2)
    teach(afl, asks(bob=9, dan=9), LEFT)
    assert len(afl.menu(asks())) == 3


def test_a_fl_averages_what_training_leaves_and_takes_the_unseen_for_the_best():
    """s = 1/2: 0.5, then 0.9: 0.7.

    Who worsens its loss leaves all of it; bob was not seen and counts as ann.
    """
    afl = AFL(smoothing=0.5)
    teach(afl, asks(), {"ann": (1.0, 0.5)}, 1)
    teach(afl, asks(), {"ann": (1.0, 0.9), "cat": (1.0, 1.5), "dan": (0.0, 0.0)}, 2)
    assert afl.residue(asks()) == pytest.approx([0.7, 0.7, 1, 1])
    assert afl.menu(asks()).award(Offer.recruit(3), RICH).clients == ("bob",)


def test_a_fl_learns_nothing_where_losses_are_not_measured():
    afl = AFL()
    teach(afl, asks(), {"ann": (None, None)})
    assert afl.menu(asks()).costs.tolist() == [2_000_000, 6_000_000, 12_000_000]


@pytest.mark.parametrize("cap", [None, 10**9])
def test_a_fl_remembers_its_choice_without_the_bids_it_was_made_on_under_a_cap_too(cap):
    lived, rebuilt = AFL(clients=1), AFL(clients=1)
    if cap is not None:
        lived, rebuilt = ClientCap(lived, cap), ClientCap(rebuilt, cap)
    record = teach(lived, asks(bob=9, dan=9), LEFT)
    rebuilt.restore(lived.memory())
    rebuilt.tell(strip(record))
    assert rebuilt.menu(asks()).costs.tolist() == lived.menu(asks()).costs.tolist() == [4_000_000]


def test_among_those_whom_a_fl_admits_the_column_of_ties_decides():
    a_fl = AFL(clients=1)
    teach(a_fl, asks(bob=9, dan=9), LEFT)  # from now on it admits ann and cat
    tie = {"ann": 3, "bob": 4, "cat": 2, "dan": 1}
    menu = a_fl.menu(Bids.of(dict.fromkeys(tie, 3), tie=tie))
    assert menu.award(Offer.recruit(1), RICH).clients == ("cat",)
    assert len(menu.order) == 2


def test_choosing_the_number_of_rounds_on_the_same_prices_is_not_truthful():
    """Costs 3, 1, 4, 2, K = 1: T = 5, bob wins.

    Ann, whose cost is 3, asks 2.4: T = 2 for 4.8; she wins and gets 4.
    """

    def on_the_same_prices(bids):
        afl = AFL(clients=1)
        teach(afl, bids, LEFT)
        return units(afl.menu(bids).award(Offer.recruit(1), RICH))

    assert on_the_same_prices(asks()) == {"bob": 2}
    assert on_the_same_prices(asks(ann="2.4")) == {"ann": 4}


# --- FL-Market -----------------------------------------------------------------------------------

PRIVATE = Bids.of(
    {"ann": 1, "bob": 3, "cat": 2},
    epsilon={"ann": 0.5, "bob": 1.0, "cat": 0.25},
    samples={"ann": 2, "bob": 2, "cat": 4},
)
"""eps d = 1, 2, 1; unit prices 1, 1.5, 2."""


def test_fl_market_pays_the_first_losers_price_for_a_unit_of_privacy_and_data():
    """B(1) = 1 * 1.5; B(2) = (1 + 2) * 2 = 6."""
    menu = FLMarket().menu(PRIVATE)
    assert [menu.cost(n) / 1e6 for n in (1, 2)] == [1.5, 6]
    assert units(menu.award(Offer.recruit(2), RICH)) == {"ann": 2, "bob": 4}


def test_all_in_shares_the_whole_budget():
    """Two clients need 1.5 * 3 = 4.5: with 6, ann gets 6 / 3 and bob 12 / 3.

    Three need 2 * 4 = 8.
    """
    menu = FLMarket(auction="all-in").menu(PRIVATE)
    assert (menu.costs / 1e6).tolist() == pytest.approx([1, 4.5, 8], abs=1e-6)
    assert units(menu.award(spend(6), RICH)) == {"ann": 2, "bob": 4}
    assert units(menu.award(spend(8), RICH)) == {"ann": 2, "bob": 4, "cat": 2}


def test_all_in_at_a_fixed_budget_is_not_truthful():
    """Budget 10, equal eps, costs 1, 4, 4.9: honest, c loses (3 * 4.9 > 10).

    Asking 3 it wins and is paid 5.
    """

    def payments(third):
        bids = Bids.of({"a": 1, "b": 4, "c": third}, epsilon=dict.fromkeys("abc", 1.0))
        return units(FLMarket(auction="all-in").menu(bids).award(spend(10), RICH))

    assert payments("4.9") == {"a": 5, "b": 5}
    assert payments(3) == {"a": 5, "c": 5}


def test_two_clients_weights_in_closed_form():
    """Equal data, eps 1 and 2: v = 8, 2.

    With lambda = (1/2 - x, 1/2 + x), 8 (1/2-x)^2 + 2 (1/2+x)^2 + (2x)^2 is least at x = (8 - 2) / 2
    / (8 + 2 + 4) = 3/14: weights 2/7 and 5/7.
    """
    assert optimal_weights(np.ones(2), np.array([1.0, 2.0])) == pytest.approx([2 / 7, 5 / 7])


def test_equal_clients_keep_their_share_of_the_data():
    assert optimal_weights(np.ones(4), np.full(4, 0.5)).tolist() == [0.25] * 4


def test_clients_that_are_equal_but_for_rounding_keep_their_share():
    precision = np.full(5, 1 / 3) * (1 / 3)
    assert optimal_weights(np.full(5, 1 / 3), precision) == pytest.approx([0.2] * 5)


def test_without_noise_to_speak_of_weights_are_shares_of_the_data():
    assert optimal_weights(np.array([1.0, 3.0]), np.array([1e6, 2e6])) == pytest.approx(
        [0.25, 0.75], abs=1e-6
    )


def test_the_level_decides_how_much_noise_optaggr_expects():
    record = FLMarket(level="record").menu(PRIVATE).award(Offer.recruit(2), RICH).weights
    client = FLMarket(level="client").menu(PRIVATE).award(Offer.recruit(2), RICH).weights
    assert sum(record) == pytest.approx(1)
    assert (
        0.5 < record[1] < client[1]
    )  # bob's eps is twice ann's; at client level noise weighs more


@pytest.mark.parametrize("epsilon", [0, -0.5, float("nan"), float("inf")])
def test_a_privacy_budget_that_is_none_is_refused_by_name(epsilon):
    with refused(InvalidBidError, "'bob'", "epsilon", float(epsilon)):
        Bids.of({"ann": 1, "bob": 1}, epsilon={"ann": 1, "bob": epsilon})


def test_a_bid_without_a_privacy_budget_is_refused():
    with refused(InvalidBidError, "'epsilon'", "samples"):
        FLMarket().menu(Bids.of({"ann": 1}, samples={"ann": 10}))


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda: Fair(forgetting=0), ("'fair'", "forgetting = 0")),
        (lambda: Fair(least=1), ("'fair'", "least = 1")),
        (lambda: Rrafl(smoothing=2), ("'rrafl'", "smoothing = 2")),
        (lambda: Rrafl(rising=0), ("'rrafl'", "rising = 0")),
        (lambda: Rrafl(least=-1), ("'rrafl'", "least = -1")),
        (lambda: AFL(clients=0), ("'a-fl'", "clients = 0")),
        (lambda: AFL(smoothing=0), ("'a-fl'", "smoothing = 0")),
        (
            lambda: FMore(form="product"),
            ("'fmore'", "form = 'product'", "'additive'", "'cobb-douglas'", "'min'"),
        ),
        (lambda: FMore(weights=[1, 2]), ("'fmore'", "weights", "[1, 2]", "['samples']")),
        (lambda: FMore(worth=0), ("'fmore'", "worth = 0")),
        (lambda: FMore(columns="samples"), ("'fmore'", "columns = 'samples'", "['samples']")),
        (lambda: Tariff(per_round=0), ("per_round", "per_sample")),
        (lambda: Tariff(per_sample="much"), ("per_sample", "'much'")),
        (lambda: Tariff(per_round=-1), ("per_round", "-1")),
        (
            lambda: FLMarket(level="global"),
            ("'fl-market'", "level = 'global'", "'record'", "'client'"),
        ),
        (lambda: FLMarket(clip=0), ("'fl-market'", "clip = 0")),
        (
            lambda: FLMarket(auction="english"),
            ("'fl-market'", "auction = 'english'", "'critical'", "'all-in'", "'dm-regretnet'"),
        ),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(make, facts):
    with refused(ConfigError, *facts):
        make()

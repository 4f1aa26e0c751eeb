"""Turns: whoever was not heard for long has its turn where prices stay; the cheapest win where they
are redrawn.
"""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

import bara
from bara import Bids, Offer, Purse
from bara.errors import ConfigError, InvalidBidError
from bara.mechanisms.turns import Ages, PriceRanks, Turns
from bara.records import AwardedRound, Delivery, Evaluation, Evidence

NAMES = tuple(f"client-{i:02d}" for i in range(20))
PURSE = Purse.of(total=10_000, max_rounds=1000)
NOTHING = Delivery(Evaluation(0.5))


def asked(prices):
    return Bids(NAMES[: len(prices)], np.rint(np.asarray(prices) * 1e6).astype(np.int64))


def redrawn(rounds, seed=0, clients=20):
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.5, clients) for _ in range(rounds)]


def stable(rounds, seed=0, clients=20):
    own = np.random.default_rng(seed).uniform(0.5, 1.5, clients)
    return [own for _ in range(rounds)]


def settled(mechanism, number, prices, n, fails=()):
    """A round that recruits the first n on the menu; they deliver, but for those that fail."""
    purse = replace(PURSE, round=number)
    awarded = AwardedRound.of(purse, Offer.recruit(n), mechanism.menu(asked(prices)))
    winners = awarded.award.clients
    delivered = {client: Evidence() for client in winners if client not in fails}
    void = {client: "it did not answer" for client in winners if client in fails}
    return awarded.settle(Delivery(Evaluation(0.5), delivered, void))


def play(mechanism, economy, n=3, fails=()):
    """Play rounds with these prices; return who won each of them."""
    winners = []
    for number, prices in enumerate(economy, 1):
        record = settled(mechanism, number, prices, n, fails)
        winners.append(record.awarded.award.clients)
        mechanism.tell(record)
    return winners


def stability(economy):
    ranks = PriceRanks()
    for prices in economy:
        ranks.tell(asked(prices))
    return ranks.stability


def test_redrawn_prices_have_no_stability_and_stable_ones_have_nothing_else():
    assert stability(redrawn(50)) < 0.05
    assert stability(stable(5)) == pytest.approx(1)


@pytest.mark.parametrize("own", [0.2, 0.5, 0.8])
def test_the_stability_that_clients_bid_with_is_learned(own):
    bidders = bara.clients.bidding.Bidders(
        40, bara.clients.costs.Distribution.parse("lognormal(0, 0.5)"), 1, stability=own
    )
    ranks = PriceRanks()
    for number in range(1, 101):
        ranks.tell(bidders.bids(number))
    assert ranks.stability == pytest.approx(own, abs=0.1)


def test_it_is_the_mean_rank_correlation_between_rounds():
    """With everybody in every round: (m W - 1) / (m - 1), where W is Kendall's concordance."""
    economy = [prices + own for prices, own in zip(redrawn(6, 1), stable(6, 2), strict=True)]
    ranked = [np.argsort(np.argsort(prices)) + 1 for prices in economy]
    m, n = len(economy), len(NAMES)
    totals = np.sum(ranked, axis=0)
    concordance = 12 * np.square(totals - totals.mean()).sum() / (m**2 * (n**3 - n))
    mean_correlation = (m * concordance - 1) / (m - 1)
    assert stability(economy) == pytest.approx(mean_correlation, abs=0.03)


ABSURD = pytest.mark.parametrize(
    "asks",
    [
        lambda _: 1e-6,
        lambda _: 1e6,
        lambda number: (1e-6, 1e6)[number % 2],
        lambda number: 2.0 ** min(number, 30),
    ],
    ids=["nothing", "a fortune", "either", "ever more"],
)


@pytest.mark.parametrize("economy", [redrawn(60), stable(60)], ids=["redrawn", "stable"])
@ABSURD
def test_whatever_one_of_twenty_asks_the_strength_hardly_moves(economy, asks):
    steered = [np.append(asks(i), prices[1:]) for i, prices in enumerate(economy)]
    assert abs(stability(steered) - stability(economy)) < 3 / len(NAMES)


@pytest.mark.parametrize(
    ("economy", "most"),
    [(redrawn(60, clients=60), 0.15), (stable(60, clients=60), 0.25)],
    ids=["redrawn", "stable"],
)
@ABSURD
def test_nor_does_it_where_one_always_bids_and_the_others_come_and_go(economy, most, asks):
    names = [f"client-{place:02d}" for place in range(60)]
    rng = np.random.default_rng(5)
    honest, steered = PriceRanks(), PriceRanks()
    for number, prices in enumerate(economy):
        some = sorted({0, *rng.choice(60, 7, replace=False).tolist()})
        asked_by = {names[place]: float(prices[place]) for place in some}
        honest.tell(Bids.of(asked_by))
        steered.tell(Bids.of({**asked_by, names[0]: asks(number)}))
    assert abs(steered.stability - honest.stability) < most


def test_one_of_three_moves_the_strength_between_price_first_and_turns_and_no_further():
    redrawn_prices, stable_prices = redrawn(60, clients=3), stable(60, clients=3)
    dear = stability([np.append(1e6, prices[1:]) for prices in redrawn_prices])
    either = [np.append((1e-6, 1e6)[i % 2], prices[1:]) for i, prices in enumerate(stable_prices)]
    assert 0.5 < dear < 1
    assert 0 < stability(either) < 0.5


def test_who_bid_once_says_nothing_of_how_stable_prices_are():
    """One that stays among others that come once had set the strength alone."""
    ranks = PriceRanks()
    for number in range(20):
        others = {f"new-{number}-{i}": 1 + i for i in range(5)}
        ranks.tell(Bids.of({"ann": 0.5, **others}))
    assert ranks.stability < 0.1


def test_where_prices_are_redrawn_nearly_the_cheapest_win():
    economy = redrawn(40)
    winners = play(Turns(), economy)
    cheapest = [{NAMES[i] for i in np.argsort(prices)[:3]} for prices in economy]
    same = [len(set(won) & cheap) for won, cheap in zip(winners, cheapest, strict=True)]
    assert np.mean(same) > 2.5


def test_where_prices_stay_everybody_has_a_turn_and_the_cheap_more_often():
    economy = stable(120)
    won = [client for winners in play(Turns(), economy) for client in winners]
    times = [won.count(client) for client in NAMES]
    assert min(times) > 0
    dear, cheap = np.argmax(economy[0]), np.argmin(economy[0])
    assert times[cheap] > 2 * times[dear]
    first = [
        client for winners in play(bara.mechanisms.bid_price_first(), economy) for client in winners
    ]
    assert len(set(first)) == 3


def test_where_all_prices_are_equal_clients_take_turns():
    won = [client for winners in play(Turns(), [np.ones(20)] * 40) for client in winners]
    assert min(won.count(client) for client in NAMES) >= 5


def test_who_fails_was_not_heard_and_stays_in_turn():
    failing = NAMES[int(np.argmin(stable(1)[0]))]
    heard = play(Turns(), stable(60))
    unheard = play(Turns(), stable(60), fails=(failing,))
    assert sum(failing in winners for winners in unheard) > sum(
        failing in winners for winners in heard
    )


def test_nothing_that_is_asked_this_round_changes_the_ages():
    mechanism = Ages()
    turns = Turns()
    for number, prices in enumerate(stable(30), 1):
        record = settled(turns, number, prices, 3)
        turns.tell(record)
        mechanism.tell(record)
    before = mechanism.quality(asked(stable(1)[0]))
    lie = stable(1)[0] * np.where(np.arange(20) == 4, 7, 1)
    assert mechanism.quality(asked(lie)).tolist() == before.tolist()


def test_a_client_that_was_never_heard_is_older_than_any_that_was():
    mechanism, ages = Turns(), Ages()
    for number, prices in enumerate(stable(8), 1):
        record = settled(mechanism, number, prices, 1)
        mechanism.tell(record)
        ages.tell(record)
    quality = dict(zip(NAMES, ages.quality(asked(stable(1)[0])), strict=True))
    heard = set(record.awarded.award.clients)
    assert all(quality[client] > quality[min(heard)] for client in NAMES if client not in heard)


def test_clients_that_come_and_go_are_ranked_among_those_present():
    ranks = PriceRanks()
    ranks.tell(Bids.of({"ann": 1, "bob": 2}))
    ranks.tell(Bids.of({"bob": 2, "cat": 3, "dan": 4}))
    ranks.tell(Bids.of({"ann": 1, "cat": 3, "dan": 4}))
    assert 0 <= ranks.stability <= 1
    ranks.tell(Bids.of({"ann": 1}))  # a lone price has no rank
    assert 0 <= ranks.stability <= 1


def test_a_column_counts_beside_the_age():
    bids = Bids.of({"ann": 1, "bob": 1}, samples={"ann": 10, "bob": 30})
    assert [bids.clients[i] for i in Turns(quality="samples").menu(bids).order] == ["bob", "ann"]
    with refused(InvalidBidError, "'speed'", "samples"):
        Turns(quality="speed").menu(bids)


def test_a_reserve_is_the_most_that_anybody_is_paid_however_long_it_waited():
    mechanism = Turns(reserve="1.20")
    play(mechanism, stable(60))
    prices = stable(1)[0]
    menu = mechanism.menu(asked(prices))
    affordable = int((prices <= 1.2).sum())
    assert len(menu) == affordable < 20
    for n in range(1, affordable + 1):
        payments = menu.pay(n, PURSE.total)
        assert payments.max() <= 1_200_000
        assert (payments >= menu.bids.prices[menu.order[:n]]).all()
        assert payments.sum() <= menu.costs[n - 1] <= payments.sum() + 2 * n
    with refused(ConfigError, "reserve", "-1"):
        Turns(reserve=-1)


def test_a_lone_bidder_is_paid_the_reserve():
    mechanism = Turns(reserve=2)
    play(mechanism, stable(5, clients=3), n=1)
    assert mechanism.menu(asked([1.5])).cost(1) == 2_000_000


def with_losses(mechanism, number, prices, idle):
    """A round of three winners; training lowers the loss of all but the idle client."""
    purse = replace(PURSE, round=number)
    awarded = AwardedRound.of(purse, Offer.recruit(3), mechanism.menu(asked(prices)))
    delivered = {
        client: Evidence(loss_before=2.0, loss_after=2.0 if client == idle else 1.0)
        for client in awarded.award.clients
    }
    return awarded.settle(Delivery(Evaluation(0.5), delivered))


@pytest.mark.parametrize("reserve", [None, 2])
def test_with_the_quality_of_fair_everybody_useful_has_a_turn_and_the_idle_stop_winning(reserve):
    mechanism = Turns(quality="fair", reserve=reserve)
    assert mechanism.requirements.evidence
    prices = stable(1)[0]
    idle = NAMES[int(np.argmin(prices))]
    won = []
    for number in range(1, 121):
        record = with_losses(mechanism, number, prices, idle)
        mechanism.tell(record)
        won.extend(record.awarded.award.clients)
    assert won.count(idle) == 1
    assert all(won.count(client) > 1 for client in NAMES if client != idle)


def test_with_the_quality_of_fair_and_a_reserve_below_every_price_nobody_is_recruited():
    assert len(Turns(quality="fair", reserve=0.1).menu(asked([1, 2, 3]))) == 0


def test_with_the_quality_of_fair_nobody_is_recruited_who_brings_nothing():
    mechanism = Turns(quality="fair", reserve=2)
    bids = asked([1.0, 1.1])
    awarded = AwardedRound.of(PURSE, Offer.recruit(2), mechanism.menu(bids))
    idle = Evidence(loss_before=2.0, loss_after=2.0)
    mechanism.tell(awarded.settle(Delivery(Evaluation(0.5), dict.fromkeys(bids.clients, idle))))
    assert len(mechanism.menu(bids)) == 0


def test_a_reserve_buys_all_who_ask_no_more_whatever_their_quality():
    samples = {"ann": 0.25, "bob": 0.5, "cat": 4}
    bids = Bids.of({"ann": 1, "bob": 2, "cat": 3}, samples=samples)
    menu = Turns(quality="samples", reserve=2).menu(bids)
    award = menu.award(Offer.recruit(3), PURSE)
    assert dict(zip(award.clients, award.payments, strict=True)) == {
        "ann": 2_000_000,
        "bob": 2_000_000,
    }


def test_a_reserve_is_rounded_down_to_what_can_be_paid():
    cent = 10_000
    bids = Bids(("ann", "bob"), np.array([1_000_000, 1_100_000]), unit=cent)
    mechanism = Turns(reserve="1.205")
    mechanism.tell(AwardedRound.of(PURSE, Offer.skip(), mechanism.menu(bids)).settle(NOTHING))
    mechanism.tell(
        AwardedRound.of(replace(PURSE, round=2), Offer.skip(), mechanism.menu(bids)).settle(NOTHING)
    )
    assert mechanism.menu(bids).award(Offer.recruit(2), PURSE).payments == (1_200_000, 1_200_000)


@pytest.mark.parametrize("unit", [1, 10_000])
def test_with_a_reserve_nobodys_quality_is_too_small_or_too_large_for_the_others_to_be_paid(unit):
    """Such bids were refused: the reserve per unit of the least quality did not fit in 63 bits."""
    samples = {"ann": 1e9, "bob": 300, "cat": 1e-9}
    bids = Bids.of({"ann": 1, "bob": 1.5, "cat": 2}, samples=samples).in_units_of(unit)
    menu = Turns(quality="samples", reserve=2).menu(bids)
    assert [menu.cost(n) for n in (1, 2, 3)] == [2_000_000, 4_000_000, 6_000_000]

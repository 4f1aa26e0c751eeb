"""Standing prices: turns at fees that nobody's own price enters, over a whole run."""

import json

import numpy as np
import pytest
from refusals import refused

from bara import Bids, Market, Offer, Purse
from bara.allocators import ALLOCATORS
from bara.errors import ConfigError
from bara.mechanisms.standing import Standing
from bara.records import Delivery, Evaluation
from bara.runs.config import Config
from bara.runs.factory import assemble

COSTS = {f"client-{i}": 0.5 + 0.125 * i for i in range(8)}


class Run:
    """A run in which everybody asks what `asks` says in a round; who took part, and for how much.

    Args:
        asks: Returns the price of each client in a round.
        purse: The budget and the deadline.
        reserve: The reserve price.
        offer: Returns what a round may cost; whatever the turns cost unless given.
        fails: Returns the winners of a round that do not deliver.
    """

    def __init__(self, asks, purse, reserve=2, offer=None, fails=lambda _number: ()):
        self.mechanism = Standing(reserve=reserve)
        allocator = offer or ALLOCATORS.build("fixed", {"n": 100, "shortfall": "shrink"})
        market = Market(allocator, self.mechanism, purse)
        market.tell(market.begin(Evaluation(0.1)))
        self.paid = {}
        self.records = []
        for number in range(1, purse.max_rounds + 1):
            awarded = market.award(market.ask(), Bids.of(asks(number)))
            gone = dict.fromkeys(set(fails(number)) & set(awarded.award.clients), "it is gone")
            done = Delivery.complete(awarded.award, Evaluation(0.2))
            delivered = {name: one for name, one in done.delivered.items() if name not in gone}
            record = market.settle(awarded, Delivery(Evaluation(0.2), delivered, gone))
            market.tell(record)
            self.records.append(record)
            for client, payment in record.payments.items():
                self.paid.setdefault(client, []).append(payment / 1e6)
        self.purse = market.purse

    def profit(self, client, cost):
        return sum(self.paid.get(client, ())) - len(self.paid.get(client, ())) * cost


def always(prices):
    return lambda _number: prices


def carrying_over():
    return ALLOCATORS.build("even", {"carry_over": True})


def test_in_the_first_round_all_are_paid_the_reserve_but_who_asks_more():
    menu = Standing(reserve=2).menu(Bids.of({"ann": 1, "bob": 3, "cat": 2}))
    assert [menu.bids.clients[i] for i in menu.order] == ["ann", "cat"]
    assert menu.costs.tolist() == [2_000_000, 4_000_000]


def test_the_first_fees_by_hand():
    """One client, six rounds, money for two turns at the reserve.

    After the first round, paid 2, 2 is left for rounds 2 to 6: u(t) = frac(t * 0.618...) is 0.236,
    0.854, 0.472, 0.090 (and 0.708 in round 6). With a scale y, the fees are y / sqrt(u), at most 2;
    all of 1 or more are turns, and asked next to nothing all five are.
    """
    run = Run(always({"ann": 1}), Purse.of(4, 6))
    assert run.paid["ann"][0] == 2.0
    spread = np.array([0.236068, 0.854102, 0.472136, 0.090170, 0.708204])
    scale = max(
        y
        for y in 2 * (63 / 64) ** np.arange(1000)
        if np.minimum(y / np.sqrt(spread), 2).sum() <= 2.0001
    )
    fees = np.minimum(scale / np.sqrt(spread), 2)
    assert run.paid["ann"][1:] == pytest.approx([fee for fee in fees if fee >= 1], abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_over_a_whole_run_no_single_price_pays_better_than_the_cost(seed):
    """With offers that pay every turn there is nothing to gain, to the micro-unit."""
    rng = np.random.default_rng(seed)
    clients = int(rng.integers(2, 10))
    costs = {f"client-{i}": round(cost, 6) for i, cost in enumerate(rng.uniform(0.5, 2, clients))}
    purse = Purse.of(round(float(rng.uniform(20, 60)), 2), int(rng.integers(15, 40)))
    truth = Run(always(costs), purse)
    for client, cost in costs.items():
        honest = truth.profit(client, cost)
        for multiple in (0.5, 0.8, 0.95, 1.05, 1.3, 2):
            lie = always({**costs, client: round(cost * multiple, 6)})
            assert Run(lie, purse).profit(client, cost) <= honest + 1e-9


def test_nor_does_it_where_offers_are_tight_and_turns_must_wait():
    """The money of a round is shared evenly and carried over; gains stay below 1 % of a payment."""
    purse = Purse.of(120, 40)
    truth = Run(always(COSTS), purse, 1.6, carrying_over())
    usual = np.mean([sum(paid) for paid in truth.paid.values()])
    for client, cost in COSTS.items():
        for multiple in (0.7, 0.9, 1.1, 1.3, 2):
            lie = always({**COSTS, client: cost * multiple})
            lying = Run(lie, purse, 1.6, carrying_over()).profit(client, cost)
            assert lying <= truth.profit(client, cost) + 0.01 * usual


def test_a_changed_bid_takes_or_leaves_a_turn_and_changes_nothing_else():
    purse = Purse.of(100, 60)
    honest = Run(always(COSTS), purse)
    dear = {**COSTS, "client-3": 1.2}
    changed = Run(lambda number: dear if number > 1 else COSTS, purse)
    cheap = {**COSTS, "client-3": 0.1}
    lower = Run(lambda number: cheap if number > 1 else COSTS, purse)
    taken = [payment for payment in honest.paid["client-3"] if payment >= 1.2]
    assert changed.paid["client-3"] == taken != honest.paid["client-3"]
    assert lower.paid == honest.paid
    for client in COSTS.keys() - {"client-3"}:
        assert changed.paid[client] == honest.paid[client]


def test_the_cheap_have_more_turns_and_myersons_payment_on_average():
    """A price of b is paid 2 b - b^2 / R a turn, and has turns in proportion to b^-2."""
    costs = {f"client-{i:02d}": 0.6 + 0.04 * i for i in range(20)}
    run = Run(always(costs), Purse.of(2000, 1000), reserve=1.6)
    for client, cost in list(costs.items())[1:]:
        later = run.paid[client][1:]  # the first round pays everybody the reserve
        assert np.mean(later) == pytest.approx(2 * cost - cost**2 / 1.6, rel=0.03)
    turns = [len(run.paid[client]) * cost**2 for client, cost in costs.items()]
    assert max(turns[1:]) < 1.15 * min(turns[1:])


def test_most_of_the_money_is_spent_and_never_more_than_there_is():
    for total in (60, 100, 300):
        for offer in (None, carrying_over()):
            purse = Run(always(COSTS), Purse.of(total, 50), 1.6, offer).purse
            assert 0.85 * purse.total < purse.spent <= purse.total


def test_turns_of_who_is_away_or_fails_are_made_up_for_at_their_own_fees():
    purse = Purse.of(60, 60)
    usual = Run(always(COSTS), purse).paid
    others = {client: cost for client, cost in COSTS.items() if client != "client-2"}
    away = Run(lambda number: others if 10 < number < 20 else COSTS, purse).paid
    assert away == usual
    failing = Run(always(COSTS), purse, fails=lambda n: ["client-2"] if n == 12 else []).paid
    assert failing == usual


def test_who_comes_later_has_turns_from_the_next_round_on():
    late = lambda number: {**COSTS, "new": 0.7} if number >= 20 else COSTS  # noqa: E731
    run = Run(late, Purse.of(100, 60))
    rounds = [record.round for record in run.records if "new" in record.payments]
    assert rounds
    assert min(rounds) > 20
    assert run.purse.spent <= run.purse.total


def test_more_money_is_planned_with_once_it_is_there():
    def plan(total):
        mechanism = Standing(reserve=2)
        market = Market(
            ALLOCATORS.build("fixed", {"n": 8}),
            mechanism,
            Purse.of(60, 40),
            before_round=lambda purse: (
                purse if purse.round < 10 else Purse(total, 40, purse.spent, purse.round)
            ),
        )
        market.tell(market.begin(Evaluation(0.1)))
        for _ in range(40):
            awarded = market.award(market.ask(), Bids.of(COSTS))
            done = Delivery.complete(awarded.award, Evaluation(0.2))
            market.tell(market.settle(awarded, done))
        return market.purse.spent

    assert plan(60_000_000) <= 60_000_000 < plan(120_000_000) <= 120_000_000


def test_in_cents_every_fee_is_a_whole_cent():
    costs = {client: f"{cost:.2f}" for client, cost in COSTS.items()}
    run = Run(always(costs), Purse.of(80, 40, "EUR"), reserve="1.555")
    payments = [round(payment * 1e6) for paid in run.paid.values() for payment in paid]
    assert payments
    assert all(payment % 10_000 == 0 and payment <= 1_550_000 for payment in payments)


def test_what_it_learned_survives_json():
    run = Run(always(COSTS), Purse.of(60, 60), 1.6, carrying_over())
    one = Standing(reserve=1.6)
    for record in run.records[:30]:
        one.tell(record)
    two = Standing(reserve=1.6)
    two.restore(json.loads(json.dumps(one.memory())))
    for record in run.records[:30]:  # told again; it knows them
        two.tell(record)
    for record in run.records[30:]:
        menus = [mechanism.menu(Bids.of(COSTS)) for mechanism in (one, two)]
        assert menus[0].order.tolist() == menus[1].order.tolist()
        assert menus[0].costs.tolist() == menus[1].costs.tolist() == record.awarded.costs.tolist()
        one.tell(record)
        two.tell(record)
    fresh = Standing(reserve=1.6)
    fresh.restore(json.loads(json.dumps(Standing(reserve=1.6).memory())))
    assert fresh.menu(Bids.of(COSTS)).cost(1) == 1_600_000


def test_a_dear_turn_does_not_keep_the_others_waiting():
    """Two of the fees are beyond a round's share of the money; the cheap have their turns."""
    run = Run(always({"a": 0.5, "b": 0.6, "c": 2.9}), Purse.of(40, 50), 3, carrying_over())
    recruiting = [record.round for record in run.records if record.n]
    assert np.diff(recruiting).max() < 20
    assert len(run.paid["a"]) > 10


def test_a_reserve_must_be_set_and_fit():
    with refused(ConfigError, "reserve", "-1"):
        Standing(reserve=-1)
    with refused(ConfigError, "63 bits", "reserve"):
        Standing(reserve=9e12).menu(Bids.of({"ann": 1, "bob": 2}))


@pytest.mark.parametrize(
    "changes",
    [[], ["clients.stability=0.5"], ["clients.stability=1", "clients.drift=0.01"]],
)
def test_clients_whose_prices_change_are_refused_before_the_run(changes):
    own = ["mechanism.name=standing", "mechanism.reserve=2", "federation.engine=synthetic"]
    with refused(ConfigError, "Standing", "clients.stability"):
        assemble(Config.load(None, [*own, *changes]))
    assemble(Config.load(None, [*own, "clients.stability=1"]))
    assemble(Config.load(None, [*own, "clients.bids=constant(1)"]))


def test_an_offer_of_nothing_leaves_the_turns_as_they_are():
    mechanism = Standing(reserve=2)
    market = Market(ALLOCATORS.build("even"), mechanism, Purse.of(50, 30))
    market.begin(Evaluation(0.1))
    for _ in range(3):
        awarded = market.award(Offer.skip(), Bids.of(COSTS))
        market.settle(awarded, market.unchanged())
    assert len(mechanism.menu(Bids.of(COSTS))) > 0

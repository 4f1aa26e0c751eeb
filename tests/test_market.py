import numpy as np
import pytest

from bara import (
    Award,
    AwardedRound,
    Bids,
    Delivery,
    Evaluation,
    Evidence,
    Market,
    Menu,
    Offer,
    Purse,
    RoundRecord,
)
from bara.allocators import Bara, Even, Fixed
from bara.errors import InvalidOfferError, InvalidRecordError, OverspentError
from bara.market import Backoff
from bara.mechanisms import bid_price_first
from bara.testing._allocators import trace


class Script:
    """An allocator that reads its offers from a list."""

    def __init__(self, *offers):
        self.offers = offers
        self.told = []

    def ask(self, purse):
        return self.offers[min(purse.round, len(self.offers)) - 1]

    def tell(self, record):
        self.told.append(record)


def market(federation, *offers, purse=None):
    return Market(Script(*offers), bid_price_first(), federation, purse or Purse.of(100, 5))


def test_each_round_comes_first_as_awarded_and_then_as_settled(make_federation):
    steps = list(market(make_federation(), Offer.recruit(3), purse=Purse.of(100, 2)).rounds())
    assert [type(step) for step in steps] == [
        RoundRecord,
        AwardedRound,
        RoundRecord,
        AwardedRound,
        RoundRecord,
    ]
    assert steps[0].round == 0
    assert steps[2].awarded is steps[1]
    assert steps[3].purse == steps[2].purse_after


def test_nobody_trains_before_the_promise_was_handed_out(make_federation):
    federation = make_federation()
    trained = []
    original = federation.train
    federation.train = lambda round_number, award: (
        trained.append(round_number) or original(round_number, award)
    )
    steps = market(federation, Offer.recruit(3)).rounds()
    next(steps)
    assert isinstance(next(steps), AwardedRound)
    assert trained == []
    next(steps)
    assert trained == [1]


def test_the_offer_is_asked_for_before_the_bids(make_federation):
    order = []
    federation = make_federation()
    bids = federation.bids
    federation.bids = lambda round_number: order.append("bids") or bids(round_number)
    allocator = Script(Offer.recruit(2))
    ask = allocator.ask
    allocator.ask = lambda purse: order.append("ask") or ask(purse)
    list(Market(allocator, bid_price_first(), federation, Purse.of(10, 2)).rounds())
    assert order == ["ask", "bids", "ask", "bids"]


def test_it_ends_at_the_deadline(make_federation):
    m = market(make_federation(), Offer.recruit(2))
    assert sum(isinstance(step, RoundRecord) for step in m.rounds()) == 6
    assert m.ended == "the deadline is reached"
    assert m.purse.rounds_left == 0


def test_it_ends_when_the_allocator_stops(make_federation):
    m = market(make_federation(), Offer.recruit(2), Offer.stop())
    assert sum(isinstance(step, RoundRecord) for step in m.rounds()) == 2
    assert m.ended == "the allocator stopped"


def test_it_ends_when_a_wish_cannot_be_paid_and_the_offer_says_so(make_federation):
    m = market(make_federation(), Offer.recruit(7, shortfall="stop"), purse=Purse.of(1, 5))
    assert len(list(m.rounds())) == 1
    assert m.ended == "the money left cannot pay what the allocator wants"
    assert m.purse.left == 1_000_000


def test_a_round_where_nobody_can_be_paid_passes_without_training_and_cost(make_federation):
    federation = make_federation()
    federation.train = None  # would raise if called
    records = [
        s
        for s in market(federation, Offer.skip(), Offer.spend(1)).rounds()
        if isinstance(s, RoundRecord)
    ]
    assert len(records) == 6
    assert {record.paid for record in records} == {0}
    assert {record.evaluation for record in records} == {federation.evaluate()}


def test_a_lone_client_without_a_reserve_price_is_never_recruited(make_federation):
    m = market(make_federation(clients=1), Offer.recruit(1))
    assert all(step.award.n == 0 for step in m.rounds() if isinstance(step, AwardedRound))


def test_allocator_and_mechanism_are_told_every_round(make_federation):
    m = market(make_federation(), Offer.recruit(2))
    list(m.rounds())
    assert [record.round for record in m._allocator.told] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("stop_after", range(1, 12))
@pytest.mark.parametrize(
    "make", [lambda: Even(carry_over=True), lambda: Bara(clients=8, exploration_rounds=3)]
)
def test_a_market_goes_on_from_stored_records_and_a_stored_award(make_federation, make, stop_after):
    """Interrupted after any step, the second sitting ends as the undisturbed run; the federation keeps its model."""

    def sitting(federation, **stored):
        return Market(make(), bid_price_first(), federation, Purse.of(30, 6)).rounds(**stored)

    undisturbed = [
        s for s in sitting(make_federation(failure_rate=0.2)) if isinstance(s, RoundRecord)
    ]
    federation = make_federation(failure_rate=0.2)
    seen = [step for _, step in zip(range(stop_after), sitting(federation), strict=False)]
    history = [step for step in seen if isinstance(step, RoundRecord)]
    awarded = seen[-1] if isinstance(seen[-1], AwardedRound) else None
    rest = list(sitting(federation, history=history, awarded=awarded))
    if awarded is not None:
        assert rest[0] is awarded
    assert trace(history + [s for s in rest if isinstance(s, RoundRecord)]) == trace(undisturbed)


def test_a_client_that_failed_backs_off_longer_each_time_until_it_delivers():
    backoff = Backoff()

    def tell(round_number, delivered=(), void=(), blameless=()):
        awarded = AwardedRound.of(
            Purse(10, 99, 0, round_number), Offer.skip(), bid_price_first().menu(make_bids())
        )
        object.__setattr__(awarded, "award", _award((*delivered, *void)))
        came, stayed = dict.fromkeys(delivered, Evidence()), dict.fromkeys(void, "x")
        backoff.tell(
            awarded.settle(Delivery(Evaluation(0.1), came, stayed, blameless=tuple(blameless)))
        )

    tell(1, void=["eve"])
    assert [backoff.away(t) for t in (2, 3)] == [{"eve"}, set()]
    tell(3, void=["eve"])
    assert [backoff.away(t) for t in (4, 5, 6)] == [{"eve"}, {"eve"}, set()]
    tell(6, void=["eve"])
    assert [len(backoff.away(t)) for t in range(7, 12)] == [1, 1, 1, 1, 0]
    tell(11, delivered=["eve"])
    tell(12, void=["eve"])
    assert [len(backoff.away(t)) for t in (13, 14)] == [1, 0]
    tell(14, void=["ann", "eve"], blameless=["ann"])
    assert backoff.away(15) == {"eve"}  # who was never asked has not failed


def test_a_cheap_client_that_never_delivers_does_not_win_for_ever(make_federation):
    federation = make_federation(failure_rate=1.0)
    steps = market(federation, Offer.recruit(3), purse=Purse.of(100, 40)).rounds()
    promised = [step.award.clients for step in steps if isinstance(step, AwardedRound)]
    assert max(sum(name in award for award in promised) for name in federation.bidders.clients) < 10


def test_void_winners_are_not_paid_and_the_money_stays(make_federation):
    m = market(make_federation(failure_rate=1.0), Offer.recruit(3))
    list(m.rounds())
    assert m.purse.left == 100_000_000


def test_across_rounds_nothing_is_claimed_and_carry_over_can_be_gamed():
    """B = 16, two rounds, costs 1, 2, 3, 3.5: client c gains by asking 2.1 in the first round."""

    class Two:
        def __init__(self, first_ask):
            self.first_ask = first_ask

        def evaluate(self):
            return Evaluation(0.1)

        def bids(self, round_number):
            return Bids.of(
                {"a": 1, "b": 2, "c": self.first_ask if round_number == 1 else 3, "d": "3.5"}
            )

        def train(self, _round, award):
            return Delivery.complete(award, Evaluation(0.2))

    def profit(first_ask):
        steps = Market(
            Even(carry_over=True), bid_price_first(), Two(first_ask), Purse.of(16, 2)
        ).rounds()
        won = [s.payments["c"] for s in steps if isinstance(s, RoundRecord) and "c" in s.payments]
        return sum(won) - 3_000_000 * len(won)

    assert profit(3) == 0
    assert profit("2.1") > 0


def make_bids():
    return Bids.of({"ann": 1, "eve": 1})


def _award(clients):
    return Award(tuple(clients), (1,) * len(clients))


def test_a_market_of_fixed_size_spends_what_it_recruits(play):
    records, _ = play(Fixed(2))
    assert [record.purse_after.spent - record.awarded.purse.spent for record in records] == [
        record.awarded.award.cost for record in records
    ]
    assert all(record.n == 2 for record in records[1:])


def test_a_market_opens_with_round_one(make_federation):
    with pytest.raises(InvalidRecordError, match="must open with round 1, got round 4"):
        market(make_federation(), Offer.skip(), purse=Purse(20, 10, spent=5, round=4))


def test_an_allocator_that_answers_something_else_is_named(make_federation):
    with pytest.raises(InvalidOfferError, match=r"Script.ask must return an Offer, got 3"):
        list(market(make_federation(), 3).rounds())


class Careless:
    """A mechanism that answers with whatever menu it is given."""

    claims = frozenset({"individually-rational"})

    def __init__(self, order, costs, pay):
        self.made = order, costs, pay

    def menu(self, bids):
        order, costs, pay = self.made
        return Menu(bids, np.array(order), np.array(costs), pay=lambda n, _cap: np.array(pay)[:n])

    def tell(self, record):
        pass


@pytest.mark.parametrize(
    ("mechanism", "error", "complaint"),
    [
        (
            Careless([0, 1], [1, 2], [9_000_000, 9_000_000]),
            OverspentError,
            "awards 18.00 to 2 clients; the offer",
        ),
        (
            Careless([0, 0], [1, 2], [1_000_000, 1_000_000]),
            InvalidRecordError,
            "each winner once, got",
        ),
        (
            Careless([0, 1], [1, 2], [1, 1]),
            InvalidRecordError,
            "Careless pays 'client-0' 0.000001, less than the",
        ),
        (
            Careless([0, 1], [1, 2], [1.5, 1.5]),
            InvalidRecordError,
            "the payment of 'client-0' must be a whole number, got 1.5",
        ),
        (
            Careless([0, 1], [1, 2], [True, True]),
            InvalidRecordError,
            "the payment of 'client-0' must be a whole number, got True",
        ),
    ],
)
def test_an_award_that_nobody_may_promise_is_refused_before_it_is_handed_out(
    mechanism, error, complaint, make_federation
):
    federation = make_federation()
    steps = Market(
        Script(Offer.caps([4_000_000, 4_000_000])), mechanism, federation, Purse.of(100, 5)
    ).rounds()
    next(steps)
    with pytest.raises(error, match=complaint):
        next(steps)


def test_winners_are_among_the_opened_bids(make_federation):
    class Stranger(Careless):
        def menu(self, bids):
            return super().menu(Bids.of({"mallory": 1, "ann": 2}) if len(bids) else bids)

    federation = make_federation()
    stranger = Stranger([0], [2_000_000], [2_000_000])
    steps = Market(Script(Offer.recruit(1)), stranger, federation, Purse.of(100, 5)).rounds()
    next(steps)
    with pytest.raises(InvalidRecordError, match="Stranger recruits 'ann', which did not bid"):
        next(steps)

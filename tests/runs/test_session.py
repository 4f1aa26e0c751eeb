import contextlib

import numpy as np
import pytest
from refusals import refused

from bara import (
    MECHANISMS,
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
    Session,
)
from bara.allocators import Bara, Even, Fixed
from bara.errors import InvalidOfferError, InvalidRecordError, LedgerError, OverspentError
from bara.ledger import Books, Store
from bara.market import BACKS_OFF, Backoff
from bara.mechanisms import bid_price_first
from bara.protocols import Capabilities
from bara.runs.session import OwnLoop


class Script:
    """An allocator that reads its offers from a list."""

    def __init__(self, *offers):
        self.offers = offers
        self.told = []

    def ask(self, purse):
        return self.offers[min(purse.round, len(self.offers)) - 1]

    def tell(self, record):
        self.told.append(record)


def session_of(federation, *offers):
    return Session(Script(*offers), bid_price_first(), federation)


def played(federation, *offers, purse=None):
    """The steps of a run by a script, and its session."""
    session = session_of(federation, *offers)
    return list(session.rounds(purse or Purse.of(100, 5))), session


def settled(steps):
    return [step for step in steps if isinstance(step, RoundRecord)]


def decisions(records):
    return [(one.awarded.offer, one.awarded.award) for one in records]


def test_each_round_comes_first_as_awarded_and_then_as_settled(make_federation):
    steps, _ = played(make_federation(), Offer.recruit(3), purse=Purse.of(100, 2))
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
    steps = session_of(federation, Offer.recruit(3)).rounds(Purse.of(100, 5))
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
    list(Session(allocator, bid_price_first(), federation).rounds(Purse.of(10, 2)))
    assert order == ["ask", "bids", "ask", "bids"]


def test_a_federation_may_say_how_good_its_initial_model_is_as_a_number(make_federation):
    federation = make_federation()
    federation.evaluate = lambda: 0.25
    first = next(session_of(federation, Offer.skip()).rounds(Purse.of(100, 5)))
    assert first.evaluation == Evaluation(0.25)


def test_it_ends_at_the_deadline(make_federation):
    steps, session = played(make_federation(), Offer.recruit(2))
    assert len(settled(steps)) == 6
    assert session.ended == "the deadline is reached"
    assert session.purse.rounds_left == 0


def test_it_ends_when_the_allocator_stops(make_federation):
    steps, session = played(make_federation(), Offer.recruit(2), Offer.stop())
    assert len(settled(steps)) == 2
    assert session.ended == "the allocator stopped"


def test_it_ends_when_a_wish_cannot_be_paid_and_the_offer_says_so(make_federation):
    offer = Offer.recruit(7, shortfall="stop")
    steps, session = played(make_federation(), offer, purse=Purse.of(1, 5))
    assert len(steps) == 1
    assert session.ended == "the money left cannot pay what the allocator wants"
    assert session.purse.left == 1_000_000


def test_a_round_where_nobody_can_be_paid_passes_without_training_and_cost(make_federation):
    federation = make_federation()
    federation.train = None  # would raise if called
    steps, _ = played(federation, Offer.skip(), Offer.spend(1))
    records = settled(steps)
    assert len(records) == 6
    assert {record.paid for record in records} == {0}
    assert {record.evaluation for record in records} == {federation.evaluate()}


def test_a_lone_client_without_a_reserve_price_is_never_recruited(make_federation):
    steps, _ = played(make_federation(clients=1), Offer.recruit(1))
    assert all(step.award.n == 0 for step in steps if isinstance(step, AwardedRound))


def test_allocator_and_mechanism_are_told_every_round(make_federation):
    class Listening(Careless):
        def tell(self, record):
            told.append(record.round)

    told = []
    mechanism = Listening([0, 1], [2_000_000, 4_000_000], [2_000_000, 2_000_000])
    session = Session(Script(Offer.recruit(2)), mechanism, make_federation())
    list(session.rounds(Purse.of(100, 5)))
    assert [record.round for record in session.allocator.told] == told == [0, 1, 2, 3, 4, 5]


def test_what_an_allocator_believes_stands_in_the_round_that_it_asked_for(make_federation):
    class Believing(Script):
        def belief(self):
            return {"rounds told": len(self.told)}

    steps = Session(Believing(Offer.recruit(2)), bid_price_first(), make_federation())
    awarded = [one for one in steps.rounds(Purse.of(100, 3)) if isinstance(one, AwardedRound)]
    assert [one.belief for one in awarded] == [{"rounds told": n} for n in (1, 2, 3)]


@pytest.mark.parametrize("asked", [1, 10])
def test_a_client_may_be_paid_just_what_it_asks_up_to_the_whole_budget(asked):
    mechanism = Careless([0], [asked * 10**6], [asked * 10**6])
    session = Session(Script(Offer.recruit(1)), mechanism, OwnLoop())
    session.start(Purse.of(10, 1))
    session.begin(0.1)
    assert session.award({"ann": asked, "bob": 2}) == Award(("ann",), (asked * 10**6,))


def test_a_client_that_backs_off_is_left_out_with_the_reason():
    session = own_loop(Offer.recruit(1))
    session.start(Purse.of(10, 2))
    session.begin(0.1)
    session.award(ASKED)
    session.settle(0.2, void={"ann": "no answer"})
    assert session.award(ASKED).clients == ("bob",)
    assert session.promised.left_out.reasons == {"ann": BACKS_OFF}


@pytest.mark.parametrize("stop_after", range(1, 12))
@pytest.mark.parametrize(
    "make", [lambda: Even(carry_over=True), lambda: Bara(clients=8, exploration_rounds=3)]
)
def test_a_run_goes_on_from_its_books_and_a_stored_promise(
    make_federation, make, stop_after, tmp_path
):
    """Interrupted after any step, the second session ends as the undisturbed run."""
    purse = Purse.of(30, 6)

    def steps(budget):
        session = Session(make(), bid_price_first(), make_federation(failure_rate=0.2))
        return session.rounds(budget)

    undisturbed = settled(steps(purse))
    with contextlib.closing(Store.in_file(tmp_path / "ledger.db")) as store:
        books = Books.open(store, "run", {}, purse)
        first = [step for _, step in zip(range(stop_after), steps(books), strict=False)]
        rest = list(steps(books))
    if isinstance(first[-1], AwardedRound):
        assert rest[0].award == first[-1].award
    assert decisions(settled(first) + settled(rest)) == decisions(undisturbed)


@pytest.mark.parametrize("fails_at", range(1, 12))
def test_a_session_that_has_learned_is_not_started_a_second_time(
    make_federation, tmp_path, monkeypatch, fails_at
):
    """It would teach everybody each round twice; a new session ends as the undisturbed one."""

    def session():
        return Session(
            Even(carry_over=True), MECHANISMS.build("turns"), make_federation(failure_rate=0.2)
        )

    def fail(name):
        moments.append(name)
        if len(moments) == fails_at:
            raise LedgerError("the ledger is locked by another process")

    undisturbed = settled(session().rounds(Purse.of(30, 4)))
    moments = []
    with contextlib.closing(Store.in_file(tmp_path / "ledger.db")) as store:
        books = Books.open(store, "run", {}, Purse.of(30, 4))
        monkeypatch.setattr("bara.ledger.books.point", fail)
        first = session()
        with pytest.raises(LedgerError):
            list(first.rounds(books))
        with contextlib.suppress(InvalidRecordError):
            list(first.rounds(books))  # nothing was learned yet
        list(session().rounds(books))
        assert decisions(books.history()) == decisions(undisturbed)


def test_a_promise_is_in_the_books_before_anybody_trains(make_federation, tmp_path):
    federation = make_federation()
    train = federation.train
    with contextlib.closing(Store.in_file(tmp_path / "ledger.db")) as store:
        books = Books.open(store, "run", {}, Purse.of(30, 3))
        promised = []

        def trained(round_number, award):
            promised.append(books.awarded().award == award)
            return train(round_number, award)

        federation.train = trained
        list(Session(Fixed(2), bid_price_first(), federation).rounds(books))
    assert promised == [True, True, True]


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
    steps, _ = played(federation, Offer.recruit(3), purse=Purse.of(100, 40))
    promised = [step.award.clients for step in steps if isinstance(step, AwardedRound)]
    assert max(sum(name in award for award in promised) for name in federation.bidders.clients) < 10


def test_void_winners_are_not_paid_and_the_money_stays(make_federation):
    _, session = played(make_federation(failure_rate=1.0), Offer.recruit(3))
    assert session.purse.left == 100_000_000


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
        session = Session(Even(carry_over=True), bid_price_first(), Two(first_ask))
        records = settled(session.rounds(Purse.of(16, 2)))
        won = [record.payments["c"] for record in records if "c" in record.payments]
        return sum(won) - 3_000_000 * len(won)

    assert profit(3) == 0
    assert profit("2.1") > 0


def make_bids():
    return Bids.of({"ann": 1, "eve": 1})


def _award(clients):
    return Award(tuple(clients), (1,) * len(clients))


def test_an_allocator_of_fixed_size_spends_what_it_recruits(play):
    records, _ = play(Fixed(2))
    assert [record.purse_after.spent - record.awarded.purse.spent for record in records] == [
        record.awarded.award.cost for record in records
    ]
    assert all(record.n == 2 for record in records[1:])


def test_a_market_opens_with_round_one():
    with refused(InvalidRecordError, "market", "round 1", "round 4"):
        Market(Script(Offer.skip()), bid_price_first(), Purse(20, 10, spent=5, round=4))


def test_an_allocator_that_answers_something_else_is_named(make_federation):
    with refused(InvalidOfferError, "Script.ask", "Offer", "3"):
        played(make_federation(), 3)


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
    ("mechanism", "error", "facts"),
    [
        (
            Careless([0, 1], [1, 2], [9_000_000, 9_000_000]),
            OverspentError,
            ("Careless", "18.00", "2", "4.00"),
        ),
        (
            Careless([0, 0], [1, 2], [1_000_000, 1_000_000]),
            InvalidRecordError,
            ("winner", "['client-0', 'client-0']"),
        ),
        (
            Careless([0, 1], [1, 2], [1, 1]),
            InvalidRecordError,
            ("Careless", "'client-0'", "0.000001", "'individually-rational'"),
        ),
        (
            Careless([0, 1], [1, 2], [1.5, 1.5]),
            InvalidRecordError,
            ("payment", "'client-0'", "1.5"),
        ),
        (
            Careless([0, 1], [1, 2], [True, True]),
            InvalidRecordError,
            ("payment", "'client-0'", "True"),
        ),
    ],
)
def test_an_award_that_nobody_may_promise_is_refused_before_it_is_handed_out(
    mechanism, error, facts, make_federation
):
    federation = make_federation()
    allocator = Script(Offer.caps([4_000_000, 4_000_000]))
    steps = Session(allocator, mechanism, federation).rounds(Purse.of(100, 5))
    next(steps)
    with refused(error, *facts):
        next(steps)


def test_winners_are_among_the_opened_bids(make_federation):
    class Stranger(Careless):
        def menu(self, bids):
            return super().menu(Bids.of({"mallory": 1, "ann": 2}) if len(bids) else bids)

    federation = make_federation()
    stranger = Stranger([0], [2_000_000], [2_000_000])
    session = Session(Script(Offer.recruit(1)), stranger, federation)
    steps = session.rounds(Purse.of(100, 5))
    next(steps)
    with refused(InvalidRecordError, "Stranger", "'ann'", "bid"):
        next(steps)


ASKED = {"ann": 1, "bob": 2, "cat": 3}


def own_loop(*offers):
    return Session(Script(*offers), bid_price_first(), OwnLoop())


def test_a_session_without_a_federation_does_not_play_its_rounds_itself():
    with refused(InvalidRecordError, "federation", "ask, award and settle"):
        next(own_loop(Offer.recruit(1)).rounds(Purse.of(10, 2)))


def test_a_session_that_has_not_started_has_not_ended_and_has_no_purse():
    session = own_loop(Offer.recruit(1))
    assert session.ended is None
    with refused(InvalidRecordError, "start"):
        _ = session.purse


def test_the_steps_of_a_round_come_in_their_order_and_a_run_without_books_keeps_its_promise():
    session = own_loop(Offer.recruit(1), Offer.stop())
    session.start(Purse.of(10, 3))
    assert session.checkpoint is None
    with refused(InvalidRecordError, "begin"):
        session.ask()
    session.begin(0.1)
    with refused(InvalidRecordError, "round 1", "bids"):
        session.award()
    award = session.award(ASKED)  # asks for the offer by itself
    assert session.award({"bob": "0.5", "cat": 1}) == award == Award(("ann",), (2_000_000,))
    with refused(InvalidRecordError, "round 1", "winners (1)"):
        session.settle()
    assert session.settle(0.2).paid == 2_000_000
    with refused(InvalidRecordError, "the allocator stopped"):
        session.award(ASKED)


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_settled_round_without_its_checkpoint_is_trained_again_and_must_come_to_the_same(
    make_federation, tmp_path, repeatable
):
    with contextlib.closing(Store.in_file(tmp_path / "ledger.db")) as store:
        books = Books.open(store, "run", {}, Purse.of(30, 3))
        played_first = session_of(make_federation(), Offer.recruit(2)).rounds(books)
        list(zip(range(3), played_first, strict=False))
        changed = make_federation(seed=1)
        changed.capabilities = Capabilities(repeatable=repeatable)
        with refused(LedgerError, "round 1", "trained again" if repeatable else "is missing"):
            next(session_of(changed, Offer.recruit(2)).rounds(books))
        assert books.last_round() == 1

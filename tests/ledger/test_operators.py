import json
import re
import shutil
import sqlite3
from contextlib import closing

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from refusals import refused
from typer.testing import CliRunner

from bara import Award, AwardedRound, Bids, Delivery, Evaluation, Offer, Purse, RoundRecord
from bara.allocators import Fixed
from bara.cli import app
from bara.errors import ConfigError, LedgerError, RunStoppedError
from bara.ledger import Books, Receipt, Terms, operators, verify
from bara.ledger.attention import attentions
from bara.ledger.payouts import batch_csv, batches, new_batch
from bara.ledger.run_state import add_totals, closed_rounds, failures
from bara.ledger.signatures import check_client_receipt, client_receipt, public_key
from bara.ledger.statements import (
    export_json,
    lines,
    own_statement,
    statement,
    statement_json,
    table_csv,
)
from bara.mechanisms import bid_price_first
from bara.mechanisms.client_cap import ClientCap
from bara.records import MAX_MONEY, money, show_money
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run
from bara.runs.session import Session
from bara.simulator.synthetic import SyntheticFederation

PURSE = 30_000_000
SMALL = [
    "federation.engine=synthetic",
    "allocator.name=even",
    "budget.total=20",
    "budget.max_rounds=10",
    "clients.count=6",
    "clients.failure_rate=0.2",
]


def config(*changes):
    return Config.load(None, [*SMALL, *changes])


def sitting(path, settings=None, *observers):
    """A first sitting with a configuration, a further one without."""
    if settings is not None:
        with RunFolder.new(path, settings) as folder:
            return play_run(folder.config, *observers, folder=folder)
    with RunFolder.find(path) as folder:
        return play_run(folder.config, *observers, folder=folder)


def at(round_number, action):
    """An observer that acts when a round is settled."""

    def observe(step):
        if isinstance(step, RoundRecord) and step.round == round_number:
            action()

    return observe


def look(path, action):
    with RunFolder.find(path) as folder:
        return action(folder.open_books())


def test_a_top_up_while_the_run_goes_on_is_spent_and_adds_up(tmp_path):
    path = tmp_path / "run"
    result = sitting(
        path, config(), at(3, lambda: look(path, lambda books: operators.top_up(books, money(15))))
    )
    assert result.budget == 35
    assert result.spent > play_run(config()).spent
    account = look(path, statement)
    assert (account.opened_with, account.topped_up) == (20_000_000, 15_000_000)
    assert account.budget == account.spent + account.left
    assert look(path, verify).ok
    (added,) = (one for one in look(path, export_json)["events"] if one["kind"] == "topped up")
    assert added["amount_exact"] == "15.00"


def test_a_paused_run_stops_between_rounds_and_continues_to_the_same_end(tmp_path):
    path = tmp_path / "run"
    with refused(RunStoppedError, "paused", "round 4"):
        sitting(path, config(), at(3, lambda: look(path, operators.pause)))
    with refused(LedgerError, "'run'", f"bara ledger {path} continue"):
        look(path, operators.pause)
    assert sitting(path) == play_run(config())


def test_a_top_up_and_a_pause_survive_a_resume(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(RunStoppedError):
        sitting(path, config(), at(2, lambda: look(path, operators.pause)))
    look(path, lambda books: operators.top_up(books, money(10)))
    again = sitting(path)
    twin = sitting(
        tmp_path / "twin",
        config(),
        at(2, lambda: look(tmp_path / "twin", lambda b: operators.top_up(b, 10_000_000))),
    )
    assert again == twin


def test_an_award_above_the_limit_waits_for_approval_and_is_then_trained_as_promised(tmp_path):
    path = tmp_path / "run"
    settings = config("ledger.approve_above=0.5")
    waits = ("round 1", "ledger.approve_above = 0.50", f"bara ledger {path} approve 1")
    with refused(RunStoppedError, *waits):
        sitting(path, settings)
    promised = look(path, lambda books: books.awarded().award)
    with refused(RunStoppedError, *waits):
        sitting(path)
    with refused(LedgerError, "round 2", "ledger.approve_above"):
        look(path, lambda books: operators.approve(books, 2))
    look(path, lambda books: operators.approve(books, 1))
    with refused(LedgerError, "round 1", "already approved"):
        look(path, lambda books: operators.approve(books, 1))
    with refused(RunStoppedError, "round 2", f"bara ledger {path} approve 2"):
        sitting(path)
    settled = look(path, lambda books: list(books.history())[1])
    assert settled.awarded.award == promised
    assert look(path, verify).ok


def test_a_declined_award_is_trained_by_nobody_paid_to_nobody_and_held_against_nobody(tmp_path):
    path = tmp_path / "run"
    with refused(RunStoppedError, f"{path} approve 1 --reason TEXT`", "`decline 1 --reason TEXT`"):
        sitting(path, config("ledger.approve_above=0.5", "clients.failure_rate=0"))
    promised = look(path, lambda books: books.awarded().award)
    look(path, lambda books: operators.decline(books, 1))
    for answer in (operators.approve, operators.decline):
        with refused(LedgerError, "round 1", "already declined"):
            look(path, lambda books: answer(books, 1))  # noqa: B023 - called at once
    with refused(RunStoppedError, "round 2", f"bara ledger {path} approve 2"):
        sitting(path)
    _, first = look(path, lambda books: list(books.history()))
    assert (first.awarded.award, first.n, first.paid, dict(first.delivery.void)) == (
        Award(),
        0,
        0,
        {},
    )
    second = look(path, lambda books: books.awarded())
    assert set(promised.clients) <= set(
        second.bids.clients
    )  # a client that had failed would sit this round out
    account = look(path, statement)
    assert account.rounds[1].paid == 0
    assert account.rounds[1].promised == promised.cost
    reasons = {
        line.reason for line in look(path, lambda books: list(lines(books))) if line.round == 1
    }
    assert reasons == {"declined by the operator"}
    assert look(path, lambda books: failures(books, -1, 1)) == []
    totals = {}
    look(path, lambda books: add_totals(books, totals, closed_rounds(books, -1, 1)))
    prices = dict(zip(first.awarded.bids.clients, map(int, first.awarded.bids.prices), strict=True))
    assert {client: one.asked for client, one in totals.items() if one.won} == {
        one: prices[one] for one in promised.clients
    }
    assert look(path, verify).ok


HOPELESS = [
    *(
        "allocator.name=planner",
        "budget.max_rounds=20",
        "budget.target=0.9",
        "budget.otherwise=ask",
    ),
    *("federation.a_max=0.3", "federation.delta=0.01", "federation.v_1=1e-4"),
]


def test_a_target_out_of_reach_waits_once_and_goes_on_or_ends_as_the_operator_says(tmp_path):
    """Also the dashboard's and the statement's `waiting`, and a resume in the middle of it all."""
    ends = {}
    for answer in (operators.approve, operators.decline):
        path = tmp_path / answer.__name__
        with refused(RunStoppedError, "target", "90 %") as caught:
            sitting(path, config(*HOPELESS))
        waiting = look(path, statement).waiting
        assert waiting == look(path, Books.last_round) + 1
        needs = {one.key: one for one in look(path, attentions)}
        assert "90 %" in needs[f"approval of round {waiting}"].text
        asked = (f"round {waiting}", f"bara ledger {path} approve {waiting}")
        assert all(fact in str(caught.value) for fact in asked)
        with refused(RunStoppedError, "target", "90 %", *asked):
            sitting(path)
        look(path, lambda books: answer(books, waiting))  # noqa: B023 - called at once
        ends[answer.__name__] = sitting(path).ended
        assert look(path, verify).ok
    assert ends["approve"] == "the deadline is reached"
    assert ends["decline"].startswith("the target of 90 % looks out of reach")


def test_a_run_towards_a_target_that_is_resumed_in_the_middle_ends_as_one_that_was_not(tmp_path):
    goal = ("allocator.name=planner", "budget.target=0.35", "budget.max_rounds=30")
    whole = sitting(tmp_path / "whole", config(*goal))
    for round_number in (3, 9):

        def stop():
            raise RunStoppedError

        settings = None if (tmp_path / "parts").exists() else config(*goal)
        with pytest.raises(RunStoppedError):
            sitting(tmp_path / "parts", settings, at(round_number, stop))
    assert sitting(tmp_path / "parts") == whole


def test_a_run_without_books_cannot_ask():
    with refused(ConfigError, 'budget.otherwise = "ask"', "books", "folder"):
        play_run(config(*HOPELESS))


def test_a_run_with_declined_and_approved_awards_ends_and_adds_up(tmp_path):
    path, settings = (
        tmp_path / "run",
        config("ledger.approve_above=1.5", "ledger.retention=drop", "budget.max_rounds=6"),
    )
    answers = iter([operators.decline, operators.approve] * 3)
    while True:
        try:
            result = sitting(path, None if path.exists() else settings)
            break
        except RunStoppedError:
            waiting = look(path, Books.last_round) + 1
            look(path, lambda books: next(answers)(books, waiting))  # noqa: B023 - called at once
    account = look(path, statement)
    assert 0 < account.spent == round(result.spent * 1e6)
    assert 0 in [entry["n"] for entry in result.history[1:]]
    assert look(path, verify).ok


def test_a_round_below_the_limit_can_be_neither_approved_nor_declined(open_books, play_into):
    """It is trained at once: an answer would come too late."""
    books = open_books(terms=Terms(approve_above=10**9))
    play_into(books, steps=2)
    for answer in (operators.approve, operators.decline):
        with refused(LedgerError, "round 1", "ledger.approve_above"):
            answer(books, 1)


def crash_in(monkeypatch, number):
    """Training in that round fails, at each resume."""
    train = SyntheticFederation.train

    def fail(self, round_number, award):
        if round_number == number:
            raise ZeroDivisionError
        return train(self, round_number, award)

    monkeypatch.setattr(SyntheticFederation, "train", fail)


def void(path, round_number, reason="training fails at each resume"):
    with RunFolder.find(path) as folder:
        operators.void(folder.hold_books(), round_number, reason)


@pytest.mark.parametrize("retention", ["keep", "drop"])
def test_a_stuck_promise_is_taken_back_and_the_run_goes_on(tmp_path, monkeypatch, retention):
    path, settings = (
        tmp_path / "run",
        config(f"ledger.retention={retention}", f"ledger.receipt={tmp_path / 'receipt'}"),
    )
    crash_in(monkeypatch, 3)
    for again in (settings, None, None):
        with pytest.raises(ZeroDivisionError):
            sitting(path, again)
    promised, before = look(path, lambda books: books.awarded().award), look(path, statement)
    assert before.outstanding == promised.cost > 0
    void(path, 3)
    told = look(path, statement)
    assert (told.outstanding, told.spent, told.left) == (0, before.spent, before.left)
    assert look(path, lambda books: verify(books, Receipt.read(tmp_path / "receipt"))).ok
    reason = "voided by the operator: training fails at each resume"
    for _ in range(2):  # and shown again once it has ended, when the past is told anew
        result = sitting(path)
        assert (result.rounds, result.history[3]["n"]) == (10, 0)
    after = look(path, lambda books: [line for line in lines(books) if line.round == 3])
    assert {line.client: (line.paid, line.reason) for line in after} == dict.fromkeys(
        promised.clients, (0, reason)
    )
    record = look(path, lambda books: list(books.history())[3])
    assert (record.awarded.award, record.paid, dict(record.delivery.void)) == (Award(), 0, {})
    assert 3 not in {one.round for one in look(path, lambda books: failures(books, -1, 10))}
    assert look(path, verify).ok
    account = look(path, statement)
    assert account.spent == round(result.spent * 1e6) > before.spent


def test_only_an_open_promise_can_be_void_and_only_once(tmp_path, monkeypatch):
    path = tmp_path / "run"
    crash_in(monkeypatch, 3)
    with pytest.raises(ZeroDivisionError):
        sitting(path, config())
    for number, state in ((2, "already settled"), (4, "not promised"), (0, "already settled")):
        with refused(LedgerError, f"round {number}", state, "void"):
            void(path, number)
    with refused(LedgerError, "--reason", "'  '"):
        void(path, 3, "  ")
    with refused(LedgerError, "--reason", r"\udcff"):
        void(path, 3, "what a terminal in another encoding says: \udcff")
    events = look(path, Books.receipt).events
    void(path, 3)
    assert look(path, Books.receipt).events == events + 1
    with refused(LedgerError, "round 3", "already voided"):
        void(path, 3)
    sitting(path)
    with refused(LedgerError, "round 3", "already settled"):
        void(path, 3)


def test_an_award_that_waits_for_approval_can_be_void_and_then_not_be_approved(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(RunStoppedError):
        sitting(path, config("ledger.approve_above=0.5"))
    void(path, 1)
    assert look(path, statement).waiting is None
    for answer in (operators.approve, operators.decline):
        with refused(LedgerError, "round 1", "already voided"):
            look(path, lambda books: answer(books, 1))  # noqa: B023 - called at once
    with refused(RunStoppedError, "round 2", f"bara ledger {path} approve 2"):
        sitting(path)


def test_nothing_is_void_in_a_copy_or_in_a_record_that_is_not_whole(tmp_path, monkeypatch):
    path, copy = tmp_path / "run", tmp_path / "copy"
    crash_in(monkeypatch, 3)
    with pytest.raises(ZeroDivisionError):
        sitting(path, config())
    shutil.copytree(path, copy)
    with refused(LedgerError, "'run'", "bara ledger", "adopt --reason TEXT`"):
        void(copy, 3)
    with closing(sqlite3.connect(path / "ledger.db")) as connection:
        connection.execute("DROP TRIGGER promises_no_update")
        connection.execute("UPDATE promises SET amount = amount + 1 WHERE round = 3")
        connection.commit()
    with refused(LedgerError, path, "event", "hash", "round 3"):
        void(path, 3)


def test_a_voided_round_that_pays_somebody_all_the_same_is_found(open_books, play_into):
    """A process that was not told goes on and pays: bare books hold no lock."""
    books = open_books()
    steps = play_into(books, steps=2)
    operators.void(Books.find(books.store), 1, "it takes too long")
    books.record(steps[1].settle(Delivery.complete(steps[1].award, Evaluation(0.5))))
    assert "pays somebody, though the operator took its award back" in verify(books).problem


@pytest.mark.parametrize(
    ("key", "value", "facts"),
    [
        ("retention", "'keep'", ("ledger.retention", "'drop'", "'keep'")),
        ("approve_above", "99", ("ledger.approve_above", "0.5", "99.0")),
        ("total", "9000.0", ("budget.total", "20.0", "9000.0", "topup")),
        ("seed", "7", ("seed", "0", "7")),
    ],
)
def test_a_configuration_that_was_changed_since_is_refused_and_put_back_goes_on(
    tmp_path, key, value, facts
):
    path = tmp_path / "run"
    with pytest.raises(RunStoppedError):
        sitting(path, config("ledger.retention=drop", "ledger.approve_above=0.5"))
    file = path / "config.toml"
    before = file.read_text()
    file.write_text(re.sub(rf"(?m)^{key} = .*", f"{key} = {value}", before))
    with refused(ConfigError, *facts, "opened with"):
        sitting(path)
    file.write_text(before)
    with pytest.raises(RunStoppedError):
        sitting(path)


def test_the_receipt_may_move_while_a_run_stands(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(RunStoppedError):
        sitting(
            path,
            config(f"ledger.receipt={tmp_path / 'one'}"),
            at(3, lambda: look(path, operators.pause)),
        )
    file = path / "config.toml"
    file.write_text(file.read_text().replace(str(tmp_path / "one"), str(tmp_path / "two")))
    (tmp_path / "one").rename(tmp_path / "two")
    sitting(path)
    assert look(path, lambda books: verify(books, Receipt.read(tmp_path / "two"))).ok


@pytest.mark.parametrize("key", [None, b"mistyped"])
def test_an_operator_without_the_key_may_read_and_cannot_break_the_chain(
    open_books, play_into, key
):
    books = open_books("keyed", Terms(key=b"right"))
    play_into(books, steps=3)
    other = Books.find(books.store, terms=Terms(key=key))
    if key is None:
        assert statement(other).spent == statement(books).spent
        with refused(LedgerError, "'keyed'", "verifying", "ledger.key"):
            batches(other)
    why = "first event" if key else "environment variable"
    for action in (
        operators.pause,
        lambda one: operators.top_up(one, 1),
        *([statement] if key else []),
    ):
        with refused(LedgerError, "'keyed'", "ledger.key", why):
            action(other)
    assert verify(books).ok
    operators.pause(books)
    assert verify(books).ok


def test_no_key_can_be_brought_to_a_run_that_was_opened_without(open_books, play_into):
    books = open_books()
    play_into(books, steps=3)
    with refused(LedgerError, "'run'", "ledger.key", "first event"):
        operators.pause(Books.find(books.store, terms=Terms(key=b"new")))


def test_a_budget_cannot_be_topped_up_beyond_what_money_can_count(open_books, play_into):
    books = open_books()
    play_into(books, steps=3)
    operators.top_up(books, MAX_MONEY - PURSE)
    with refused(LedgerError, "at most 0.00,", "0.000001"):
        operators.top_up(books, 1)
    assert books.before_round(books.purse).total == MAX_MONEY


def test_a_top_up_that_is_made_again_after_an_error_is_added_once(
    open_books, play_into, monkeypatch
):
    def add(amount=5_000_000, once="invoice 7"):
        return operators.top_up(books, amount, once=once)

    calls = []

    def fail(books):
        calls.append(books)
        if len(calls) == 2:  # after the commit
            raise LedgerError("the disk of the receipt is full")

    books = open_books()
    play_into(books, steps=3)
    with monkeypatch.context() as patch:
        patch.setattr(Books, "write_receipt", fail)
        with refused(LedgerError, "full"):
            add()
    assert not add()
    with refused(LedgerError, "'invoice 7'", "5.00", "6.00", "--once"):
        add(6_000_000)
    assert add(once="invoice 8")
    books.close("the deadline is reached")
    assert not add()  # also once the run has ended
    assert books.before_round(books.purse).total == books.purse.total + 10_000_000
    assert verify(books).ok


def test_the_command_says_that_a_top_up_was_added_before(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(RunStoppedError):
        sitting(path, config(), at(2, lambda: look(path, operators.pause)))
    words = ["ledger", str(path), "topup", "5", "--reason", "agreed", "--once", "invoice 7"]
    said = [CliRunner().invoke(app, words).stdout for _ in range(2)]
    assert said == [
        "the budget is 25.00 now\n",
        "invoice 7 was added before; the budget is 25.00\n",
    ]


@pytest.mark.parametrize("name", ["", " ", "a\ud800"])
def test_a_top_up_needs_a_name_that_can_be_stored(open_books, play_into, name):
    books = open_books()
    play_into(books, steps=3)
    with refused(LedgerError, "--once", repr(name)):
        operators.top_up(books, 5_000_000, once=name)


def test_a_statement_says_that_a_run_is_paused_or_waits_for_an_answer(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(RunStoppedError):
        sitting(path, config("ledger.approve_above=0.5"))
    assert look(path, statement).waiting == 1
    look(path, lambda books: operators.approve(books, 1))
    assert look(path, statement).waiting is None
    assert not look(path, statement).paused
    look(path, operators.pause)
    assert look(path, statement).paused


def test_a_receipt_that_is_gone_stops_a_resume_until_it_is_back(tmp_path):
    path, receipt = tmp_path / "run", tmp_path / "receipt.json"
    with pytest.raises(RunStoppedError):
        sitting(
            path, config(f"ledger.receipt={receipt}"), at(3, lambda: look(path, operators.pause))
        )
    receipt.rename(tmp_path / "elsewhere.json")
    with refused(
        LedgerError, receipt, "missing", f"ledger {path} adopt --new-receipt --reason TEXT"
    ):
        sitting(path)
    (tmp_path / "elsewhere.json").rename(receipt)
    assert sitting(path).rounds == 10


def test_a_receipt_is_written_to_one_place_wherever_a_run_is_resumed(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run"
    with pytest.raises(RunStoppedError):
        sitting(
            path, config("ledger.receipt=receipt.json"), at(3, lambda: look(path, operators.pause))
        )
    monkeypatch.chdir(tmp_path / "there")
    sitting(path)
    assert not (tmp_path / "there" / "receipt.json").exists()
    assert look(path, lambda books: books.receipt()) == Receipt.read(tmp_path / "receipt.json")


def test_a_receipt_in_a_folder_that_is_not_there_is_refused_before_anything_is_written(tmp_path):
    with refused(ConfigError, "ledger.receipt", f"{tmp_path}/nowhere"):
        sitting(tmp_path / "run", config(f"ledger.receipt={tmp_path}/nowhere/receipt.json"))
    assert not (tmp_path / "run").exists()


def test_a_run_that_has_ended_awards_nothing_more_whatever_is_bid_since(
    open_books, make_federation
):
    """It ended because two were too expensive.

    Bids that are cheap when it is looked at again buy nothing.
    """
    books, federation = open_books(), make_federation(clients=3)
    dear, cheap = (
        Bids.of({"ann": 20, "bob": 20, "cat": 21}),
        Bids.of({"ann": 1, "bob": 1, "cat": 1}),
    )

    def play(bids):
        federation.bids = lambda _: bids
        session = Session(Stubborn(), bid_price_first(), federation)
        return session, list(session.rounds(books))

    session, _ = play(dear)
    events = books.receipt().events
    again, steps = play(cheap)
    assert (again.ended, steps, books.receipt().events) == (session.ended, [], events)


class Stubborn:
    """Two clients or none."""

    def ask(self, _purse):
        return Offer.recruit(2, shortfall="stop")

    def tell(self, record):
        pass


def test_of_two_runs_that_begin_in_one_folder_the_second_leaves_no_trace(tmp_path):
    with (
        RunFolder.new(tmp_path / "run", config()) as one,
        RunFolder.new(tmp_path / "run", config("seed=1")) as two,
    ):
        one.claim_books()
        before = (tmp_path / "run" / "config.toml").read_text()
        with refused(ConfigError, f"'{tmp_path / 'run'}'", "holds a run", "--out"):
            two.claim_books()
        assert (tmp_path / "run" / "config.toml").read_text() == before


def test_a_new_run_does_not_go_on_with_another_of_the_same_name_in_a_shared_database(tmp_path):
    settings = config(f"ledger.url=sqlite:///{tmp_path / 'shared.db'}")
    sitting(tmp_path / "one" / "run", settings)
    with refused(ConfigError, tmp_path / "shared.db", "'run'", "--out"):
        sitting(tmp_path / "two" / "run", settings)
    sitting(tmp_path / "two" / "another", settings)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"run": "r", "events": "9", "head": "x"}', "nonsense"]
)
def test_what_is_no_receipt_is_refused(tmp_path, text):
    (tmp_path / "receipt.json").write_text(text)
    with refused(LedgerError, tmp_path / "receipt.json", "not a receipt"):
        Receipt.read(tmp_path / "receipt.json")


def test_a_run_that_has_ended_takes_no_more_money(tmp_path):
    sitting(tmp_path / "run", config())
    for action, what in (
        (operators.pause, "paused"),
        (lambda books: operators.top_up(books, 1), "topped up"),
    ):
        with refused(LedgerError, "'run'", "ended", what):
            look(tmp_path / "run", action)
    with refused(LedgerError, "top-up", "positive", "got 0.00"):
        look(tmp_path / "run", lambda books: operators.top_up(books, 0))


def test_no_client_is_ever_paid_more_than_its_cap():
    free, capped = play_run(config()), play_run(config("ledger.client_cap=2"))
    assert max(free.payments.values()) > 2
    assert max(capped.payments.values()) <= 2
    with refused(ConfigError, "ledger.client_cap", "-1"):
        config("ledger.client_cap=-1")


def test_a_cap_is_a_personal_reserve_price():
    """Ann may still get 1.5: she wins at 1 and is paid 1.5, not the critical 3.

    At 1.6 she is left out.
    """
    capped = ClientCap(bid_price_first(), money(5))
    purse = Purse.of(100, 1)
    first = AwardedRound.of(purse, Offer.recruit(1), capped.menu(Bids.of({"ann": 1, "bob": "3.5"})))
    capped.tell(first.settle(Delivery.complete(first.award, Evaluation(0.5))))
    assert first.award.payments == (money("3.5"),)  # so that 1.5 of her 5 is left
    award = capped.menu(Bids.of({"ann": 1, "bob": 3, "cat": 4})).award(Offer.recruit(1), purse)
    assert (award.clients, award.payments) == (("ann",), (1_500_000,))
    award = capped.menu(Bids.of({"ann": "1.6", "bob": "1.2", "cat": "1.4"})).award(
        Offer.recruit(1), purse
    )
    assert (award.clients, award.payments) == (("bob",), (1_400_000,))


def test_a_statement_adds_up_and_a_clients_own_shows_nobody_elses_bids(open_books, play_into):
    books = open_books()
    steps = play_into(books)
    account = statement(books)
    settled = [step for step in steps if isinstance(step, RoundRecord)]
    assert account.spent == sum(record.paid for record in settled) == settled[-1].purse_after.spent
    assert (
        sum(total.void for total in account.clients)
        == sum(len(record.delivery.void) for record in settled)
        > 0
    )
    for total in account.clients:
        assert total.promised == total.paid + total.returned
    client = account.clients[0].client
    total, own = own_statement(books, client)
    assert total == account.clients[0]
    assert {line.client for line in own} == {client}
    text = table_csv(own) + json.dumps([vars(line) for line in own])
    for record in settled:
        for other, price in zip(
            record.awarded.bids.clients, record.awarded.bids.prices.tolist(), strict=True
        ):
            paid = record.awarded.award.payments
            assert other == client or price in paid or str(price) not in text
    assert statement_json(account)["spent"] == account.spent / 1e6


def test_payouts_are_what_was_paid(open_books, play_into):
    books = open_books()
    play_into(books)
    rows = [line.split(",") for line in batch_csv(books, new_batch(books)).splitlines()[1:]]
    assert sum(money(amount) for _, amount, *_ in rows) == statement(books).spent


def test_a_client_can_check_its_signed_receipt_and_no_one_can_forge_one(open_books, play_into):
    books = open_books("keyed", Terms(key=b"the operator's"))
    play_into(books)
    key, client = public_key(books), statement(books).clients[0]
    receipt = json.loads(json.dumps(client_receipt(books, client.client)))
    check_client_receipt(receipt, key, client.paid)
    with refused(LedgerError, show_money(client.paid), show_money(client.paid + 1)):
        check_client_receipt(receipt, key, client.paid + 1)
    with refused(LedgerError, "signature does not match"):
        check_client_receipt({**receipt, "paid": receipt["paid"] + 1}, key)
    with refused(LedgerError, "signature does not match"):
        check_client_receipt(receipt, public_key(open_books("other", Terms(key=b"another"))))
    lying = {name: receipt[name] for name in receipt if name not in ("public_key", "signature")}
    lying["paid"] += 1
    own = Ed25519PrivateKey.generate()
    signed = json.dumps(lying, sort_keys=True, separators=(",", ":"))
    lying["signature"] = own.sign(signed.encode()).hex()
    with refused(LedgerError, "rounds", "add up"):
        check_client_receipt(lying, own.public_key().public_bytes_raw().hex())
    for nothing in ({}, [], "receipt"):
        with refused(LedgerError, "not a signed receipt"):
            check_client_receipt(nothing, key)
    with refused(LedgerError, "'keyed'", "ledger.key", "first event"):
        public_key(Books.find(books.store, terms=Terms(key=b"mistyped")))
    with refused(ConfigError, "signing", "ledger.key"):
        public_key(open_books("plain"))


def test_privacy_spent_is_counted_where_bids_carry_it(open_books, make_federation):
    books = open_books()
    federation = make_federation(clients=4)
    original = federation.bids
    federation.bids = lambda t: Bids(
        original(t).clients, original(t).prices, {"epsilon": [0.5, 0.25, 0.125, 1.0]}
    )
    list(Session(Fixed(2), bid_price_first(), federation).rounds(books))
    spent = {total.client: total.privacy for total in statement(books).clients}
    won = {total.client: total.won for total in statement(books).clients}
    assert spent["client-1"] == 0.25 * won["client-1"]


def test_half_of_a_checkpoint_is_refused_before_silos_train_again_unpaid(open_books):
    class Silos(SyntheticFederation):
        def checkpoint(self, last):
            return last

    silos = Silos.__new__(Silos)
    with refused(ConfigError, "Silos", "`checkpoint`", "Resumable", "`sealed`", "`replay`"):
        list(Session(Fixed(1), bid_price_first(), silos).rounds(open_books()))

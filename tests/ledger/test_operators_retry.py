"""A command of an operator or a cashier may fail at any moment and be given again: it counts once.

As in `tests/runs/test_retries.py`, the store fails once, at each call and each fault point in turn,
before or after what was written is durable. Whoever gave the command gives it again until it works
or is refused. The books must equal those of a run in which nothing failed.
"""

import contextlib
import threading
from itertools import groupby
from pathlib import Path

import pytest
from striking import STRUCK, strike

import bara
from bara.errors import LedgerError, WaitingError
from bara.ledger import Receipt, operators, verify
from bara.ledger.bank import reconcile
from bara.ledger.corrections import correct
from bara.ledger.payouts import batch_csv, batches, new_batch, returned
from bara.records import Entry, money
from bara.runs.database import DatabaseRun

BIDS = {"north": 3, "south": 4, "east": 6}
FILES = ("books.db", "receipt.json")


@pytest.fixture
def misfortune(monkeypatch):
    return strike(monkeypatch, "bara.ledger.books.point")


@pytest.fixture
def config(tmp_path):
    return {
        "budget": {"total": 100, "max_rounds": 9, "currency": "EUR"},
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "mechanism": {"name": "bid-price-first"},
        "ledger": {
            "url": f"sqlite:///{tmp_path}/books.db",
            "receipt": f"{tmp_path}/receipt.json",
            "clients": list(BIDS),
        },
    }


def at(config, action):
    with DatabaseRun.of("spring", config) as place:
        return action(place.open_books())


def promised(config):
    """Settle a round, and promise another, unless the first has to wait for approval."""
    with bara.open_session("spring", config) as session, contextlib.suppress(WaitingError):
        session.begin(0.1)
        session.ask()
        session.award(BIDS)
        session.settle(0.2)
        session.ask()
        session.award(BIDS)


def waiting(config):
    config["ledger"] |= {"approve_above": 1, "approvals": 2}
    promised(config)


def endorsed(config):
    waiting(config)
    at(config, lambda books: operators.approve(books, 1, by="ben"))


def paused(config):
    promised(config)
    at(config, operators.pause)


def without_receipt(config):
    promised(config)
    Path(config["ledger"]["receipt"]).unlink()


def paid_out(config):
    """Make a batch; the bank's statement, which shows it, is in the folder."""
    promised(config)
    at(config, new_batch)
    folder = Path(config["ledger"]["receipt"]).parent
    (folder / "bank.csv").write_text(at(config, lambda books: batch_csv(books, batches(books)[0])))


def read_in(books):
    reconcile(books, books.terms.receipt.with_name("bank.csv"), by="ann")


COMMANDS = {
    "top up": (promised, lambda books: operators.top_up(books, money(5), by="ann", once="bill 7")),
    "pause": (promised, lambda books: operators.pause(books, by="ann")),
    "continue": (paused, lambda books: operators.let_go_on(books, by="ann")),
    "adopt": (promised, lambda books: operators.adopt(books, by="ann")),
    "begin a receipt": (
        without_receipt,
        lambda books: operators.adopt(
            books, new_receipt=not books.terms.receipt.exists(), by="ann"
        ),
    ),
    "endorse": (waiting, lambda books: operators.approve(books, 1, by="ann")),
    "approve": (endorsed, lambda books: operators.approve(books, 1, by="ann")),
    "decline": (endorsed, lambda books: operators.decline(books, 1, by="ann")),
    "void": (promised, lambda books: operators.void(books, 2, "no data", by="ann")),
    "register": (
        promised,
        lambda books: operators.register(books, "west", Entry(limit=money(7)), by="ann"),
    ),
    "strike off": (promised, lambda books: operators.strike_off(books, "east", by="ann")),
    "forget": (promised, lambda books: operators.forget(books, "north", by="ann")),
    "correct": (
        promised,
        lambda books: correct(books, 1, "north", money(-1), by="ann", once="letter 8"),
    ),
    "pay out": (promised, lambda books: new_batch(books, by="ann")),
    "came back": (paid_out, lambda books: returned(books, 1, by="ann")),
    "reconcile": (paid_out, read_in),
}


@pytest.mark.parametrize(("before", "command"), COMMANDS.values(), ids=list(COMMANDS))
def test_property_a_command_that_fails_anywhere_and_is_given_again_counts_once(
    config, tmp_path, misfortune, before, command
):
    before(config)
    files = [tmp_path / name for name in FILES]
    stored = {path: path.read_bytes() for path in files if path.exists()}

    def given(fails_at):
        for path in files:
            if path in stored:
                path.write_bytes(stored[path])
            else:
                path.unlink(missing_ok=True)
        with DatabaseRun.of("spring", config) as place:
            books = place.open_books()
            misfortune.calls, misfortune.fails_at = 0, fails_at
            insist(lambda: command(books))
            moments, misfortune.fails_at = misfortune.calls, 0
            assert verify(books, books.stored_receipt()).ok
            assert books.stored_receipt() == books.receipt()
            return moments, told(books)

    moments, undisturbed = given(0)
    assert moments > 5
    for moment in range(1, moments + 1):
        _, disturbed = given(moment)
        assert disturbed == undisturbed, f"an error at moment {moment} of {moments}"


def insist(command):
    """Give a command until it works, or is refused because of what it did before."""
    for _ in range(3):
        try:
            return command()
        except LedgerError as error:
            if str(error) != STRUCK:
                return None
    return command()


def told(books):
    """Every event; one that says the same as the event before it counts once."""
    with books.store.read() as connection:
        events = [(one.kind, one.round, one.body) for one in books.chain.events(connection)]
    return [one for one, _ in groupby(events)]


def test_a_slow_operator_puts_back_no_older_receipt(config, monkeypatch):
    promised(config)
    write = Receipt.write
    others = []

    def write_slowly(receipt, path):
        if not others:
            top_up = lambda books: operators.top_up(books, money(1))  # noqa: E731
            others.append(threading.Thread(target=at, args=(config, top_up)))
            others[0].start()
            others[0].join(0.5)
        write(receipt, path)

    monkeypatch.setattr(Receipt, "write", write_slowly)
    at(config, operators.pause)
    others[0].join()
    assert at(config, lambda books: books.stored_receipt() == books.receipt())

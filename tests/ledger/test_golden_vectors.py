"""What was hashed and signed once stays so: the bytes of events, the chain, receipts, signatures.

`vectors.json` holds a small ledger with every kind of event, with a key and without, as it was
first written. `python tests/ledger/test_golden_vectors.py` writes it anew; do so only for content
that no release has written yet, and look at what changes.
"""

import contextlib
import getpass
import hashlib
import hmac
import json
import secrets
import tempfile
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

import bara
from bara.allocators import Even
from bara.ledger import Books, Receipt, Store, Terms, _events, operators, verify
from bara.ledger.bank import reconcile
from bara.ledger.corrections import correct
from bara.ledger.decisions import COMMANDS
from bara.ledger.payouts import new_batch, reference_of, returned
from bara.ledger.signatures import check_client_receipt, client_receipt
from bara.ledger.statements import Period
from bara.market import Market
from bara.mechanisms import bid_price_first
from bara.records import Delivery, Entry, Evaluation, Evidence, Purse

VECTORS = Path(__file__).with_name("vectors.json")
KEY = b"correct-horse-battery-staple"
ASKED = {"ann": "2.00", "bob": "2.50", "zoë": "3.25"}


@contextlib.contextmanager
def fixed_surroundings(linked):
    """Fix the time, the salts and the place; note each text that is hashed, by its hash."""
    seconds, salts = count(), count()
    link = _events.link

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            begun = datetime(2026, 1, 31, 23, 59, 57, tzinfo=tz or UTC)
            return begun + timedelta(seconds=next(seconds))

    def noted(previous, content, key=None):
        value = link(previous, content, key)
        linked.setdefault(value, content)
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_events, "datetime", Clock)
        patch.setattr(_events, "link", noted)
        patch.setattr(secrets, "token_hex", lambda n: f"{next(salts):0{2 * n}x}")
        patch.setattr(Store, "identity", lambda _store: "the place of the vectors")
        patch.setenv("BARA_OPERATOR", "zoë operator")
        patch.setattr(getpass, "getuser", lambda: "login")
        yield


def play(books):
    """Write every kind of event: five rounds, and whatever an operator and a cashier may say."""
    market = Market(Even(carry_over=True), bid_price_first(), books.purse, books.before_round)

    def settled(record):
        memories = {}
        if books.terms.retention == "drop":
            memories = {"mechanism": {"rounds": record.round}}
        books.record(record, memories, checkpoint=f"digest-{record.round}")
        market.tell(record)

    def promised():
        awarded = market.award(market.ask(), bara.Bids.of(ASKED))
        with contextlib.suppress(bara.errors.PausedError):
            books.record(awarded)
        return awarded

    def refused(how, *words):
        promised()
        how(books, market.purse.round, *words)
        settled(market.settle(books.awarded(), market.unchanged()))

    settled(market.begin(Evaluation(0.1, loss=2.5)))
    awarded = promised()
    operators.approve(books, 1)
    first, *others = awarded.award.clients
    evidence = Evidence(samples=120, loss_before=2.5, loss_after=1.75, seconds=0.5)
    delivery = Delivery(
        Evaluation(0.3, loss=1.9, test_accuracy=0.29),
        {first: evidence},
        dict.fromkeys(others, "it did not answer"),
        ages={2: 1},
        contributions={first: 0.01},
    )
    settled(market.settle(awarded, delivery))
    operators.pause(books)
    operators.let_go_on(books)
    operators.top_up(books, 5_000_000)
    operators.forget(books, first)
    refused(operators.decline)
    refused(operators.void, "the training fails")
    new_batch(books)
    awarded = promised()
    operators.approve(books, 4)
    settled(market.settle(awarded, Delivery.complete(awarded.award, Evaluation(0.5))))
    operators.adopt(books)
    books.note_notified("paused")
    books.close("the deadline is reached")
    return first


def decide(books):
    """Write what several people may decide and what the bank says: one round, and after it."""
    market = Market(Even(carry_over=True), bid_price_first(), books.purse, books.before_round)
    books.record(record := market.begin(Evaluation(0.1)))
    market.tell(record)
    awarded = market.award(market.ask(), bara.Bids.of(ASKED))
    with contextlib.suppress(bara.errors.PausedError):
        books.record(awarded)
    operators.approve(books, 1, by="ann", reason="as agreed")
    operators.approve(books, 1, by="bob", reason="seen, too")
    books.record(market.settle(awarded, Delivery.complete(awarded.award, Evaluation(0.3))))
    operators.register(books, "dan", Entry(limit=9_000_000), by="ann", reason="joined in May")
    operators.strike_off(books, "zoë", by="ann", reason="left")
    first, second, *_ = awarded.award.clients
    correct(books, 1, first, -500_000, by="ann", reason="half a euro too much")
    batch = new_batch(books, by="bob")
    amounts = {client: amount for client, amount, _ in batch.payments}
    place = list(amounts).index(first) + 1
    statement = books.terms.receipt.with_name("bank.csv")
    reference = reference_of(books, 1, place)
    statement.write_text(f"reference,amount,date\n{reference},{amounts[first] / 1e6},2026-02-03\n")
    reconcile(books, statement, by="bob")
    returned(books, 1, [second], by="bob", reason="account closed")
    new_batch(books, by="bob")
    return first


PLAYS = {
    "keep": (play, {"retention": "keep"}),
    "drop": (play, {"retention": "drop", "key": KEY}),
    "decide": (decide, {"approvals": 2, "register": {"ann": Entry(fee=9_000_000), "zoë": Entry()}}),
}
"""What is written into each ledger, and on what terms."""


def vectors(folder, name):
    """The small ledger with its receipt and what a client is given of it."""
    write, terms = PLAYS[name]
    linked = {}
    with fixed_surroundings(linked), contextlib.closing(Store.in_file(folder / "v.db")) as store:
        terms = Terms(approve_above=1_000_000, receipt=folder / "receipt.json", **terms)
        books = Books.open(store, "vectors", {"seed": 7}, Purse.of(30, 4, "EUR"), terms)
        client = write(books)
        assert verify(books, books.stored_receipt()).ok
        with store.read() as connection:
            events = list(books.chain.events(connection))
        found = {
            "chain": [[linked[event.hash], event.hash] for event in events],
            "receipt": (folder / "receipt.json").read_text(),
        }
        if terms.key is not None:
            found["signed"] = [
                client_receipt(books, client),
                client_receipt(books, client, Period("2026-01-01", "2026-02-28"), "ab" * 32),
            ]
    return found


def all_vectors(folder):
    made = {}
    for name in PLAYS:
        (folder / name).mkdir()
        made[name] = vectors(folder / name, name)
    return made


@pytest.fixture(scope="module")
def stored():
    return json.loads(VECTORS.read_text())


def test_the_same_events_are_written_with_the_same_bytes_and_hashes(tmp_path, stored):
    made = json.loads(json.dumps(all_vectors(tmp_path)))
    for name, known in stored.items():
        for one, other in zip(made[name]["chain"], known["chain"], strict=True):
            assert one == other
        assert made[name] == known


def test_the_vectors_hold_every_kind_of_event(stored):
    kinds = {}
    for name, known in stored.items():
        kinds[name] = {json.loads(text)[2] for text, _ in known["chain"]}
    assert kinds["keep"] == kinds["drop"] == {
        "opened", "settled", "bids", "awarded", "approved", "declined", "voided", "paused",
        "continued", "topped up", "forgotten", "paid out", "adopted", "notified", "closed",
    }  # fmt: skip
    assert kinds["decide"] == {
        "opened", "settled", "bids", "awarded", "endorsed", "approved", "registered", "struck off",
        "corrected", "paid out", "transferred", "returned",
    }  # fmt: skip
    assert set(COMMANDS) <= kinds["keep"] | kinds["decide"]


@pytest.mark.parametrize(("name", "key"), [("keep", None), ("drop", KEY), ("decide", None)])
def test_the_stored_chain_is_what_any_program_can_check_with_sha256_alone(stored, name, key):
    previous = "0" * 64
    for text, value in stored[name]["chain"]:
        message = f"{previous}\n{text}".encode()
        digest = hashlib.sha256(message)
        if key is not None:
            digest = hmac.new(key, message, hashlib.sha256)
        assert digest.hexdigest() == value
        previous = value
    receipt = json.loads(stored[name]["receipt"])
    assert receipt == {"run": "vectors", "events": len(stored[name]["chain"]), "head": previous}


def test_a_receipt_that_was_given_out_is_still_read(tmp_path, stored):
    (tmp_path / "receipt.json").write_text(stored["keep"]["receipt"])
    receipt = Receipt.read(tmp_path / "receipt.json")
    assert receipt.head == stored["keep"]["chain"][-1][1]


def test_a_signature_that_was_given_out_still_holds_and_no_other_amount_does(stored):
    for signed in stored["drop"]["signed"]:
        check_client_receipt(signed, signed["public_key"], signed["paid"])
        with pytest.raises(bara.errors.LedgerError, match="signature"):
            check_client_receipt({**signed, "paid": signed["paid"] + 1}, signed["public_key"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        VECTORS.write_text(json.dumps(all_vectors(Path(name)), indent=1, ensure_ascii=False) + "\n")

"""Whoever can write to the file can change it; nobody can do so unnoticed."""

import contextlib
import itertools
import shutil
import sqlite3

import hypothesis
import pytest
from hypothesis import strategies as st
from refusals import refused
from tampering import without_rules

from bara.errors import BaraError, LedgerError
from bara.ledger import Books, Receipt, Store, Terms, operators, verify
from bara.ledger.payouts import batches
from bara.ledger.statements import export_json, statement

NUMBERS = itertools.count()
TABLES = {
    "runs": ["name", "total", "max_rounds"],
    "events": ["number", "kind", "round", "at", "body", "previous", "hash"],
    "promises": ["round", "client", "rank", "amount"],
    "settlements": ["round", "client", "paid", "reason"],
    "closings": ["round", "total", "spent_before", "paid", "spent_after"],
    "sealed": ["round", "part", "salt", "content"],
    "top_ups": ["number", "amount"],
    "memories": ["part", "round", "salt", "content"],
}


@pytest.fixture(params=["plain", "keyed", "drop"])
def written(request, open_books, play_into, tmp_path):
    """A finished run, plain, with a key, or with its bids dropped; its path and its receipt."""
    terms = Terms(
        key=b"secret" if request.param == "keyed" else None,
        retention="drop" if request.param == "drop" else "keep",
    )
    books = open_books("original", terms)
    operators.top_up(books, 5_000_000)
    play_into(books, memories={"allocator": {"costs": [1.5, 4.0]}})
    receipt = books.receipt()
    books.store.close()
    return tmp_path / "original.db", receipt, terms


def check(path, terms, receipt=None):
    store = Store.in_file(path)
    try:
        return verify(Books.find(store, terms=terms), receipt)
    finally:
        store.close()


def attack(path, *statements):
    """Change a copy with the database's own rules out of the way, as one who owns the file can."""
    copy = path.with_name(f"tampered-{next(NUMBERS)}.db")
    shutil.copy(path, copy)
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        changed = _change(connection, statements)
    return copy, changed


def _change(connection, statements):
    connection.execute("PRAGMA ignore_check_constraints = ON")
    changed = 0
    with without_rules(connection):
        for words, values in statements:
            changed += connection.execute(words, values).rowcount
    connection.commit()
    return changed


def other(value, draw):
    """The value with one digit or byte changed."""
    if isinstance(value, int):
        return value ^ (1 << draw(st.integers(0, 30)))
    if value is None:
        return "x"
    place = draw(st.integers(0, len(value) - 1)) if value else 0
    letter = draw(st.characters(min_codepoint=33, max_codepoint=126))
    hypothesis.assume(not value or value[place] != letter)
    return value[:place] + letter + value[place + 1 :]


@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck), max_examples=60)
@hypothesis.given(data=st.data())
def test_property_any_changed_value_is_found(written, data):
    path, _, terms = written
    table = data.draw(st.sampled_from(sorted(TABLES)))
    column = data.draw(st.sampled_from(TABLES[table]))
    connection = sqlite3.connect(path)
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
    names = [one[1] for one in connection.execute(f"PRAGMA table_info({table})")]
    connection.close()
    hypothesis.assume(rows)
    row = data.draw(st.sampled_from(rows))
    value = other(row[names.index(column)], data.draw)
    where = " AND ".join(f"{name} IS ?" for name in names)
    try:
        change = f"UPDATE {table} SET {column} = ? WHERE {where}"  # noqa: S608 - our own schema
        copy, changed = attack(path, (change, (value, *row)))
    except sqlite3.IntegrityError:  # a key that is there already
        hypothesis.reject()
    assert changed == 1
    assert not check(copy, terms).ok


JUNK = [
    b"\xff\0",
    b"[]",
    "[]",
    "null",
    "7",
    '{"a":' + "[" * 100_000,
    "",
    "junk",
    -1,
    2**63 - 1,
    1.5,
    "\x1b",
]


@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck), max_examples=25)
@hypothesis.given(data=st.data())
def test_property_junk_in_any_column_is_found_and_shown_to_nobody(written, data):
    path, _, terms = written
    table = data.draw(st.sampled_from(sorted(TABLES)))
    column = data.draw(st.sampled_from(TABLES[table]))
    junk = data.draw(st.sampled_from(JUNK))
    try:
        copy, changed = attack(path, (f"UPDATE {table} SET {column} = ?", (junk,)))  # noqa: S608
    except sqlite3.IntegrityError:  # a key that is there already
        hypothesis.reject()
    hypothesis.assume(changed)
    store = Store.in_file(copy)
    try:
        books = Books.find(store, terms=terms)
        assert not verify(books).ok
        for read in (statement, export_json, batches):
            with pytest.raises(LedgerError):
                read(books)
    except BaraError:
        pass
    finally:
        store.close()


@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck), max_examples=30)
@hypothesis.given(data=st.data())
def test_property_any_removed_row_is_found(written, data):
    path, receipt, terms = written
    table = data.draw(st.sampled_from(["events", "promises", "settlements", "closings"]))
    connection = sqlite3.connect(path)
    names = [one[1] for one in connection.execute(f"PRAGMA table_info({table})")]
    row = data.draw(st.sampled_from(connection.execute(f"SELECT * FROM {table}").fetchall()))  # noqa: S608
    connection.close()
    where = " AND ".join(f"{name} IS ?" for name in names)
    copy, changed = attack(path, (f"DELETE FROM {table} WHERE {where}", row))  # noqa: S608
    assert changed == 1
    assert not check(copy, terms, receipt).ok


@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck), max_examples=30)
@hypothesis.given(data=st.data())
def test_property_two_events_in_each_others_place_are_found(written, data):
    path, _, terms = written
    one, two = data.draw(st.lists(st.integers(2, 12), min_size=2, max_size=2, unique=True))
    move = "UPDATE events SET number = ? WHERE number = ?"
    copy, changed = attack(path, (move, (999, one)), (move, (one, two)), (move, (two, 999)))
    assert changed == 3
    assert not check(copy, terms).ok


@pytest.mark.parametrize("gone", [1, 2, 5])
def test_a_removed_tail_is_found_with_the_receipt_and_only_with_it(written, gone):
    path, receipt, terms = written
    keep = receipt.events - gone
    lost = "SELECT round FROM events WHERE number > ? AND kind = ?"
    copy, _ = attack(
        path,
        (f"DELETE FROM settlements WHERE round IN ({lost})", (keep, "settled")),  # noqa: S608
        (f"DELETE FROM closings WHERE round IN ({lost})", (keep, "settled")),  # noqa: S608
        (f"DELETE FROM promises WHERE round IN ({lost})", (keep, "awarded")),  # noqa: S608
        (f"DELETE FROM sealed WHERE part = 'menu' AND round IN ({lost})", (keep, "awarded")),  # noqa: S608
        (f"DELETE FROM sealed WHERE part = 'bids' AND round IN ({lost})", (keep, "bids")),  # noqa: S608
        ("DELETE FROM events WHERE number > ?", (keep,)),
    )
    if (
        terms.retention == "keep"
    ):  # a promise whose bids are dropped must be settled, which gives the tail away
        assert check(copy, terms).ok
    finding = check(copy, terms, receipt)
    assert not finding.ok
    assert terms.retention == "drop" or (
        finding.wrong == keep + 1 and "tail is missing" in finding.problem
    )


def test_the_first_wrong_event_is_named(written):
    path, _, terms = written
    copy, _ = attack(path, ("UPDATE events SET body = body || ' ' WHERE number = 7", ()))
    finding = check(copy, terms)
    assert (finding.wrong, finding.events) == (7, 6)


def test_a_record_without_any_event_is_not_whole(written):
    path, _, terms = written
    copy, _ = attack(path, ("DELETE FROM events", ()))
    finding = check(copy, terms)
    assert (finding.ok, finding.events, finding.wrong) == (False, 0, 1)
    assert "no event" in finding.problem


@pytest.mark.parametrize("junk", ["[1]", "{"])
def test_books_whose_opening_is_junk_say_so_and_still_show_their_money(written, junk):
    path, _, terms = written
    copy, _ = attack(path, ("UPDATE events SET body = ? WHERE number = 1", (junk,)))
    with contextlib.closing(Store.in_file(copy)) as store:
        books = Books.find(store, terms=terms)
        with refused(LedgerError, "event", "verify"):
            _ = books.opening
        assert (books.purse.total, books.purse.currency) == (30_000_000, None)


def test_a_promise_whose_award_was_removed_is_none(open_books, play_into, tmp_path):
    books = open_books("open")
    play_into(books, steps=2)
    assert books.awarded() is not None
    books.store.close()
    copy, _ = attack(tmp_path / "open.db", ("DELETE FROM events WHERE kind = 'awarded'", ()))
    with contextlib.closing(Store.in_file(copy)) as store:
        assert Books.find(store).awarded() is None


def test_a_database_that_fails_says_nothing_about_the_record(open_books, play_into, monkeypatch):
    books = open_books()
    play_into(books)

    def fails(*_):
        raise LedgerError("the disk is gone")

    monkeypatch.setattr(type(books.chain), "events", fails)
    with refused(LedgerError, "the disk is gone"):
        verify(books)


def test_an_invented_payment_is_found(written):
    path, _, terms = written
    copy, _ = attack(
        path,
        ("INSERT INTO promises VALUES (1, 99, 'mallory', 0, 5)", ()),
        ("INSERT INTO settlements VALUES (1, 99, 'mallory', 5, NULL)", ()),
    )
    assert "belong to no event" in check(copy, terms).problem


def test_a_ledger_rewritten_as_a_whole_does_not_fit_the_receipt(open_books, play_into):
    first, second = open_books("one"), open_books("two")
    play_into(first)
    play_into(second)
    honest = first.receipt()
    forged = Receipt("two", honest.events, honest.head)
    assert verify(second).ok
    assert "not the one on the receipt" in verify(second, forged).problem
    own = second.receipt()
    assert (
        "receipt is for run 'one'" in verify(second, Receipt("one", own.events, own.head)).problem
    )


def test_without_the_key_a_keyed_chain_can_be_neither_checked_nor_made(open_books, play_into):
    books = open_books("keyed", Terms(key=b"right"))
    play_into(books)
    with refused(LedgerError, "'keyed'", "verifying", "ledger.key"):
        verify(Books.find(books.store))
    assert verify(Books.find(books.store, terms=Terms(key=b"wrong"))).wrong == 1
    assert verify(Books.find(books.store, terms=Terms(key=b"right"))).keyed


def test_a_verification_says_when_no_key_was_used(open_books, play_into):
    """A keyed ledger that was written anew without the key, its configuration too,
    does not pass for the keyed one.
    """
    books = open_books("plain")
    play_into(books)
    assert (verify(books).ok, verify(books).keyed) == (True, False)


def test_a_file_that_is_damaged_where_no_row_is_read_is_found(written):
    """The header of a page of settlements counts five bytes that are not there.

    Every row still reads as it was.
    """
    path, _, terms = written
    copy, _ = attack(path)
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'settlements'"
        ).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
        before = connection.execute("SELECT * FROM settlements").fetchall()
    content = bytearray(copy.read_bytes())
    content[(page - 1) * size + 7] += 5
    copy.write_bytes(content)
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT * FROM settlements").fetchall() == before
    found = check(copy, terms)
    assert not found.ok
    assert "the file is damaged: " in found.problem

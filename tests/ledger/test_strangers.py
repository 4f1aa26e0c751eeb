"""Books that a stranger made, or that somebody else is using: reading them is safe and is only
reading.
"""

import sqlite3
import struct
from contextlib import closing

import pytest
from refusals import refused

from bara.errors import ConfigError, LedgerError
from bara.ledger import Books, Store, operators, read_books, verify
from bara.ledger.migrations.rules import RULES
from bara.ledger.store import HEAD

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.fixture
def changed(open_books, play_into, tmp_path):
    """Changes the file of a small run that has ended; returns the file."""

    def change(*statements):
        books = open_books()
        play_into(books)
        books.store.close()
        with closing(sqlite3.connect(tmp_path / "run.db")) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        return tmp_path / "run.db"

    return change


COMPUTED = {
    "events": ["ALTER TABLE events RENAME TO hidden", f"CREATE VIEW events AS {ENDLESS}"],
    "RUNS": ["ALTER TABLE runs RENAME TO hidden", f"CREATE VIEW RUNS AS {ENDLESS}"],
    "alembic_version": [
        "DROP TABLE alembic_version",
        f"CREATE VIEW alembic_version(version_num) AS {ENDLESS}",
    ],
    "memories": ["DROP TABLE memories", "CREATE VIRTUAL TABLE memories USING fts5(run)"],
    "top_ups": [
        "DROP TABLE top_ups",
        "CREATE TABLE top_ups (run, number, amount AS (ZEROBLOB(900000000)))",
    ],
    "promises": ["CREATE INDEX slow ON promises (length(client))"],
    "closings": ["CREATE INDEX partial ON closings (round) WHERE abs(paid) > 0"],
}


@pytest.mark.parametrize(("name", "statements"), COMPUTED.items())
def test_what_would_be_computed_when_it_is_read_is_refused_unread(changed, name, statements):
    file = changed(*statements)
    with refused(LedgerError, name, file):
        read_books(file)
    with refused(LedgerError, name, file):
        Store.in_file(file)


def circle(file, table):
    """Let the pages of a table lead to its rows by more ways than anybody could go."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        [size] = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        [root] = connection.execute(query, (table,)).fetchone()
    content = bytearray(file.read_bytes())
    begin = (root - 1) * size
    pages = [bytes(content[begin : begin + size])]
    last = len(content) // size
    ways = 300
    for level in range(8):
        below = struct.pack(">I", last + 1 + level)
        cells = size - 5 * ways
        head = b"\5\0\0" + struct.pack(">HHB", ways, cells, 0) + below
        places = [cells + 5 * number for number in range(ways)]
        page = head + struct.pack(f">{ways}H", *places)
        pages.append(page.ljust(cells, b"\0") + (below + b"\1") * ways)
    content[begin : begin + size] = pages.pop()
    content += b"".join(pages)
    content[28:32] = struct.pack(">I", len(content) // size)
    file.write_bytes(content)


@pytest.mark.parametrize("table", ["runs", "alembic_version"])
def test_a_table_whose_pages_lead_to_its_rows_again_and_again_is_refused_unread(changed, table):
    file = changed()
    circle(file, table)
    with refused(LedgerError, table, file):
        read_books(file)


def test_no_statement_that_only_reads_takes_for_ever(changed, monkeypatch):
    monkeypatch.setattr("bara.ledger.store._MOST_STEPS", 50)
    with pytest.raises(LedgerError):
        read_books(changed())


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_no_books_are_looked_for_in_memory(url):
    with refused(ConfigError, url):
        read_books(url)


FAILS = "CHECK (abs(-9223372036854775807 - 1) > 0)"
"""A check that says so as soon as it is computed, where a stranger's would take for ever."""

CHECKED = f"UPDATE sqlite_master SET sql = replace(sql, 'hash TEXT', 'hash TEXT {FAILS}')"  # noqa: S608


@pytest.mark.parametrize(
    "statements",
    [
        [f"CREATE TABLE mine (a {FAILS})", "INSERT INTO mine VALUES (1)"],
        ["PRAGMA writable_schema = ON", CHECKED],
    ],
)
def test_a_check_that_a_stranger_wrote_is_not_computed(changed, statements):
    file = changed("PRAGMA ignore_check_constraints = ON", *statements)
    with closing(sqlite3.connect(file)) as connection, pytest.raises(sqlite3.OperationalError):
        connection.execute("PRAGMA integrity_check")
    assert verify(read_books(file)).ok


def test_a_users_own_tables_and_views_beside_the_books_are_none_of_baras_business(changed):
    file = changed("CREATE TABLE mine (a)", f"CREATE VIEW also_mine AS {ENDLESS}")
    assert verify(read_books(file)).ok


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("events_no_update", "DROP TRIGGER events_no_update"),
        ("closings_within_the_budget", "DROP TRIGGER closings_within_the_budget"),
        (
            "doubles",
            "CREATE TRIGGER doubles AFTER INSERT ON promises BEGIN SELECT 1; END",
        ),
        ("closings_follow", "UPDATE alembic_version SET version_num = '0001'"),
    ],
)
def test_a_trigger_that_is_gone_or_added_and_another_version_are_found(changed, name, statement):
    finding = verify(read_books(changed(statement)))
    assert not finding.ok
    assert name in finding.problem


def test_a_trigger_that_was_weakened_is_found(changed):
    name = "events_no_delete"
    weak = f"CREATE TRIGGER {name} BEFORE DELETE ON events BEGIN SELECT 1; END"
    finding = verify(read_books(changed(f"DROP TRIGGER {name}", weak)))
    assert name in finding.problem


def test_every_table_that_is_only_appended_to_refuses_changes_in_every_version():
    for version, rules in RULES.items():
        guarded = {rule.table for rule in rules if rule.name.endswith("_no_update")}
        assert {"events", "promises", "settlements", "closings"} <= guarded, version
        if version == HEAD:
            assert {"top_ups", "corrections"} <= guarded


def test_reading_deletes_no_log_under_the_hands_of_who_has_just_opened_the_file(
    open_books, tmp_path
):
    """SQLite's log is empty, and has no index yet, in the moment after a file was opened."""
    open_books().store.close()
    file = tmp_path / "run.db"
    store = Store.in_file(file)
    with closing(store), store.read() as connection:
        connection.exec_driver_sql("SELECT 1 FROM events")
        index = tmp_path / "run.db-shm"
        hidden = index.rename(tmp_path / "hidden")
        read_books(file).store.close()
        hidden.rename(index)
        assert (tmp_path / "run.db-wal").exists()


def test_what_is_committed_while_somebody_reads_a_file_that_was_just_opened_is_there(
    open_books, tmp_path
):
    open_books().store.close()
    file = tmp_path / "run.db"
    writer = read_and_write(file)
    with closing(writer.store):
        index = tmp_path / "run.db-shm"
        hidden = index.rename(tmp_path / "hidden")
        read_books(file).store.close()
        hidden.rename(index)
        operators.pause(writer)
        with closing(read_books(file).store) as store, store.read() as connection:
            kinds = connection.exec_driver_sql("SELECT kind FROM events").scalars().all()
    assert "paused" in kinds


def read_and_write(file):
    """The books in a file, opened for writing, with SQLite's log open and empty."""
    books = Books.find(Store.in_file(file))
    assert books.last_round() == -1
    return books

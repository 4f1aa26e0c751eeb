import fcntl
import shutil
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from refusals import refused

from bara import AwardedRound, Delivery, Evaluation, Offer, Purse, RoundRecord, Session
from bara.allocators import Bara, Even, planner
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.errors import ConfigError, LedgerError, MissingExtraError, NoBooksError
from bara.ledger import Books, Store, _events, _reading, verify
from bara.ledger import _schema as schema
from bara.ledger import books as books_module
from bara.ledger.operators import top_up
from bara.ledger.run_state import read_books
from bara.ledger.statements import statement, table_csv
from bara.ledger.store import HEAD, HOSTS, VERSIONS, check_host, run_names, whole_url
from bara.mechanisms import bid_price_first
from bara.protocols import LearnsNothing
from bara.records import Plan
from bara.runs.config import Config
from bara.runs.database import DatabaseRun
from bara.simulator.synthetic import LearningCurve, SyntheticFederation


def same(one, two):
    """Whether two settled rounds are the same in everything."""
    assert one.delivery == two.delivery
    assert list(one.delivery.delivered) == list(two.delivery.delivered)
    for name in ("purse", "offer", "award", "belief"):
        assert getattr(one.awarded, name) == getattr(two.awarded, name)
    assert one.awarded.bids.clients == two.awarded.bids.clients
    assert one.awarded.bids.prices.tolist() == two.awarded.bids.prices.tolist()
    assert one.awarded.costs.tolist() == two.awarded.costs.tolist()


def test_what_is_written_is_read_back_without_loss(open_books, play_into):
    books = open_books()
    steps = play_into(books, allocator=Bara(clients=6, exploration_rounds=3))
    settled = [step for step in steps if isinstance(step, RoundRecord)]
    for stored, lived in zip(books.history(), settled, strict=True):
        same(stored, lived)
    assert books.awarded() is None


def test_a_plan_is_read_back_as_a_plan(open_books, play_into, monkeypatch):
    monkeypatch.setattr(planner, "FIRST_ROUNDS", 2)
    books = open_books()
    steps = play_into(books, allocator=planner.Planner(clients=6))
    lived = [step.awarded.belief for step in steps if isinstance(step, RoundRecord)]
    assert any(belief and isinstance(belief.plan, Plan) for belief in lived)
    assert [record.awarded.belief for record in books.history()] == lived


def test_a_promise_that_is_not_settled_is_found_again(open_books, play_into):
    books = open_books()
    *_, last = play_into(books, steps=4)
    assert isinstance(last, AwardedRound)
    stored = Books.find(books.store).awarded()
    assert (stored.award, stored.purse, stored.offer) == (last.award, last.purse, last.offer)


def test_who_was_not_to_blame_is_read_back(open_books, play_into):
    books = open_books()
    *_, last = play_into(books, steps=4)
    void = dict.fromkeys(last.award.clients, "not asked")
    lived = last.settle(Delivery(Evaluation(0.5), {}, void, blameless=last.award.clients[1:]))
    books.record(lived)
    *_, stored = books.history()
    same(stored, lived)
    assert stored.delivery.failed == last.award.clients[:1]
    assert verify(books).ok


def test_books_are_untouched_until_somebody_is_promised_something(open_books, play_into):
    books = open_books()
    assert books.is_untouched()
    play_into(books, steps=1)
    assert books.is_untouched()
    top_up(books, 1)
    assert not books.is_untouched()
    promised = open_books("promised")
    play_into(promised, steps=2)
    assert not promised.is_untouched()


def test_rounds_in_which_nobody_could_win_leave_books_untouched(open_books, play_into):
    class Miser(LearnsNothing):
        def ask(self, _purse):
            return Offer.spend(1)

    books = open_books()
    play_into(books, steps=5, allocator=Miser())
    assert [record.n for record in books.history()] == [0, 0, 0]
    assert books.is_untouched()
    books.close("the deadline is reached")
    assert books.is_untouched()


def test_a_round_takes_two_commits(open_books, play_into):
    books, commits = open_books(), []
    sa.event.listen(
        books.store.engine,
        "commit",
        lambda connection: commits.append(connection.get_execution_options()),
    )
    play_into(books)
    rounds = books.last_round()
    assert (
        sum("bara_write" in options for options in commits) == 2 * rounds + 2
    )  # round 0, and the end


def test_settling_twice_is_impossible(open_books, play_into):
    books = open_books()
    steps = play_into(books, steps=5)
    for step in steps:
        if isinstance(step, RoundRecord):
            with refused(LedgerError, "run.db", "UNIQUE", ".round"):
                books.record(step)
    assert verify(books).ok


def test_settling_a_round_again_in_another_way_is_impossible(open_books, play_into):
    """A second settlement of a promised round,
    with other winners delivering, is refused as a whole.
    """
    books = open_books()
    steps = play_into(books, steps=3)
    award = steps[1].award
    void = replace(
        steps[2], delivery=Delivery(Evaluation(0.5), void=dict.fromkeys(award.clients, "late"))
    )
    with refused(LedgerError, "run.db", "UNIQUE", "settlements.round"):
        books.record(void)
    assert list(books.history())[-1].delivery == steps[2].delivery


@pytest.mark.parametrize(
    ("statement", "facts"),
    [
        ("UPDATE settlements SET paid = paid + 1", ("append-only",)),
        ("DELETE FROM events WHERE number = 3", ("append-only",)),
        ("DELETE FROM promises", ("append-only",)),
        ("UPDATE closings SET total = 99000000", ("append-only",)),
        ("INSERT INTO settlements VALUES (1, 1, 'stranger', 5, NULL)", ("FOREIGN KEY",)),
        (
            (
                "INSERT INTO settlements SELECT run, round, client, amount + 1, NULL "
                "FROM promises WHERE round = 2"
            ),
            ("settlement", "promised"),
        ),
        (
            (
                "INSERT INTO settlements SELECT run, round, client, 0, NULL "
                "FROM promises WHERE round = 2"
            ),
            ("CHECK", "paid > 0", "reason"),
        ),
        (
            (
                "INSERT INTO closings SELECT run, 2, total, spent_after, 0, spent_after "
                "FROM closings WHERE round = 1"
            ),
            ("round", "every winner"),
        ),
        ("INSERT INTO closings VALUES (1, 9, 30000000, 0, 0, 0)", ("round begins", "round before")),
        ("INSERT INTO top_ups VALUES (1, 99, -5)", ("CHECK", "amount > 0")),
    ],
)
def test_the_database_itself_refuses_what_does_not_add_up(open_books, play_into, statement, facts):
    books = open_books()
    play_into(books, steps=4)  # round 2 is promised, not settled
    with refused(LedgerError, "run.db", *facts), books.store.write() as connection:
        connection.execute(sa.text(statement))


def test_the_database_refuses_a_balance_that_is_not_the_sum_of_its_settlements(
    open_books, play_into
):
    books = open_books()
    play_into(books, steps=3)  # round 2 has no winners yet, so that nothing but the sum is wrong
    row = "SELECT run, 2, total, spent_after, 7, spent_after + 7 FROM closings WHERE round = 1"
    with (
        refused(LedgerError, "run.db", "round costs", "settlements"),
        books.store.write() as connection,
    ):
        connection.execute(sa.text(f"INSERT INTO closings {row}"))


def test_no_round_spends_more_than_the_budget_and_what_was_added(open_books, play_into):
    books = open_books()
    steps = play_into(books, steps=4)
    rich = replace(steps[3], purse=replace(steps[3].purse, total=31_000_000))
    with refused(LedgerError, "run.db", "round spends", "budget"):
        books.record(rich.settle(Delivery.complete(rich.award, Evaluation(0.2))))


def test_a_round_takes_no_more_work_the_longer_a_run_is_and_no_more_room_than_stated(tmp_path):
    """In steps of SQLite's own machine: before a round, its promise,
    its settlement, and reading it back.
    """
    store, steps, work = Store.in_file(tmp_path / "long.db"), Counter(), {}
    books = Books.open(store, "long", {}, Purse.of(1500, 300))
    bidders = Bidders(20, Distribution.parse("uniform(0.5, 1.5)"), 0)
    federation = SyntheticFederation(bidders, LearningCurve(), 0)
    session = Session(Even(), bid_price_first(), federation)

    def count():
        steps["all"] += 1

    @sa.event.listens_for(books.store.engine, "begin")
    def _listen(connection):
        connection.connection.driver_connection.set_progress_handler(count, 1)

    for step in session.rounds(books):
        if isinstance(step, RoundRecord) and step.round in (10, 290):
            (stored,) = books.history(step.round)
            assert stored.round == step.round
        if isinstance(step, RoundRecord):
            work[step.round] = steps.total()
            steps.clear()
    store.close()
    assert 0 < work[290] < 1.3 * work[10]
    Store.in_file(tmp_path / "empty.db").close()
    room = (tmp_path / "long.db").stat().st_size - (tmp_path / "empty.db").stat().st_size
    assert room / 300 < 2700  # as docs/performance.md says


def test_sqlite_syncs_fully_and_logs_ahead(open_books):
    with open_books().store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_the_tables_are_what_the_migrations_make(open_books):
    inspector = sa.inspect(open_books().store.engine)
    for name, table in schema.metadata.tables.items():
        assert [column["name"] for column in inspector.get_columns(name)] == [
            column.name for column in table.columns
        ]


def test_one_store_holds_many_runs(open_books, play_into):
    first = open_books()
    second = Books.open(first.store, "second", {}, first.purse)
    play_into(second)
    play_into(first)
    assert verify(first).ok
    assert verify(second).ok
    assert Books.find(first.store, "second").name == "second"
    with refused(LedgerError, "run.db", "2 runs", "--run"):
        Books.find(first.store)
    with refused(LedgerError, "UNIQUE", "runs.name"):
        Books.open(first.store, "second", {}, first.purse)


@pytest.mark.parametrize(
    ("url", "fact"),
    [
        ("nonsense", "'nonsense'"),
        ("postgresql+psycopg://me:secret@localhost/db", "PGPASSWORD"),
        ("nosuch://x", "'nosuch://x'"),
    ],
)
def test_a_url_that_is_no_database_is_refused_before_anything_runs(url, fact):
    with refused(ConfigError, "ledger.url", fact):
        Store.open(url)


def test_books_longer_than_a_page_are_read_whole(open_books, play_into, monkeypatch):
    books = open_books()
    play_into(books)
    history, promises = list(books.history()), list(books.promises())
    told = statement(books)
    for module in (_events, _reading, books_module):
        monkeypatch.setattr(module, "PAGE", 2)
    assert [record.round for record in books.history()] == list(range(7))
    for one, two in zip(books.history(), history, strict=True):
        same(one, two)
    assert [record.round for _, record in books.promises(1, 4)] == [1, 2, 3, 4]
    assert [record.round for _, record in books.promises()] == [one.round for _, one in promises]
    assert statement(books) == told
    assert verify(books).ok


def test_before_the_first_round_no_checkpoint_is_committed_to(open_books):
    assert open_books().committed_checkpoint(0) is None


def test_a_database_without_a_run_holds_none_and_says_so(tmp_path):
    file = tmp_path / "empty.db"
    sqlite3.connect(file).close()
    assert run_names(f"sqlite:///{file}") == []
    with refused(NoBooksError, file, "no run"):
        read_books(file)
    Store.in_file(tmp_path / "new.db").close()
    with refused(NoBooksError, tmp_path / "new.db", "no run 'spring'"):
        read_books(tmp_path / "new.db", "spring")


def test_a_table_of_nobody_is_empty():
    assert table_csv([]) == ""


def test_a_servers_url_is_whole_as_it_is():
    assert whole_url("postgresql+psycopg://h/d") == "postgresql+psycopg://h/d"


IN_MEMORY = [
    "sqlite://",
    "sqlite:///",
    "sqlite:///:memory:",
    "sqlite:///file::memory:",
    "sqlite:///file::memory:?cache=shared&uri=true",
    "sqlite:///file:books?mode=memory&uri=true",
    "sqlite:///books.db?mode=memory",
    "sqlite://host/books.db",
    "sqlite:///books.db?vfs=memdb",
]


@pytest.mark.parametrize("url", IN_MEMORY)
def test_books_that_would_be_gone_with_the_program_are_refused_at_every_door(url):
    tree = {"budget": {"total": 30}, "allocator": "even", "ledger": {"url": url}}
    doors = [
        lambda: Store.open(url),
        lambda: whole_url(url),
        lambda: Config.load(None, [f"ledger.url={url}"]),
        lambda: DatabaseRun.of("spring", tree),
    ]
    for door in doors:
        with refused(ConfigError, "ledger.url", url):
            door()


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("sqlite:///$DATABASE", "$DATABASE"),
        ("sqlite:///${BOOKS}/a.db", "${BOOKS}"),
        ("postgresql+psycopg://$HOST/books", "$HOST"),
    ],
)
def test_a_variable_that_nobody_has_replaced_names_no_database(url, variable):
    with refused(ConfigError, "ledger.url", url, variable):
        Config.load(None, [f"ledger.url={url}"])


def test_a_file_of_junk_is_refused_by_writers_and_readers(tmp_path):
    file = tmp_path / "junk.db"
    file.write_bytes(b"no database" * 1000)
    for use in (Store.in_file, read_books):
        with refused(LedgerError, "cannot use the ledger", file):
            use(file)
    assert file.read_bytes() == b"no database" * 1000


def test_a_database_that_knows_no_version_is_as_good_as_empty(tmp_path):
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.commit()
    with closing(Store.read_only(tmp_path / "ledger.db")) as store:
        assert store.version() is None


def test_the_log_of_a_run_that_died_is_read_without_its_index(open_books, play_into, tmp_path):
    books = open_books()
    play_into(books)
    (tmp_path / "left").mkdir()
    for ending in ("", "-wal"):
        shutil.copy(tmp_path / f"run.db{ending}", tmp_path / "left" / f"run.db{ending}")
    left = read_books(tmp_path / "left" / "run.db")
    assert left.last_round() == books.last_round() == 6
    left.store.close()
    assert sorted(file.name for file in (tmp_path / "left").iterdir()) == ["run.db", "run.db-wal"]


def test_a_server_without_its_driver_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with refused(MissingExtraError, "psycopg", "bara-fl[postgres]"):
        Store.open("postgresql+psycopg://host/database")


def test_a_driver_that_cannot_be_loaded_is_named_and_the_one_that_bara_brings(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with refused(MissingExtraError, "psycopg2", "postgresql+psycopg://", "bara-fl[postgres]"):
        Store.open("postgresql+psycopg2://host/database")


@pytest.mark.parametrize(
    "url", ["mysql://host/database", "oracle://host/x", "sqlite+aiosqlite:///a"]
)
def test_a_database_that_holds_no_books_is_refused_without_asking_for_its_driver(url):
    with refused(ConfigError, url, "sqlite:///", "postgresql+psycopg://"):
        Store.open(url)


SERVER = "postgresql+psycopg://books.example:5433/database"


@pytest.mark.parametrize(
    ("allowed", "url", "good"),
    [
        ("", SERVER, False),
        ("books.example", SERVER, True),
        ("other.example, books.example:5433", SERVER, True),
        ("books.example:5432", SERVER, False),
        ("books.example", SERVER.replace(":5433", ""), True),
        ("books.example", f"{SERVER}?host=evil.example", False),
        (SERVER, SERVER, True),
        ("", "sqlite:///books.db", True),
    ],
)
def test_only_a_server_that_the_operator_allows_is_sent_anything(monkeypatch, allowed, url, good):
    monkeypatch.setenv(HOSTS, allowed)
    if good:
        check_host(url)
        return
    with refused(LedgerError, "books.example", HOSTS):
        check_host(url)


def test_a_folder_without_a_generation_is_told_by_its_inode_alone(
    open_books, tmp_path, monkeypatch
):
    def refuses(*_):
        raise OSError

    monkeypatch.setattr(fcntl, "ioctl", refuses)
    assert f"folder {tmp_path.stat().st_ino}.0, file" in open_books().store.identity()


def test_a_server_with_an_older_schema_is_not_read_but_said_to_be_older(monkeypatch):
    monkeypatch.setattr(Store, "version", lambda _: VERSIONS[0])  # as a server would answer
    with refused(LedgerError, "books.example", VERSIONS[0], HEAD, "operator acts"):
        read_books(SERVER)

"""The ledger on a real PostgreSQL server, which scripts/with_postgres.sh has started.

Nothing here is ever skipped.
"""

import contextlib
import json
import os
import re
import runpy
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa
from programs import bara, result, started, until

from bara import Purse, open_session
from bara.errors import LedgerError, WaitingError
from bara.ledger import Books, Store, _events, verify
from bara.ledger.locks import is_played, only_player
from bara.ledger.operators import top_up
from bara.ledger.statements import statement
from bara.ledger.store import WRITERS
from bara.runs.replay import replay

pytestmark = [
    pytest.mark.debian("PostgreSQL"),
    pytest.mark.xdist_group("postgres"),
]  # some of them stop the server
SMALL = [
    "federation.engine=synthetic",
    "allocator.name=even",
    "clients.count=6",
    "clients.failure_rate=0.1",
]
ENDLESS = [*SMALL, "budget.total=2000000", "budget.max_rounds=1000000"]


@pytest.fixture
def url():
    return os.environ["BARA_TEST_POSTGRES"]


def restart(action):
    command = [
        os.environ["BARA_TEST_PG_CTL"],
        "-D",
        os.environ["BARA_TEST_POSTGRES_DATA"],
        "-w",
        *action,
    ]
    if os.getuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


def query(url, text):
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            return connection.execute(sa.text(text)).all()
    finally:
        engine.dispose()


def closings(url, folder):
    """The rounds of this run whose books are closed; none before the tables are there."""
    if not query(url, "SELECT to_regclass('closings')")[0][0]:
        return []
    return query(
        url,
        f"SELECT c.round FROM closings c JOIN runs r ON r.id = c.run "  # noqa: S608 - our own name
        f"WHERE r.name = '{folder.name}'",
    )


def wait_for_rounds(url, folder, count, process):
    until(lambda: len(closings(url, folder)) >= count, process)


@pytest.mark.parametrize(
    "fault", ["promised@3", "settling@4", "promising@2", "settled@5", "opening"]
)
def test_a_killed_run_ends_as_the_undisturbed_one(tmp_path, url, fault):
    changes = [*SMALL, "budget.total=40", "budget.max_rounds=10"]
    bara("run", "--out", tmp_path / "whole", changes=changes)
    folder = tmp_path / f"run-{fault.replace('@', '-')}-{os.getpid()}"
    bara(
        "run",
        "--out",
        folder,
        changes=[*changes, f"ledger.url={url}"],
        code=-9,
        environment={"BARA_FAULT": fault},
    )
    bara("resume", folder)
    assert result(folder) == result(tmp_path / "whole")
    assert bara("ledger", folder, "verify").stdout.startswith("the record is whole")
    assert not (folder / "ledger.db").exists()


def test_the_operators_tutorial_is_what_happens_on_postgresql(tmp_path, url, monkeypatch):
    """From nothing to the first batch, with the page's own program.

    Every output on the page is real.
    """
    database = f"clinic_{os.getpid()}"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {database}"))
    engine.dispose()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLINIC_BOOKS", f"{url.rpartition('/')[0]}/{database}")
    monkeypatch.setenv("CLINIC_KEY", "correct-horse-battery-staple")
    monkeypatch.setenv("CLINIC_RECEIPT", str(tmp_path / "receipt.json"))
    root = Path(__file__).parent.parent.parent
    page = (root / "docs" / "your-own-training.md").read_text()
    assert runpy.run_path(str(root / "scripts" / "transcripts.py"))["replay"](page) == page
    assert (
        "the key fits"
        in bara("ledger", os.environ["CLINIC_BOOKS"], "--run", "spring", "verify").stdout
    )


@pytest.fixture
def own_database(url):
    """The URL of a database that is empty, for the user NAME: `own_database("anna")`."""
    name = f"own_{os.getpid()}_{time.monotonic_ns()}"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return lambda user: url.replace("bara@", f"{user}@").replace("/postgres", f"/{name}")


def let_in(address, **people):
    """Make the roles of the documentation, and people in them: `let_in(url, anna="operator")`."""
    page = (Path(__file__).parent.parent.parent / "docs" / "ledger.md").read_text()
    (roles,) = re.findall(r"<!-- file: roles.sql -->\n```sql\n(.*?)```", page, re.DOTALL)
    engine = sa.create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(roles)
        for person, role in people.items():
            connection.exec_driver_sql(f"CREATE ROLE {person} LOGIN IN ROLE bara_{role}")
    engine.dispose()


def test_the_server_lets_readers_operators_and_cashiers_do_what_is_theirs_in_their_own_names(
    own_database,
):
    config = {
        "budget": {"total": 8000, "max_rounds": 1, "currency": "EUR"},
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "ledger": {
            "url": own_database("bara"),
            "clients": ["north", "south", "east"],
            "approve_above": 1000,
            "approvals": 2,
        },
    }
    with open_session("spring", config) as session:
        session.begin(0.1)
        with pytest.raises(WaitingError):
            session.award({"north": "300.00", "south": "310.00", "east": "600.00"})
    let_in(own_database("bara"), anna="operator", berta="operator", carl="cashier", rita="reader")
    why = ["--reason", "as agreed"]

    def says(person, *words, code=0):
        done = bara("ledger", own_database(person), *words, code=code)
        return done.stdout + done.stderr

    assert "the record is whole" in says("rita", "verify")
    for person, words in (
        ("rita", ["approve", "1", *why]),
        ("carl", ["approve", "1", *why]),
        ("carl", ["topup", "5", *why]),
        ("anna", ["approve", "1", "--as", "berta", *why]),
    ):
        said = says(person, *words, code=1)
        assert "permission denied" in said or "row-level security" in said, (person, words, said)
    assert "anna has approved" in says("anna", "approve", "1", *why)
    assert "another person" in says("anna", "approve", "1", *why, code=1)
    assert "permission denied" in says("rita", "register", "west", *why, code=1)
    assert "west is in the register from round 2" in says("anna", "register", "west", *why)
    assert "round 1 is approved" in says("berta", "approve", "1", *why)
    with open_session("spring", config) as session:
        session.award()
        session.settle(0.2)
    assert "row-level security" in says("anna", "payouts", "--new", code=1)
    assert "permission denied" in says("rita", "payouts", "--new", code=1)
    assert "north,600.00,EUR" in says("carl", "payouts", "--new")
    for person in ("carl", "rita"):
        said = says(person, "correct", "1", "north", "-1", *why, code=1)
        assert "permission denied" in said or "row-level security" in said, said
    assert "599.00 EUR" in says("anna", "correct", "1", "north", "-1", *why)
    assert "north" in says("carl", "returned", "1", "--client", "north", *why)
    assert "north,599.00,EUR" in says("carl", "payouts", "--new")
    assert "the record is whole" in says("rita", "verify")
    told = json.loads(bara("ledger", own_database("rita"), "decisions", "--json").stdout)
    assert [(one["what"], one["by"]) for one in told] == [
        ("endorsed", "anna"),
        ("registered", "anna"),
        ("approved", "berta"),
        ("paid out", "carl"),
        ("corrected", "anna"),
        ("returned", "carl"),
        ("paid out", "carl"),
    ]


def test_whether_a_run_without_a_folder_is_played_can_be_seen(url):
    store, run = Store.open(url), f"held-{os.getpid()}"
    with contextlib.closing(store):
        assert is_played(store, run) is False
        with only_player(store, run):
            assert is_played(store, run) is True
            with (
                pytest.raises(LedgerError, match="being run by another process"),
                only_player(store, run),
            ):
                pass
        assert is_played(store, run) is False


def test_a_server_that_is_restarted_in_the_middle_of_a_run_loses_nothing(tmp_path, url):
    changes = [*SMALL, "budget.total=3000", "budget.max_rounds=1500"]
    folder = tmp_path / f"restarted-{os.getpid()}"
    with started("run", "--out", folder, changes=[*changes, f"ledger.url={url}"]) as process:
        wait_for_rounds(url, folder, 20, process)
        restart(["-m", "immediate", "restart"])
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1, errors
    assert "once the cause is gone" in errors
    assert "Traceback" not in errors
    assert 20 <= len(closings(url, folder)) < 1501
    bara("resume", folder)
    bara("run", "--out", tmp_path / "whole", changes=changes)
    assert result(folder) == result(tmp_path / "whole")


def test_a_server_that_is_down_is_a_clear_error(tmp_path, url):
    restart(["-m", "fast", "stop"])
    try:
        done = bara("run", "--out", tmp_path / "run", changes=[*SMALL, f"ledger.url={url}"], code=1)
    finally:
        restart(["-l", os.environ["BARA_TEST_POSTGRES_DATA"] + "/log", "start"])
    assert "cannot use the ledger" in done.stderr
    assert "Traceback" not in done.stderr


def test_two_folders_cannot_run_one_run(tmp_path, url):
    folder = tmp_path / "one" / f"shared-{os.getpid()}"
    with started("run", "--out", folder, changes=[*ENDLESS, f"ledger.url={url}"]) as process:
        wait_for_rounds(url, folder, 1, process)
        copy = tmp_path / "two" / folder.name
        copy.mkdir(parents=True)
        (copy / "config.toml").write_bytes((folder / "config.toml").read_bytes())
        for words in (["resume", copy], ["ledger", copy, "void", "1", "--reason", "it is mine"]):
            assert "is being run by another process" in bara(*words, code=1).stderr


def test_an_operator_may_top_up_while_the_run_goes_on(tmp_path, url):
    folder = tmp_path / f"topped-{os.getpid()}"
    with started("run", "--out", folder, changes=[*ENDLESS, f"ledger.url={url}"]) as process:
        wait_for_rounds(url, folder, 5, process)
        for _ in range(3):
            bara("ledger", folder, "topup", "1.5", "--reason", "agreed")
        bara("ledger", folder, "pause")
        _, errors = process.communicate(timeout=60)
    assert "paused by the operator" in errors
    assert json.loads(bara("ledger", folder, "statement", "--json").stdout)["topped_up"] == 4.5
    assert bara("ledger", folder, "verify").stdout.startswith("the record is whole")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE settlements SET paid = paid + 1", "append-only"),
        ("DELETE FROM events", "append-only"),
        ("INSERT INTO closings VALUES ({run}, 9, 10, 0, 0, 0)", "begins with"),
        ("INSERT INTO settlements VALUES ({run}, 1, 'stranger', 5, NULL)", "foreign key|promised"),
    ],
)
def test_the_server_itself_refuses_what_does_not_add_up(tmp_path, url, statement, message):
    folder = tmp_path / f"rules-{os.getpid()}-{abs(hash(statement))}"
    bara("run", "--out", folder, changes=[*SMALL, "budget.max_rounds=3", f"ledger.url={url}"])
    store = Store.open(url)
    try:
        books = Books.find(store, folder.name)
        with pytest.raises(LedgerError, match=message), store.write() as connection:
            connection.execute(sa.text(statement.format(run=books.chain.run)))
        assert verify(books).ok
        with pytest.raises(LedgerError, match="refuses"):
            Books.open(store, folder.name, {}, Purse.of(1, 1))
    finally:
        store.close()


@pytest.mark.parametrize(
    ("name", "change", "back"),
    [
        (
            "events_no_update",
            "ALTER TABLE events DISABLE TRIGGER events_no_update",
            "ALTER TABLE events ENABLE TRIGGER events_no_update",
        ),
        (
            "extra",
            "CREATE TRIGGER extra BEFORE DELETE ON sealed EXECUTE FUNCTION append_only()",
            "DROP TRIGGER extra ON sealed",
        ),
        (
            "closings_add_up",
            "ALTER TRIGGER closings_add_up ON closings RENAME TO gone",
            "ALTER TRIGGER gone ON closings RENAME TO closings_add_up",
        ),
    ],
)
def test_a_trigger_that_is_off_added_or_gone_is_found(url, name, change, back):
    with contextlib.closing(Store.open(url)) as store:
        books = Books.open(store, f"trigger {name}", {}, Purse.of(1, 1))
        assert verify(books).ok
        with store.write() as connection:
            connection.exec_driver_sql(change)
        try:
            assert name in verify(books).problem
        finally:
            with store.write() as connection:
                connection.exec_driver_sql(back)
        assert verify(books).ok


CONFIG = {
    "budget": {"total": 40, "max_rounds": 5},
    "clients": {"count": 4},
    "allocator": "even",
    "mechanism": "turns",
}
ASKED = {"ann": "2.00", "bob": "2.50", "cat": "3.00", "dan": "4.00"}


def again(step, errors):
    """Call a step until it works, as a program that retries does; note what it is told."""
    for _ in range(5):
        try:
            return step()
        except LedgerError as error:
            errors.append(str(error))
    return step()


def play_own_loop(name, url):
    """Play a run whose steps are called again when they fail; return its rounds and errors."""
    errors = []
    config = {**CONFIG, "ledger": {"url": url, "client_cap": 8}}
    with open_session(name, config) as session:
        again(lambda: session.begin(0.1), errors)
        while again(session.ask, errors) is not None:
            award = again(lambda: session.award(ASKED), errors)
            if award is None:
                break
            accuracy = 0.1 + 0.1 * session.round if award.n else None
            again(partial(session.settle, accuracy), errors)
    with contextlib.closing(Store.open(url)) as store:
        books = Books.find(store, name)
        assert verify(books).ok
        assert replay(books).ok
        rounds = [(record.awarded.award, record.payments) for record in books.history()]
    return rounds, errors


class BackwardsClock(datetime):
    """A clock that is set back by an hour each time it is read."""

    readings = count()

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 1, 1, tzinfo=tz or UTC) - timedelta(hours=next(cls.readings))


@pytest.mark.parametrize(
    "where", ["bids opened", "promising", "promised", "trained", "settling", "settled", "closing"]
)
def test_a_server_that_is_killed_at_a_fault_point_is_found_again_and_nothing_changes(
    url, tmp_path, monkeypatch, where
):
    undisturbed, _ = play_own_loop("undisturbed", f"sqlite:///{tmp_path}/books.db")
    passed = Counter()

    def kill_the_server(name):
        passed[name] += 1
        if name == where and passed[name] == 1 + (where == "settling"):  # round 0 settles, too
            restart(["-m", "immediate", "restart"])

    for module in ("bara.ledger.books", "bara.runs.session"):
        monkeypatch.setattr(f"{module}.point", kill_the_server)
    monkeypatch.setattr(_events, "datetime", BackwardsClock)
    name = f"failover-{where.replace(' ', '-')}-{os.getpid()}"
    disturbed, errors = play_own_loop(name, url)
    assert disturbed == undisturbed
    assert errors, "nobody noticed that the server was gone"
    assert all("once the cause is gone" in error for error in errors)


@pytest.fixture
def serializable(url):
    """A database whose administrator made every transaction serializable."""
    name = f"serializable_{os.getpid()}"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
        connection.execute(
            sa.text(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
        )
    engine.dispose()
    return f"{url.rpartition('/')[0]}/{name}"


def test_operators_at_the_same_time_do_not_disturb_one_another_whatever_the_isolation(serializable):
    with contextlib.closing(Store.open(serializable)) as store:
        books = Books.open(store, "shared", {}, Purse.of(10, 5))

        def top_up_ten_times():
            with contextlib.closing(Store.open(serializable)) as own:
                for _ in range(10):
                    top_up(Books.find(own, "shared"), 1_000_000)

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(top_up_ten_times) for _ in range(4)]:
                done.result()
        assert statement(books).topped_up == 40_000_000


def test_whoever_is_chosen_in_a_deadlock_is_told_so_and_may_try_again(url, monkeypatch):
    """Somebody locks a table first and the ledger's writers second, the other way round."""
    name = f"deadlock-{os.getpid()}"
    with contextlib.closing(Store.open(url)) as store:
        Books.open(store, name, {}, Purse.of(10, 5))
    monkeypatch.setenv("PGOPTIONS", "-c deadlock_timeout=10ms")  # ours notices first
    engine = sa.create_engine(url)
    with contextlib.closing(Store.open(url)) as store, ThreadPoolExecutor(1) as pool:
        books = Books.find(store, name)
        monkeypatch.delenv("PGOPTIONS")
        with engine.connect() as stranger:
            stranger.execute(sa.text("LOCK TABLE top_ups IN ACCESS EXCLUSIVE MODE"))

            def cross():
                with store.write() as connection:
                    lock = sa.text(f"SELECT pg_advisory_xact_lock({WRITERS})")
                    crossing.append(pool.submit(stranger.execute, lock))
                    connection.execute(sa.text("SELECT COUNT(*) FROM top_ups"))

            crossing = []
            with pytest.raises(LedgerError, match="deadlock detected"):
                cross()
            crossing[0].result()
            stranger.rollback()
        top_up(books, 1_000_000)
        assert statement(books).topped_up == 1_000_000
    engine.dispose()

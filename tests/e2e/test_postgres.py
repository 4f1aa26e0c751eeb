"""The ledger on a real PostgreSQL server, which scripts/with_postgres.sh has started.

Nothing here is ever skipped.
"""

import contextlib
import json
import os
import runpy
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa
from programs import bara, result, started, until

from bara import Purse
from bara.errors import LedgerError
from bara.ledger import Books, Store, verify
from bara.ledger.locks import is_played, only_player

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
    root = Path(__file__).parent.parent.parent
    page = (root / "docs" / "your-own-training.md").read_text()
    assert runpy.run_path(str(root / "scripts" / "transcripts.py"))["replay"](page) == page
    assert (
        "the key fits"
        in bara("ledger", os.environ["CLINIC_BOOKS"], "--run", "spring", "verify").stdout
    )


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
    assert "this step is stored as a whole or not at all" in errors
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
            bara("ledger", folder, "topup", "1.5")
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

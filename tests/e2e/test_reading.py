"""Opening is not running.

Who reads a folder, a stranger's too, makes nothing, imports nothing and connects nowhere.
"""

import ctypes
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from programs import bara
from refusals import refused
from starlette.testclient import TestClient
from typer.testing import CliRunner

from bara.cli import RUNNING, app
from bara.dashboard.server import Address, RunIndex, make_app
from bara.errors import ConfigError, LedgerError
from bara.ledger import Books, Store, verify
from bara.ledger.run_state import read_books
from bara.ledger.store import HOSTS, check_host
from bara.records import Purse

SMALL = [
    "federation.engine=synthetic",
    "allocator.name=even",
    "clients.count=6",
    "budget.max_rounds=4",
]
READING = [
    ["statement"],
    ["statement", "--csv"],
    ["verify"],
    ["export"],
    ["export", "--csv"],
    ["payouts"],
]
WRITING = [
    ["topup", "1", "--reason", "agreed"],
    ["pause"],
    ["adopt", "--reason", "agreed"],
    ["approve", "1", "--reason", "agreed"],
    ["decline", "1", "--reason", "agreed"],
    ["void", "1", "--reason", "why"],
]
FIRST_SCHEMA = Path(__file__).parents[1] / "ledger" / "first_schema"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that has ended, one that was killed, the same without its log's index.

    And one of the first schema.
    """
    folder = tmp_path_factory.mktemp("runs")
    bara("run", "--out", folder / "ended", changes=SMALL)
    bara(
        "run",
        "--out",
        folder / "killed",
        changes=SMALL,
        code=-9,
        environment={"BARA_FAULT": "promised@3"},
    )
    shutil.copytree(folder / "killed", folder / "no index")
    (folder / "no index" / "ledger.db-shm").unlink()
    (folder / "old").mkdir()
    shutil.copy(FIRST_SCHEMA / "config.toml", folder / "old")
    script = "import sqlite3, sys; sqlite3.connect('ledger.db').executescript(sys.stdin.read())"
    text = (FIRST_SCHEMA / "ledger.sql").read_text()
    subprocess.run(
        [sys.executable, "-c", script], input=text, text=True, cwd=folder / "old", check=True
    )
    return folder


def told(*words):
    done = CliRunner().invoke(app, [*map(str, words)])
    return done.exit_code, done.output


def visit(folder):
    pages = make_app(RunIndex(folder), Address().rules(), interval=0.05)
    return TestClient(pages, base_url="http://localhost", raise_server_exceptions=False)


# --- nothing is made or changed -------------------------------------------------------------------


def everything(folder):
    """Every file and folder with its bytes and times."""
    return {
        str(path): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None,
        )
        for path in (folder, *sorted(folder.rglob("*")))
    }


def read_all(folder):
    """Read every run by every verb and on its pages; what was said."""
    said = {}
    for path in sorted(folder.iterdir()):
        for words in READING:
            said[path.name, *words] = told("ledger", path, *words)
        said[path.name, "page"] = visit(folder).get(f"/runs/{path.name}.json").status_code
    return said


def test_reading_makes_and_changes_nothing(runs):
    before = everything(runs)
    assert any(name.endswith("killed/ledger.db-wal") for name in before), (
        "no log: this shows nothing"
    )
    said = read_all(runs)
    assert {answer if isinstance(answer, int) else answer[0] for answer in said.values()} == {
        0,
        200,
    }
    assert everything(runs) == before
    assert said["no index", "export"] == said["killed", "export"]
    assert "outstanding" in told("ledger", runs / "killed", "statement", "--json")[1]


def test_a_folder_that_nobody_may_write_to_is_read_all_the_same(runs):
    paths = [runs, *runs.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    drop_from_bounding_set, may_override_permissions = 24, 1
    script = (
        f"import sys; sys.path += {sys.path!r}; from test_reading import *; check({str(runs)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        preexec_fn=lambda: ctypes.CDLL(None).prctl(
            drop_from_bounding_set, may_override_permissions, 0, 0, 0
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.returncode == 0, done.stderr


def check(folder):
    """Runs in a process that obeys permissions, which root's do not."""
    with pytest.raises(PermissionError):
        (Path(folder) / "new").touch()
    before = everything(Path(folder))
    said = read_all(Path(folder))
    assert {answer if isinstance(answer, int) else answer[0] for answer in said.values()} == {
        0,
        200,
    }, said
    assert everything(Path(folder)) == before


def test_what_is_read_while_a_run_goes_on_where_none_was_is_refused(runs, tmp_path):
    """Without a log nobody writes, and nothing is locked: until somebody resumes the run."""
    shutil.copy(runs / "ended" / "ledger.db", tmp_path)
    books = read_books(tmp_path / "ledger.db")

    def go_on():
        with books.store.read():
            store = Store.in_file(tmp_path / "ledger.db")
            Books.open(store, "another", {}, Purse.of(1, 1))
            store.close()

    with refused(LedgerError, tmp_path / "ledger.db", "try again"):
        go_on()
    assert verify(books).ok


@pytest.mark.parametrize("name", ["what?", "50%20 #1", "a&b=c;d"])
def test_whatever_a_folder_is_called_its_books_are_in_it(tmp_path, name):
    bara("run", "--out", tmp_path / name, changes=SMALL)
    assert told("ledger", tmp_path / name, "verify")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_operator_makes_no_books_where_there_are_none(tmp_path):
    (tmp_path / "config.toml").write_text("seed = 0")
    for words in (*READING, *WRITING):
        code, output = told("ledger", tmp_path, *words)
        assert (code, "was stopped before its books were opened" in output) == (1, True), output
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


# --- no server is asked that nobody has named -----------------------------------------------------


@pytest.fixture
def server():
    """A stranger's server on this machine, which notes who comes and hangs up.

    It is (its port, the visits).
    """
    visits = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept():
            while True:
                try:
                    line, address = listener.accept()
                except OSError:
                    return
                visits.append(address)
                line.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1], visits
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.fixture
def planted(tmp_path, server):
    folder = tmp_path / "runs" / "planted"
    folder.mkdir(parents=True)
    url = f"postgresql+psycopg://bara@127.0.0.1:{server[0]}/books"
    (folder / "config.toml").write_text(f'[ledger]\nurl = "{url}"\n')
    return folder


def test_a_planted_folder_makes_nobody_connect_to_a_strangers_server(planted, server, monkeypatch):
    port, visits = server
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.delenv(HOSTS, raising=False)
    for words in (*READING, *WRITING):
        code, output = told("ledger", planted, *words)
        assert code == 1
        assert f"set {HOSTS}=127.0.0.1:{port}" in output
        assert len(output.splitlines()) == 1
    told("report", planted)
    (row,) = visit(planted.parent).get("/index.json").json()["runs"]
    assert f"set {HOSTS}=127.0.0.1:{port}" in row["error"]
    assert visit(planted.parent).get("/runs/planted/events").status_code == 503
    assert visits == []
    monkeypatch.setenv(HOSTS, f"elsewhere.example, 127.0.0.1:{port}")
    assert "cannot use the ledger" in told("ledger", planted, "verify")[1]
    assert visits, "nobody came though it was allowed: this test shows nothing"


@pytest.mark.parametrize(
    ("url", "allowed", "fine"),
    [
        ("sqlite:///somewhere.db", "", True),
        ("postgresql+psycopg://db.example/books", "db.example", True),
        ("postgresql+psycopg://db.example:5433/books", "db.example", True),
        ("postgresql+psycopg://db.example:5433/books", "db.example:5433", True),
        ("postgresql+psycopg://db.example:5433/books", "db.example:5432", False),
        ("postgresql+psycopg://db.example.evil/books", "db.example", False),
        ("postgresql+psycopg://localhost/books", "", False),
        ("postgresql+psycopg://127.0.0.1/books", "", False),
        ("postgresql+psycopg:///books", "", False),
        ("postgresql+psycopg:///books", "postgresql+psycopg:///books", True),
        ("postgresql+psycopg://db.example,evil.example/books", "db.example", False),
        ("postgresql+psycopg://db.example/books?host=evil.example", "db.example", False),
        ("postgresql+psycopg://db.example/books?hostaddr=203.0.113.1", "db.example", False),
        ("postgresql+psycopg://db.example/books?sslmode=require", "db.example", False),
        (
            "postgresql+psycopg://db.example/books?sslmode=require",
            "x postgresql+psycopg://db.example/books?sslmode=require",
            True,
        ),
    ],
)
def test_a_server_is_named_by_host_by_port_or_by_its_whole_address(monkeypatch, url, allowed, fine):
    monkeypatch.setenv(HOSTS, allowed)
    if fine:
        check_host(url)
    else:
        with refused(LedgerError, url, f"{HOSTS}="):
            check_host(url)


def test_what_is_no_database_is_no_server(monkeypatch):
    monkeypatch.delenv(HOSTS, raising=False)
    with refused(ConfigError, "ledger.url", "'nonsense'"):
        check_host("nonsense")


# --- no code is run that lies around --------------------------------------------------------------

PROGRAM = """
import os, sys
from bara.cli import main
sys.argv = ["bara", *sys.argv[1:]]
try:
    main()
finally:
    here = os.getcwd()
    place = sys.path.index(here) - len(sys.path) if here in sys.path else None
    print("HERE", place, file=sys.stderr)
"""

PLANTED = "import os; os.close(os.open('{}', os.O_CREAT)); raise SystemExit('planted')"


def program(*words, cwd):
    """`bara` as it is installed.

    Without the folder it is started in on its path, unless it puts it there.
    """
    command = [sys.executable, "-P", "-c", PROGRAM, *map(str, words)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def trap(tmp_path):
    """A folder full of modules that stand in for others, and one plug-in."""
    folder = tmp_path / "trap"
    folder.mkdir()
    for name in ("numpy", "sqlalchemy", "json", "uvloop", "psycopg", "joblib"):
        (folder / f"{name}.py").write_text(PLANTED.format(tmp_path / f"ran-{name}"))
    (folder / "bara_plugin.py").write_text("from bara.allocators import Even as Mine")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["ledger", "{run}"],
        ["ledger", "{run}", "verify"],
        ["report", "{run}"],
        ["dashboard", "none"],
        ["data", "list"],
    ],
)
def test_who_only_opens_has_no_working_directory_on_the_path(runs, trap, words):
    shutil.copytree(runs / "ended", trap / "run")
    config = (trap / "run" / "config.toml").read_text()
    (trap / "run" / "config.toml").write_text(config.replace('"even"', '"bara_plugin:Mine"'))
    done = program(*(word.format(run=trap / "run") for word in words), cwd=trap)
    assert "HERE None" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not list(trap.parent.glob("ran-*"))


def test_who_runs_finds_plug_ins_there_after_everything_else(trap):
    changes = [word for change in SMALL for word in ("--set", change)]
    mine = ["--set", "allocator.name=bara_plugin:Mine"]
    done = program("run", *changes, *mine, "--out", "run", cwd=trap)
    assert (done.returncode, "HERE -1" in done.stderr) == (0, True), done.stderr
    done = program("resume", "run", cwd=trap)
    assert done.returncode == 0, done.stderr
    done = program(
        "compare",
        *changes,
        "--allocators",
        "bara_plugin:Mine",
        "--seeds",
        "2",
        "--jobs",
        "2",
        cwd=trap,
    )
    assert done.returncode == 0, done.stderr
    assert not list(trap.parent.glob("ran-*"))
    assert {"run", "compare", "paper", "audit"} <= RUNNING
    assert not RUNNING & {"ledger", "dashboard", "report", "receipt", "data"}


# --- one broken run is one row --------------------------------------------------------------------


@contextmanager
def within(seconds):
    """A hang is a failure, not a test that never ends."""

    def hang(*_):
        raise AssertionError(f"not within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def wrecked(whole, folder, damage):
    """A copy of a run with something wrong."""
    shutil.copytree(whole, folder)
    damage(folder)


def pipe(name):
    def damage(folder):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return damage


def bytes_in(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def loop(name):
    def damage(folder):
        (folder / name).unlink()
        (folder / name).symlink_to(name)

    return damage


def instead(name):
    def damage(folder):
        (folder / name).unlink()
        (folder / name).mkdir()

    return damage


def sql(*statements):
    def damage(folder):
        script = "import sqlite3, sys; sqlite3.connect('ledger.db').executescript(sys.argv[1])"
        drop = "DROP TRIGGER events_no_update;"
        subprocess.run(
            [sys.executable, "-c", script, drop + ";".join(statements)], cwd=folder, check=True
        )

    return damage


WRECKS = {
    "config is a pipe": pipe("config.toml"),
    "config is a loop": loop("config.toml"),
    "config is a folder": instead("config.toml"),
    "config has 2 GB": lambda folder: os.truncate(folder / "config.toml", 2 << 30),
    "config is no text": bytes_in("config.toml", b"\xff\xfe = 1"),
    "config is deep": bytes_in("config.toml", b"a = " + b"[" * 100_000),
    "config names a number": bytes_in("config.toml", b"ledger = 7"),
    "config names no database": bytes_in("config.toml", b'[ledger]\nurl = "nonsense"'),
    "ledger is a pipe": pipe("ledger.db"),
    "ledger is a loop": loop("ledger.db"),
    "ledger is a folder": instead("ledger.db"),
    "ledger is noise": bytes_in("ledger.db", bytes(range(256)) * 99),
    "ledger is cut": lambda folder: os.truncate(folder / "ledger.db", 9000),
    "ledger is empty": bytes_in("ledger.db", b""),
    "log is a pipe": pipe("ledger.db-wal"),
    "index is a pipe": pipe("ledger.db-shm"),
    "journal is a pipe": pipe("ledger.db-journal"),
    "a body is a list": sql("UPDATE events SET body = '[]'"),
    "a body is a blob": sql("UPDATE events SET body = x'ff00' WHERE kind = 'settled'"),
    "an accuracy is NaN": sql(
        'UPDATE events SET body = replace(body, \'"accuracy":0\', \'"accuracy":NaN,"x":0\')'
    ),
    "a version is a blob": sql("UPDATE alembic_version SET version_num = x'ff'"),
    "a time is none": sql("UPDATE events SET at = 'yesterday'"),
    "nothing happened": sql("DROP TRIGGER events_no_delete", "DELETE FROM events"),
    "caf\udce9": lambda folder: (folder / "ledger.db").unlink(),
}


def test_one_broken_run_is_one_row_and_the_others_are_shown(runs, tmp_path):
    shutil.copytree(runs / "ended", tmp_path / "runs" / "whole")
    shutil.copytree(runs / "ended", tmp_path / "runs" / "lock is a pipe")
    pipe(".lock")(tmp_path / "runs" / "lock is a pipe")
    for name, damage in WRECKS.items():
        wrecked(runs / "ended", tmp_path / "runs" / name, damage)
    visitor = visit(tmp_path / "runs")
    with within(60):
        listed = {one["name"]: one for one in visitor.get("/index.json").json()["runs"]}
    names = {name.encode(errors="replace").decode() for name in WRECKS}
    assert {name for name, one in listed.items() if "error" in one} == names
    assert listed.keys() - names == {"whole", "lock is a pipe"}
    assert listed["whole"]["glance"]["rounds"] == 4
    for name in names:
        assert visitor.get(f"/runs/{quote(name)}.json").status_code == 503, name
        for address in (
            "",
            "/events",
            "/rounds.csv",
            "/rounds/1.json",
        ):  # which may show what is still right
            assert visitor.get(f"/runs/{quote(name)}{address}").status_code in (200, 503), (
                name,
                address,
            )
    assert visitor.get("/runs/whole.json").json()["glance"]["rounds"] == 4


@pytest.mark.parametrize(
    "name", ["config is a pipe", "config has 2 GB", "ledger is a pipe", "index is a pipe"]
)
def test_the_command_line_waits_for_no_pipe_either(runs, tmp_path, name):
    wrecked(runs / "ended", tmp_path / "run", WRECKS[name])
    with within(60):
        code, output = told("ledger", tmp_path / "run", "verify")
    assert code in (1, 2)
    assert re.search("not a regular file|more than 1 MB", output)


def test_the_report_of_a_comparison_waits_for_no_pipe_either(tmp_path):
    (tmp_path / "comparison.json").write_text('{"command": "", "config": "", "cells": ["pipe"]}')
    os.mkfifo(tmp_path / "pipe.json")
    with within(30):
        assert (
            told("report", tmp_path, "--out", tmp_path / "out")[0] == 0
        )  # a result that is not there; what waits is interrupted, and fails


def test_a_database_that_hangs_is_one_row_and_waited_for_once(runs, tmp_path, monkeypatch):
    for name in ("one", "stuck", "two"):
        shutil.copytree(runs / "ended", tmp_path / "runs" / name)
    asked, gone = [], threading.Event()

    def hang(place, read=Store.read_only):
        if place.parent.name == "stuck" and not gone.is_set():
            asked.append(place)
            gone.wait(60)
        return read(place)

    monkeypatch.setattr(Store, "read_only", hang)
    monkeypatch.setattr("bara.dashboard._pages.LONGEST", 0.1)
    visitor = visit(tmp_path / "runs")

    def errors():
        return {one["name"]: one.get("error") for one in visitor.get("/index.json").json()["runs"]}

    for _ in range(3):
        listed = errors()
        assert (listed["one"], listed["two"]) == (None, None)
        assert "does not answer" in listed["stuck"]
    assert visitor.get("/runs/stuck.json").status_code == 503
    assert len(asked) == 1
    gone.set()
    with within(60):
        while errors()["stuck"] is not None:
            time.sleep(0.05)

"""What needs a person is seen: in the books, in the terminal, on the dashboard,
and by a hook, at least once.
"""

import json
import socket
import sys
import threading
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
from refusals import refused
from typer.testing import CliRunner
from waiting import until

import bara
from bara.cli import app
from bara.errors import ConfigError, WaitingError
from bara.ledger import notifications
from bara.ledger.attention import Watch, attentions
from bara.records import RoundRecord
from bara.runs.database import DatabaseRun

ASKED = {"north": "2.50", "south": "3.10", "east": "4.00", "west": "5.00"}


def cli(*words, code=0):
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def config(tmp_path):
    def make(**ledger):
        return {
            "budget": {"total": 60, "max_rounds": 20, "currency": "EUR"},
            "clients": {"count": 4},
            "allocator": {"name": "fixed", "n": 2},
            "ledger": {"url": f"sqlite:///{tmp_path}/books.db", **ledger},
        }

    return make


@pytest.fixture
def mailbox(tmp_path):
    """A command that notes what it is told, and what it was told so far."""
    script, box = tmp_path / "mail.py", tmp_path / "box"
    script.write_text(f"import sys\nopen({str(box)!r}, 'a').write(sys.stdin.read() + '\\n')\n")

    def read():
        return [json.loads(line) for line in box.read_text().splitlines()] if box.exists() else []

    read.command = f"{sys.executable} {script}"
    return read


def play(config, rounds, void=()):
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        while session.round <= rounds and session.ask() and (award := session.award(ASKED)):
            missing = {client: "it did not answer" for client in void if client in award.clients}
            session.settle(0.2 if award.n else None, void=missing)
        return session.ended


def test_whom_only_early_rounds_recruited_is_not_named_as_never_recruited(config):
    given = config()
    given["budget"] = {"total": 1000, "max_rounds": 200}
    given["allocator"] = {"name": "fixed", "n": 1}
    given["mechanism"] = "bid-price-first"
    with bara.open_session("spring", given) as session:
        session.begin(0.1)
        while session.round <= 70 and session.ask():
            session.award(ASKED | {"west": "1.00" if session.round == 1 else "5.00"})
            session.settle(0.2)
    with DatabaseRun(given["ledger"]["url"], "spring") as run:
        told = [one.text for one in attentions(run.read_books()) if "never recruited" in one.text]
    assert len(told) == 1
    assert "(east, south)" in told[0]


def test_an_award_that_waits_is_said_everywhere_and_the_hook_is_told_once(config, mailbox):
    given = config(approve_above=5, notify=mailbox.command)
    url = given["ledger"]["url"]
    for _ in range(2):  # started again, it still waits, and nobody is told twice
        with pytest.raises(WaitingError):
            play(given, 9)
    command = f"bara ledger {url} --run spring approve 1"
    answer = f"{command} --reason TEXT, or decline 1 --reason TEXT"
    assert [one["what"] for one in mailbox()] == ["approval of round 1"]
    assert mailbox()[0]["answer"] == answer
    assert f"needs you: round 1 promises 8.00 EUR and waits for your answer; {answer}" in cli(
        "ledger", url
    )
    assert json.loads(cli("ledger", url, "statement", "--json"))["needs"][0]["answer"] == answer
    cli("ledger", url, "approve", 1, "--reason", "agreed")
    assert "needs you" not in cli("ledger", url)


def test_a_pause_a_low_purse_and_a_client_that_keeps_failing_are_noticed(config, mailbox):
    given = config(notify=mailbox.command)
    url = given["ledger"]["url"]
    play(given, 4, void=["north"])
    cli("ledger", url, "pause")
    said = cli("ledger", url)
    assert "needs you: the run is paused; bara ledger" in said
    assert f"{url} --run spring continue" in said
    cli("ledger", url, "continue")
    play(given, 6, void=["north"])
    told = {one["what"] for one in mailbox()}
    assert "failing: north since round 1" in told
    assert any(key.startswith("low purse") for key in told)
    assert "topup AMOUNT" in cli("ledger", url)
    cli("ledger", url, "topup", 200, "--reason", "agreed")
    assert "low purse" not in cli("ledger", url)
    assert "the record is whole" in cli("ledger", url, "verify")


def test_the_end_is_told_with_its_reason_and_a_hook_that_fails_holds_nothing_up(
    config, mailbox, capsys
):
    assert play(config(notify="false"), 30) is not None
    told = capsys.readouterr().err
    assert "ledger.notify did not take 'low purse" in told
    assert ": it exited with 1; it is told again at the next round" in told
    with bara.open_session("spring", config(notify=mailbox.command)) as session:
        assert session.ask() is None
    assert [one["text"] for one in mailbox()] == [f"the run ended: {session.ended}"]


def test_a_slow_hook_blocks_no_round(config, tmp_path):
    script, begun, go = tmp_path / "slow.py", tmp_path / "begun", tmp_path / "go"
    script.write_text(
        f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)\n"
    )
    with bara.open_session("spring", config(notify=f"{sys.executable} {script}")) as session:
        session.begin(0.1)
        while session.round < 6 and session.ask() and session.award(ASKED):
            session.settle(0.2)  # goes on, though the hook does not
        assert until(begun.exists)
        go.touch()
        assert session.round == 6


def test_a_url_is_told_too_and_a_secret_one_stands_in_the_environment(config, monkeypatch):
    heard = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Be quiet."""

    server = HTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("THE_HOOK", f"http://127.0.0.1:{server.server_port}/secret")
    with pytest.raises(WaitingError):
        play(config(approve_above=5, notify="$THE_HOOK"), 3)
    server.shutdown()
    server.server_close()
    assert [one["run"] for one in heard] == ["spring"]
    for hook, *facts in (
        ("$NOWHERE", "environment variable", "'NOWHERE'"),
        ("no-such-program", "command", "'no-such-program'"),
        ("ftp://x", "http", "'ftp://x'"),
        ("say 'hello", "command", "say 'hello", "quotation"),
    ):
        with refused(ConfigError, "ledger.notify", *facts):
            play(config(notify=hook), 3)


def test_a_hook_that_takes_too_long_or_refuses_is_said_so_once(config, monkeypatch, capsys):
    monkeypatch.setattr(notifications, "PATIENCE", 0.2)
    with closing(socket.socket()) as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        for hook, reason in (
            ("sleep 60", "longer than 0.2 seconds"),
            (f"http://127.0.0.1:{taken.getsockname()[1]}/", "the server says"),
        ):
            with pytest.raises(WaitingError):
                play(config(approve_above=5, notify=hook), 3)
            told = capsys.readouterr().err
            assert "ledger.notify did not take 'approval of round 1'" in told
            assert reason in told


@pytest.mark.parametrize(("enough", "answer"), [(90_000_000, "topup AMOUNT"), (None, "")])
def test_a_target_out_of_reach_asks_for_money_only_where_money_would_reach_it(enough, answer):
    outlook = SimpleNamespace(out_of_reach=True, enough=enough)
    record = RoundRecord.initial(bara.Purse.of(60, 20, currency="EUR"), bara.Evaluation(0.1))
    watch = Watch("DIR")
    watch.tell(
        replace(record, awarded=replace(record.awarded, belief=SimpleNamespace(outlook=outlook)))
    )
    (need,) = watch.needs()
    assert "60.00 EUR" in need.text
    assert ("no budget would reach it" in need.text) == (enough is None)
    assert answer in need.answer
    assert bool(need.answer) == bool(answer)


def test_an_ended_run_needs_nobody(config):
    play(config(), 30)
    with DatabaseRun.of("spring", config()) as place:
        assert attentions(place.read_books()) == []


def test_the_dashboard_shows_what_waits_with_the_command_that_answers(make_run_waiting, visit_json):
    state = visit_json(make_run_waiting)["state"]
    assert state["word"] == "waiting"
    assert "waits for your answer" in state["needs"][0]["text"]
    assert "approve 1 --reason TEXT, or decline 1" in state["needs"][0]["answer"]


@pytest.fixture
def make_run_waiting(tmp_path):
    small = ["federation.engine=synthetic", "ledger.approve_above=0.5", "budget.max_rounds=3"]
    words = [word for change in small for word in ("--set", change)]
    said = cli("run", *words, "--out", tmp_path / "waits", code=1)
    assert "waits for `bara ledger" in said
    assert "books are closed" not in said
    return tmp_path / "waits"


@pytest.fixture
def visit_json():
    from starlette.testclient import TestClient  # noqa: PLC0415 - only here

    from bara.dashboard.server import Address, RunIndex, make_app  # noqa: PLC0415

    def visit(folder):
        return (
            TestClient(make_app(RunIndex(folder), Address().rules()), base_url="http://localhost")
            .get(f"/runs/{folder.name}.json")
            .json()
        )

    return visit

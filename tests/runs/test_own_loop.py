"""A program of one's own plays a run: books by URL, nothing lost or doubled by a restart,
and a key that is checked.
"""

import contextlib
import json

import pytest
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import ConfigError, InvalidRecordError, LedgerError, PausedError, WaitingError
from bara.ledger import Books, Store, Terms
from bara.runs.session import OwnLoop

ASKED = {"north": "2.50", "south": "3.10", "east": "4.00"}


@pytest.fixture
def config(tmp_path):
    return {
        "budget": {"total": 30, "max_rounds": 4},
        "clients": {"count": 3},
        "allocator": {"name": "even"},
        "mechanism": "bid-price-first",
        "ledger": {"url": f"sqlite:///{tmp_path}/books.db"},
    }


def cli(*words, code=0):
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


def play(config, rounds=99):
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        while session.round <= rounds and session.ask() and (award := session.award(ASKED)):
            session.settle(
                0.1 * session.round if award.n else None, checkpoint=f"model {session.round}"
            )
        return session.ended


def test_a_loop_of_ones_own_has_every_promise_in_the_books_before_it_trains(config):
    url = config["ledger"]["url"]
    with bara.open_session("spring", config) as session:
        assert session.round == 0
        session.begin(0.1)
        assert session.begin(0.7) is None  # the books have it
        offer = session.ask()
        assert session.ask() == offer
        award = session.award(ASKED)
        assert award.clients == ("north",)
        assert (
            session.award({"north": "0.01"}) == award
        )  # promised is promised, whatever is bid now
        assert "1 " in cli("ledger", url)
    with bara.open_session("spring", config) as again:  # the process ended before it settled
        assert again.round == 1
        assert again.promised.award == award == again.award()
        record = again.settle(bara.Evaluation(0.2), void={"north": "it did not answer"})
        assert record.paid == 0
        with refused(InvalidRecordError, "ask", "award", "settle"):
            again.settle(0.3)


def test_it_goes_on_to_the_end_and_stays_ended(config):
    assert play(config, 2) is None
    with bara.open_session("spring", config) as session:
        assert (session.round, session.checkpoint) == (3, "model 2")
        assert session.purse.spent == 6_200_000
    assert play(config) == play(config) == "the deadline is reached"
    told = json.loads(
        cli("ledger", config["ledger"]["url"], "--run", "spring", "statement", "--json")
    )
    assert told["spent"] == sum(client["paid"] for client in told["clients"]) == pytest.approx(12.4)


@pytest.mark.parametrize("key", ["wrong", None])
def test_a_wrong_or_missing_key_is_refused_at_opening_and_nothing_is_written(
    config, monkeypatch, key
):
    monkeypatch.setenv("THE_KEY", "secret")
    config["ledger"]["key"] = "THE_KEY"
    play(config, 2)
    before = cli("ledger", config["ledger"]["url"], "verify")
    if key is None:
        del config["ledger"]["key"]
    else:
        monkeypatch.setenv("THE_KEY", key)
    with refused(LedgerError, "'spring'", "ledger.key"):
        play(config)
    with contextlib.closing(
        Store.open(config["ledger"]["url"])
    ) as store:  # a session over bare books, too
        books = Books.find(store, "spring", Terms(key=key and key.encode()))
        session = bara.Session(
            bara.ALLOCATORS.build("even"), bara.MECHANISMS.build("bid-price-first"), OwnLoop()
        )
        with refused(LedgerError, "'spring'", "ledger.key"):
            session.start(books)
    monkeypatch.setenv("THE_KEY", "secret")
    assert cli("ledger", config["ledger"]["url"], "verify") == before


def test_a_pause_and_an_approval_reach_it(config):
    url = config["ledger"]["url"]
    config["ledger"]["approve_above"] = "3.00"
    with refused(
        WaitingError,
        "3.10",
        "ledger.approve_above",
        "3.00",
        f"bara ledger {url} --run spring approve 1",
        "decline 1",
    ):
        play(config)
    with bara.open_session("spring", config) as session:
        with pytest.raises(WaitingError):
            session.award()
        cli("ledger", url, "decline", 1, "--reason", "agreed")
        assert "\nNobody was paid: declined by the operator: agreed.\n" in cli(
            "ledger", url, "explain", 1
        )
        assert session.award().n == 0  # asked again, it knows the answer
        session.settle()
        cli("ledger", "--run", "spring", url, "pause")
        with refused(PausedError, "operator", "round 2"):
            session.ask()
    assert f"already paused; `bara ledger {url} --run spring continue`" in cli(
        "ledger", url, "pause", code=1
    )
    cli("ledger", url, "continue", "--run=spring")
    assert "run 'spring' is not paused" in cli("ledger", url, "continue", code=1)
    with bara.open_session("spring", config) as session:
        assert session.ask() is not None


def test_a_statement_counts_a_round_that_is_not_settled_apart(config):
    play(config, 1)
    with bara.open_session("spring", config) as session:
        assert session.ask()
        assert "north" in session.award(ASKED).clients
        page = cli(
            "ledger",
            config["ledger"]["url"],
            "--run",
            "spring",
            "statement",
            "--client",
            "north",
            "--html",
        )
        assert "1 delivered, 0 void, 1 not settled" in page
        session.settle(0.2)


def test_what_cannot_be_opened_is_refused_in_one_line(config):
    for change, facts in (
        ({"data": {"name": "mnist"}}, ("data.name", "program")),
        ({"ledger": {}}, ("ledger.url", "sqlite:///")),
        (
            {"budget": {"max_rounds": 4}},
            ("budget.total", "not set"),
        ),
        (
            {"mechanism": {"name": "fl-market"}},
            ("FLMarket", "OwnLoop", "Capabilities(protects=True)"),
        ),
    ):
        with (
            refused(ConfigError, *facts),
            bara.open_session("spring", {**config, **change}),
        ):
            pass
    play(config, 1)
    with (
        refused(ConfigError, "budget.total", "30.0", "40.0", "bara ledger", "topup"),
        bara.open_session("spring", {**config, "budget": {"total": 40, "max_rounds": 4}}),
    ):
        pass
    with (
        bara.open_session("spring", config),
        refused(LedgerError, "'spring'", "this process"),
        bara.open_session("spring", config),
    ):
        pass


def test_resume_says_what_to_do_with_such_a_run_and_starts_no_other_in_its_database(
    config, tmp_path
):
    play(config, 2)
    url = config["ledger"]["url"]
    assert "start that again" in cli("resume", url, code=2)
    by_hand = tmp_path / "by-hand"
    by_hand.mkdir()
    (by_hand / "config.toml").write_text(
        f'[ledger]\nurl = "{url}"\n[federation]\nengine = "synthetic"\n'
    )
    said = cli("resume", by_hand, code=2)
    assert "holds no run 'by-hand' (it holds: 'spring')" in said
    (by_hand / "config.toml").write_text(
        f'[ledger]\nurl = "{url}"\n[federation]\nengine = "own-loop"\n'
    )
    assert "start that again" in cli("resume", by_hand, code=2)
    assert "it holds: 'spring'" in cli("ledger", url, "--run", "autumn", code=2)
    assert "leave it out" in cli("ledger", by_hand, "--run", "autumn", code=2)


def test_a_folder_whose_books_are_elsewhere_may_be_renamed(tmp_path):
    url = f"sqlite:///{tmp_path}/shared.db"
    small = [
        "--set",
        "federation.engine=synthetic",
        "--set",
        "budget.max_rounds=3",
        "--set",
        f"ledger.url={url}",
    ]
    cli("run", *small, "--out", tmp_path / "one")
    (tmp_path / "one").rename(tmp_path / "two")
    assert "run one" in cli("ledger", tmp_path / "two")
    cli("resume", tmp_path / "two")
    assert "already holds a run 'one'" in cli("run", *small, "--out", tmp_path / "one", code=2)


def test_a_password_is_refused_before_anything_is_written(tmp_path):
    for url in ("postgresql+psycopg://me:secret@db/x", "postgresql+psycopg://db/x?password=secret"):
        said = cli("run", "--set", f"ledger.url={url}", "--out", tmp_path / "run", code=2)
        assert "ledger.url holds a password" in said
        assert "secret" not in said
        assert not (tmp_path / "run").exists()


def test_a_report_is_made_of_books_alone(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    play(config, 2)
    assert "open spring/report.html" in cli("report", config["ledger"]["url"], "--run", "spring")
    assert "it has not ended" in (tmp_path / "spring" / "report.html").read_text()

"""A program of one's own plays a run: books by URL, nothing lost or doubled by a restart,
and a key that is checked.
"""

import contextlib
import json

import pytest
from refusals import refused
from typer.testing import CliRunner

import bara
from bara import Bids
from bara.cli import app
from bara.errors import ConfigError, InvalidRecordError, LedgerError, PausedError, WaitingError
from bara.ledger import Books, Store, Terms, read_books
from bara.runs.config import Config
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
    said = cli("report", config["ledger"]["url"], "--run", "spring")
    assert "open spring-report/report.html" in said
    assert "it has not ended" in (tmp_path / "spring-report" / "report.html").read_text()


BAD = {
    "no decimal number": ({"west": "80,50"}, ("'west'", "80,50")),
    "negative": ({"west": -3}, ("'west'", "-3")),
    "not a number": ({"west": float("nan")}, ("'west'", "nan")),
    "nothing": ({"west": None}, ("'west'", "None")),
    "beyond the ledger": ({"west": 10**15}, ("9223372036854.775807",)),
    "beyond 63 bits": ({"west": 4 * 10**12}, ("63 bits",)),
    "beyond the budget": ({"west": "30.01"}, ("30.01", "30.00", "budget")),
    "half a cent": ({"west": "0.505"}, ("0.01", "0.505")),
    "in NUL": ({"west": "\0"}, ("'west'",)),
}


@pytest.mark.parametrize(("bad", "facts"), BAD.values(), ids=list(BAD))
def test_one_bad_bid_leaves_out_only_its_client_and_the_books_say_why(config, bad, facts):
    config["budget"]["currency"] = "EUR"
    url = config["ledger"]["url"]
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        session.ask()
        assert session.award({**ASKED, **bad}).clients == ("north",)
        reason = session.promised.left_out.reasons["west"]
        for fact in facts:
            assert fact in reason
        session.settle(0.5)
        session.ask()
        session.award(ASKED)
        session.settle(0.5)
    stored = list(read_books(url, "spring").history())
    assert dict(stored[1].awarded.left_out.reasons) == {"west": reason}
    assert stored[2].awarded.left_out is None
    assert "west was left out" in cli("ledger", url, "--run", "spring", "explain", 1)
    said = cli("ledger", url, "--run", "spring", "verify", "--replay")
    assert "2 menus with awards" in said


def test_a_round_of_nothing_but_bad_bids_passes_and_is_replayed(config):
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        session.ask()
        assert session.award({"west": "80,50", "east": 10**12}).n == 0
        assert set(session.promised.left_out.reasons) == {"west", "east"}
        session.settle()
    url = config["ledger"]["url"]
    assert "1 menu with awards" in cli("ledger", url, "--run", "spring", "verify", "--replay")


def columned(samples):
    prices = dict.fromkeys("abcd", 1)
    return Bids.opened(prices, samples=dict(zip("abcd", samples, strict=True)))


@pytest.mark.parametrize(
    ("samples", "limits", "left_out"),
    [
        ((100, 120, 140, 1e6), {}, {"d": "limits.samples"}),
        ((100, 120, 140, 1e6), {"samples": 1e6}, {}),
        ((100, 120, 140, 1e6), {"samples": 130}, {"c": "limits.samples", "d": "130"}),
        ((100, 120, 140, "many"), {}, {"d": "many"}),
        ((100, 120, 140, -1), {}, {"d": "samples"}),
    ],
)
def test_a_column_has_the_limit_that_is_declared_or_follows_from_the_others(
    config, samples, limits, left_out
):
    config["limits"] = limits
    config["mechanism"] = {"name": "quality", "quality": "samples"}
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        session.ask()
        session.award(columned(samples))
        found = session.promised.left_out
        reasons = {} if found is None else found.reasons
        assert set(reasons) == set(left_out)
        for client, fact in left_out.items():
            assert fact in reasons[client]
        session.settle(0.5 if session.promised.award.n else None)
    url = config["ledger"]["url"]
    assert "1 menu with awards" in cli("ledger", url, "--run", "spring", "verify", "--replay")


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), True, "many"])
def test_a_limit_that_is_no_positive_number_is_refused(limit):
    with refused(ConfigError, "limits.samples"):
        Config.load({"limits": {"samples": limit}})

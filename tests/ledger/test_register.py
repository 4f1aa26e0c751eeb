"""Known clients: who is not in the register is left out, with the reason, before any promise."""

import json

import pytest
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import ConfigError, LedgerError
from bara.ledger import operators, verify
from bara.ledger.attention import attentions
from bara.ledger.decisions import decisions
from bara.mechanisms.client_cap import CAPPED, DEAR, UNKNOWN
from bara.records import Entry, money
from bara.runs.config import Config
from bara.runs.database import DatabaseRun
from bara.runs.explanation import explain_round
from bara.runs.replay import replay


def settings(tmp_path, register, **ledger):
    return {
        "budget": {"total": 100, "max_rounds": 9, "currency": "EUR"},
        "clients": {"count": 4},
        "allocator": {"name": "fixed", "n": 2},
        "mechanism": {"name": "bid-price-first"},
        "ledger": {"url": f"sqlite:///{tmp_path}/books.db", "clients": register, **ledger},
    }


def at(config, action):
    with DatabaseRun.find(config["ledger"]["url"]) as place:
        return action(place.open_books())


def cli(config, *words):
    return CliRunner().invoke(app, ["ledger", config["ledger"]["url"], *map(str, words)])


def play(config, *rounds, between=None):
    """Play a round for each of these bids; return the rounds as promised."""
    promised = []
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        for bids in rounds:
            session.ask()
            session.award(bids)
            promised.append(session.promised)
            if between is not None:
                between(session.round)
            session.settle(0.2 if session.promised.award.n else None)
    return promised


def left_out(awarded):
    return {} if awarded.left_out is None else dict(awarded.left_out.reasons)


NAMES = ["Aachen", "Bonn", "Cologne"]
MISSPELT = {"Aachn": 1, "Bonn": 2, "Cologne": 3, "Aachen": 4}


@pytest.mark.parametrize("retention", ["keep", "drop"])
def test_a_bid_under_an_unknown_name_is_left_out_with_the_reason_and_wins_nothing(
    tmp_path, retention
):
    config = settings(tmp_path, NAMES, retention=retention)
    (first,) = play(config, MISSPELT)
    assert left_out(first) == {"Aachn": UNKNOWN}
    assert (first.award.clients, first.award.payments) == (("Bonn", "Cologne"), (money(4),) * 2)
    assert at(config, verify).ok
    assert at(config, replay).ok


def test_what_strangers_say_of_themselves_sets_no_limit_for_known_clients(tmp_path):
    config = settings(tmp_path, NAMES)
    strangers = [f"stranger-{i}" for i in range(5)]
    bids = bara.Bids.of(
        dict.fromkeys([*NAMES, *strangers], 1.0),
        samples=dict.fromkeys(NAMES, 300) | dict.fromkeys(strangers, 1),
    )
    (first,) = play(config, bids)
    assert left_out(first) == dict.fromkeys(strangers, UNKNOWN)
    assert at(config, replay).ok


def test_absurd_and_unknown_bids_are_left_out_together_each_with_its_reason(tmp_path):
    config = settings(tmp_path, NAMES)
    (first,) = play(config, {"Aachn": 1, "Aachen": "80,50", "Bonn": 2, "Cologne": 101})
    reasons = left_out(first)
    assert reasons["Aachn"] == UNKNOWN
    assert "80,50" in reasons["Aachen"]
    assert "the whole budget" in reasons["Cologne"]
    assert set(reasons) == {"Aachn", "Aachen", "Cologne"}
    assert at(config, replay).ok


def test_the_operator_is_told_who_is_unknown_with_the_command_that_enters_it(tmp_path):
    config = settings(tmp_path, NAMES)
    play(config, MISSPELT)
    (need,) = (one for one in at(config, attentions) if "register" in one.key)
    assert "Aachn" in need.text
    assert need.answer.endswith("register Aachn --reason TEXT")
    sentences = at(config, lambda books: explain_round(books, 1)).sentences
    assert f"Aachn was left out: {UNKNOWN}." in sentences


def test_without_a_register_everybody_may_bid_and_nobody_can_be_entered(tmp_path):
    config = settings(tmp_path, None)
    (first,) = play(config, MISSPELT)
    assert left_out(first) == {}
    with refused(LedgerError, "'spring'", "ledger.clients"):
        at(config, lambda books: operators.register(books, "Aachn"))
    assert "everybody may bid" in cli(config, "register").output


def test_limits_over_the_run_and_fees_a_round_are_kept_client_by_client(tmp_path):
    register = {"Aachen": {"limit": 7}, "Bonn": {"fee": "3.00"}, "Cologne": {}, "Duisburg": {}}
    config = settings(tmp_path, register)
    bids = {"Aachen": 1, "Bonn": 2, "Cologne": 9, "Duisburg": 5}
    one, two, three = play(config, bids, bids, {**bids, "Aachen": "2.50", "Bonn": "3.01"})
    assert dict(zip(one.award.clients, one.award.payments, strict=True)) == {
        "Aachen": money(5),
        "Bonn": money(3),
    }
    assert dict(zip(two.award.clients, two.award.payments, strict=True))["Aachen"] == money(2)
    assert left_out(three) == {"Aachen": CAPPED, "Bonn": DEAR}
    assert at(config, replay).ok


def test_a_change_of_the_register_counts_from_the_next_round_and_is_an_event(tmp_path):
    config = settings(tmp_path, NAMES)

    def change(round_number):
        if round_number == 1:
            at(config, lambda books: operators.register(books, "Aachn", by="anna", reason="new"))
            at(config, lambda books: operators.strike_off(books, "Bonn", by="anna", reason="left"))

    one, two = play(config, MISSPELT, MISSPELT, between=change)
    assert (left_out(one), left_out(two)) == ({"Aachn": UNKNOWN}, {"Bonn": UNKNOWN})
    changes = [(one.what, one.about, one.by, one.reason) for one in at(config, decisions)]
    assert changes == [
        ("registered", "Aachn", "anna", "new"),
        ("struck off", "Bonn", "anna", "left"),
    ]
    assert at(config, verify).ok
    assert at(config, replay).ok


def test_a_change_does_not_touch_a_round_whose_bids_may_be_open_already(tmp_path):
    """A menu that is made now, and stored later, must come out the same when it is made again."""
    config = settings(tmp_path, NAMES)
    play(config, MISSPELT)
    assert at(config, lambda books: operators.register(books, "Aachn")) == 3
    one, two = play(config, MISSPELT, MISSPELT)
    assert (left_out(one), left_out(two)) == ({"Aachn": UNKNOWN}, {})
    assert at(config, replay).ok


def test_the_command_enters_changes_lists_and_strikes_off(tmp_path):
    config = settings(tmp_path, {"Aachen": {"limit": 50}})
    play(config)
    done = cli(config, "register", "Bonn", "--fee", "3.50", "--reason", "joined")
    assert "round 2" in done.output
    listed = json.loads(cli(config, "register", "--json").output)
    assert (listed["Aachen"]["limit_exact"], listed["Bonn"]["fee_exact"]) == ("50.00", "3.50")
    assert "3.50" in cli(config, "register").output
    assert cli(config, "register", "Aachen", "--remove", "--reason", "left").exit_code == 0
    assert set(json.loads(cli(config, "register", "--json").output)) == {"Bonn"}


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["Bonn"], ("--reason",)),
        (["--limit", "5"], ("--limit", "client")),
        (["Bonn", "--limit", "-5", "--reason", "x"], ("limit", "positive")),
        (["Bonn", "--limit", "0.001", "--reason", "x"], ("limit", "0.01 EUR")),
        (["Aachn", "--remove", "--reason", "x"], ("'Aachn'", "'Aachen'")),
        (["  ", "--reason", "x"], ("name",)),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(tmp_path, words, facts):
    config = settings(tmp_path, ["Aachen"])
    play(config)
    done = cli(config, "register", *words)
    assert done.exit_code in {1, 2}
    assert all(fact in done.output for fact in facts), done.output
    assert at(config, decisions) == []


@pytest.mark.parametrize(
    ("register", "facts"),
    [
        ({"Aachen": {"limit": 0}}, ("Aachen", "positive")),
        ({"Aachen": {"limit": "1.001"}}, ("ledger.clients.Aachen.limit", "1.001")),
        ({"Aachen": {"most": 1}}, ("most",)),
    ],
)
def test_a_wrong_register_is_refused_before_the_run(tmp_path, register, facts):
    with refused(ConfigError, *facts):
        play(settings(tmp_path, register))


def test_a_register_in_the_configuration_is_fixed_once_the_run_is_opened(tmp_path):
    play(settings(tmp_path, ["Aachen"]))
    with refused(ConfigError, "ledger.clients", "bara ledger DIR register"):
        play(settings(tmp_path, ["Aachen", "Bonn"]))


def test_a_register_survives_the_configuration_as_a_file(tmp_path):
    config = Config.load({"ledger": {"clients": {"Aachen": {}, "St. Anna": {"fee": 5}}}})
    (tmp_path / "config.toml").write_text(config.to_toml())
    again = Config.load(tmp_path / "config.toml")
    assert again.ledger.known() == {"Aachen": Entry(), "St. Anna": Entry(fee=money(5))}

"""Who gave an operator's command, and why: in the books and on every list; two people if asked."""

import ast
import csv
import io
import json
import re
from functools import partial
from pathlib import Path

import pytest
from refusals import refused
from typer.main import get_command
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import ConfigError, LedgerError, WaitingError
from bara.ledger import operators, verify
from bara.ledger.attention import attentions
from bara.ledger.decisions import decisions
from bara.ledger.statements import export_json
from bara.runs.config import Config
from bara.runs.database import DatabaseRun
from bara.runs.explanation import explain_round

BIDS = {"north": "300.00", "south": "310.00", "east": "600.00"}


@pytest.fixture(autouse=True)
def _nobody_is_named(monkeypatch):
    monkeypatch.delenv("BARA_OPERATOR", raising=False)
    monkeypatch.setenv("LOGNAME", "the-login")


def settings(tmp_path, **ledger):
    return {
        "budget": {"total": 8000, "max_rounds": 3, "currency": "EUR"},
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "mechanism": {"name": "bid-price-first"},
        "ledger": {"url": f"sqlite:///{tmp_path}/books.db", "approve_above": 1000, **ledger},
    }


@pytest.fixture
def waiting(tmp_path):
    """The address of a run whose first award waits, and how to make it wait."""

    def make(**ledger):
        config = settings(tmp_path, **ledger)
        with bara.open_session("spring", config) as session:
            session.begin(0.1)
            with pytest.raises(WaitingError):
                session.award(BIDS)
        return config

    return make


def at(config, action):
    with DatabaseRun.find(config["ledger"]["url"]) as place:
        return action(place.open_books())


def cli(config, *words):
    return CliRunner().invoke(app, ["ledger", config["ledger"]["url"], *map(str, words)])


def told(config):
    return [(one.what, one.about, one.by, one.reason) for one in at(config, decisions)]


def test_a_person_is_named_by_the_command_or_the_environment_or_the_login(waiting, monkeypatch):
    config = waiting()
    at(config, lambda books: operators.pause(books, by="anna"))
    monkeypatch.setenv("BARA_OPERATOR", "berta")
    at(config, operators.let_go_on)
    monkeypatch.delenv("BARA_OPERATOR")
    at(config, operators.pause)
    assert told(config) == [
        ("paused", "", "anna", ""),
        ("continued", "", "berta", ""),
        ("paused", "", "the-login", ""),
    ]
    assert [one.login for one in at(config, decisions)] == ["the-login", "the-login", ""]


@pytest.mark.parametrize("name", ["  ", "a\0b", "\udcff"])
def test_a_name_that_names_nobody_or_cannot_be_stored_is_refused(waiting, name):
    config = waiting()
    with refused(LedgerError, "--as"):
        at(config, lambda books: operators.pause(books, by=name))
    assert told(config) == []


def test_every_command_that_decides_wants_a_reason_and_stores_it_with_the_person(waiting):
    config = waiting()
    for words in (["topup", 100], ["approve", 1], ["decline", 1], ["adopt"], ["void", 1]):
        done = cli(config, *words)
        assert (done.exit_code, "--reason" in done.output) == (2, True), words
    assert told(config) == []
    for words in (["topup", 100], ["approve", 1], ["adopt"], ["void", 1]):
        done = cli(config, *words, "--as", "anna", "--reason", f"because of {words[0]}")
        assert done.exit_code == 0, done.output
    assert told(config) == [
        ("topped up", "", "anna", "because of topup"),
        ("approved", "round 1", "anna", "because of approve"),
        ("adopted", "", "anna", "because of adopt"),
        ("voided", "round 1", "anna", "because of void"),
    ]
    with refused(LedgerError, "--reason"):
        at(config, lambda books: operators.top_up(books, 1_000_000, reason=" "))


def test_every_command_that_a_message_names_has_the_reason_that_it_needs():
    group = get_command(app).commands["ledger"]
    wanting = [
        name
        for name, verb in group.commands.items()
        if any(one.name == "reason" and one.required for one in verb.params)
    ]
    assert {"adopt", "returned"} <= set(wanting)
    named = re.compile(rf"bara ledger \S+ (?:{'|'.join(wanting)}|register \S+)\b[^`]*")
    found = []
    for path in Path(bara.__file__).parent.rglob("*.py"):
        for text in texts(ast.parse(path.read_text("utf-8"))):
            found += [(path.name, one) for one in named.findall(text)]
    assert len(found) > 10
    assert [one for one in found if "--reason" not in one[1]] == []


def texts(tree):
    """Yield every text in a module, with `X` for what is put into it."""
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside.update(map(id, node.values))
            yield "".join(
                getattr(part, "value", "") if isinstance(part, ast.Constant) else "X"
                for part in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inside
        ):
            yield node.value


def test_who_and_why_stand_in_the_list_the_export_and_the_explanation(waiting):
    config = waiting()
    at(config, lambda books: operators.top_up(books, 5_000_000, by="anna", reason="a gift"))
    at(config, lambda books: operators.decline(books, 1, by="berta", reason="too expensive"))
    shown = cli(config, "decisions").output
    assert all(word in shown for word in ("topped up", "5.00", "anna", "a gift", "round 1"))
    rows = list(csv.DictReader(io.StringIO(cli(config, "decisions", "--csv").output)))
    assert [(row["what"], row["amount"], row["by"]) for row in rows] == [
        ("topped up", "5.00", "anna"),
        ("declined", "", "berta"),
    ]
    tree = json.loads(cli(config, "decisions", "--json").output)
    assert (tree[0]["amount_exact"], tree[1]["reason"]) == ("5.00", "too expensive")
    exported = at(config, export_json)["events"]
    (body,) = (one["body"] for one in exported if one["kind"] == "declined")
    assert (body["by"], body["reason"]) == ("berta", "too expensive")
    sentences = at(config, lambda books: explain_round(books, 1)).sentences
    (said,) = (one for one in sentences if "berta" in one)
    assert "too expensive" in said


def test_a_run_that_nobody_touched_has_no_decisions(tmp_path):
    config = settings(tmp_path)
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
    assert "no operator" in cli(config, "decisions").output


def test_of_two_approvals_the_first_is_not_enough_and_the_second_is_another_persons(waiting):
    config = waiting(approvals=2)
    (need,) = at(config, attentions)
    said = cli(config, "approve", 1, "--as", "anna", "--reason", "the price is fair").output
    assert "anna has approved" in said
    (further,) = at(config, attentions)
    assert further.key != need.key
    assert "anna" in further.text
    for same in ("anna", " anna ", "Anna", "an\u200bna", "\uff21nna"):
        with refused(LedgerError, "anna", "round 1", "ledger.approvals", "another person"):
            again = partial(operators.approve, round_number=1, by=same, reason="once more")
            at(config, again)
    with bara.open_session("spring", config) as session, refused(WaitingError, "anna"):
        session.award()
    done = cli(config, "approve", 1, "--as", "berta", "--reason", "I looked, too")
    assert "round 1 is approved" in done.output
    assert at(config, attentions) == []
    with bara.open_session("spring", config) as session:
        assert session.award().n == 2
        session.settle(0.2)
    assert at(config, verify).ok
    assert [what for what, *_ in told(config)] == ["endorsed", "approved"]


@pytest.mark.parametrize(
    "same",
    [
        "JOSÉ ruiz",
        "Jose\u0301 Ruiz",
        "José  Ruiz",
        "José\u00a0Ruiz",
        "Ｊosé Ruiz",
        "José\u200b Ruiz",
    ],
)
def test_one_person_does_not_approve_twice_by_spelling_the_name_otherwise(waiting, same):
    config = waiting(approvals=2)
    at(config, lambda books: operators.approve(books, 1, by="José Ruiz", reason="agreed"))
    with refused(LedgerError, "another person"):
        at(config, lambda books: operators.approve(books, 1, by=same, reason="agreed"))
    at(config, lambda books: operators.approve(books, 1, by="Jose Ruiz", reason="agreed"))


def test_one_person_can_decline_what_another_has_approved(waiting):
    config = waiting(approvals=2)
    at(config, lambda books: operators.approve(books, 1, by="anna", reason="fine"))
    at(config, lambda books: operators.decline(books, 1, by="berta", reason="no"))
    with bara.open_session("spring", config) as session:
        assert session.award().n == 0
        session.settle()
    assert at(config, verify).ok


@pytest.mark.parametrize("first", [None, "anna", "ANNA "])
def test_an_approval_that_was_slipped_in_past_the_second_person_is_found(waiting, first):
    """By somebody who writes into the database, hashes included."""
    config = waiting(approvals=2)
    if first is not None:
        at(config, lambda books: operators.approve(books, 1, by=first, reason="fine"))

    def slip_in(books):
        from bara.ledger._events import Draft  # noqa: PLC0415

        with books.store.write() as connection:
            books.chain.append(connection, Draft("approved", 1, {"by": "anna"}))
        return verify(books)

    assert "two must approve" in at(config, slip_in).problem


def test_a_payment_above_the_limit_that_nobody_approved_is_found(open_books, play_into):
    """By books whose opening says a limit that the program that played them did not keep."""
    from bara.ledger import Terms  # noqa: PLC0415

    books = open_books(terms=Terms(approve_above=1))
    books.terms = Terms()
    play_into(books, steps=3)
    assert "unapproved" in verify(books).problem


def test_a_missing_and_a_wrong_key_are_told_by_the_name_of_the_variable(tmp_path, monkeypatch):
    config = settings(tmp_path, key="THE_KEY")
    monkeypatch.setenv("THE_KEY", "right")
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
    monkeypatch.setenv("THE_KEY", "wrong")
    for words in (["verify"], ["statement"], ["pause"]):
        said = cli(config, *words).output
        assert "THE_KEY" in said, said
        assert "key" in said.partition("THE_KEY")[0] + said.partition("THE_KEY")[2], said
    assert "another key" in cli(config, "verify").output.partition("hash")[0]
    monkeypatch.delenv("THE_KEY")
    for words in (["verify"], ["statement"], ["pause"]):
        assert "THE_KEY" in cli(config, *words).output


def test_a_database_that_cannot_be_read_says_nothing_of_steps_and_resuming(tmp_path):
    config = settings(tmp_path)
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
    file = tmp_path / "books.db"
    file.write_bytes(file.read_bytes()[:5000])
    said = cli(config, "statement").output
    assert "nothing was changed" in said
    assert not any(word in said for word in ("this step", "resume", "config.toml"))


def test_a_database_that_is_named_as_a_file_is_told_by_its_url(tmp_path, monkeypatch):
    config = settings(tmp_path)
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("spring")
    for words in (["books.db"], ["books.db", "--run", "spring"]):
        said = CliRunner().invoke(app, ["ledger", *words])
        assert (said.exit_code, "sqlite:///books.db" in said.output) == (2, True)
    assert CliRunner().invoke(app, ["ledger", "sqlite:///books.db"]).exit_code == 0
    assert "sqlite" not in CliRunner().invoke(app, ["ledger", "notes.txt"]).output


def test_two_approvals_of_nothing_that_waits_are_refused():
    with refused(ConfigError, "ledger.approvals", "ledger.approve_above"):
        Config.load(None, ["ledger.approvals=2"])


def test_the_terms_of_approval_are_those_that_the_run_was_opened_with(waiting):
    config = waiting(approvals=2)
    changed = {**config, "ledger": {**config["ledger"], "approvals": 1}}
    with refused(ConfigError, "ledger.approvals"), bara.open_session("spring", changed):
        pass
    assert at(config, lambda books: books.terms.approvals) == 2

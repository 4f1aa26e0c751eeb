"""Whom the money never reached is seen: in the result, the summary, the report, and by a person."""

import io
import re

import pytest
from refusals import refused
from rich.console import Console
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.cli.tables import statement_tables
from bara.errors import LedgerError
from bara.ledger.attention import Watch
from bara.ledger.run_state import add_totals, closed_rounds
from bara.ledger.statements import own_statement, statement
from bara.reports.html import run_report
from bara.reports.terminal import run_summary
from bara.runs.config import Config
from bara.runs.factory import assemble
from bara.runs.folder import RunFolder

COSTS = {"client-0": 1.0, "client-1": 2.0, "client-2": 4.0, "client-3": 5.0}
CHEAPEST = {
    "mechanism": "bid-price-first",
    "allocator": {"name": "fixed", "n": 2},
    "budget": {"total": 400, "max_rounds": 20, "currency": "EUR"},
    "federation": {"engine": "synthetic"},
    "clients": {"count": 4, "costs": COSTS},
}


@pytest.fixture(scope="module")
def result():
    return bara.run(CHEAPEST)


def test_a_result_names_who_was_never_paid_and_what_they_asked(result):
    assert result.never_paid == {"client-2": 4.0, "client-3": 5.0}
    assert result.never_paid_exact == {"client-2": "4.00", "client-3": "5.00"}
    assert result.share_of_most_paid(1) == pytest.approx(0.5)


def test_where_everybody_was_paid_nobody_is_named():
    everybody = bara.run({**CHEAPEST, "mechanism": "turns"})
    assert everybody.never_paid == {}


def printed(what):
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(what)
    return console.export_text()


def test_the_summary_and_the_report_say_so(result):
    summary = printed(run_summary(result, {}))
    report = run_report(result, "", "")
    for client, price in (("client-2", "4.00"), ("client-3", "5.00")):
        assert re.search(rf"{client}\s+\(asked\s+{price}", summary.replace("│", " "))
        assert price in report[report.index(f"{client}<") :][:80]


def test_the_ledger_and_the_dashboard_list_those_who_won_nothing_with_what_they_asked(tmp_path):
    bara.run(CHEAPEST, out=tmp_path / "run")
    with RunFolder.find(tmp_path / "run") as folder:
        books = folder.read_books()
        account = statement(books)
        totals = {}
        add_totals(books, totals, closed_rounds(books, -1, 20))
    assert {one.client: one.asked_last for one in account.clients} == {
        client: cost * 1e6 for client, cost in COSTS.items()
    }
    assert [one.client for one in account.never_paid] == ["client-2", "client-3"]
    assert account.share_of_most_paid(1) == pytest.approx(0.5)
    assert totals == {one.client: one for one in account.clients}
    table = printed(statement_tables(account))
    assert re.search(r"client-2 +0 +0 +0.00 +4.00 +0.00 +0.00", table)
    assert re.search(r"\sclient-2,\s+client-3\s", table)  # in the words below it


def test_where_bids_are_dropped_the_ledger_lists_winners_alone(tmp_path):
    bara.run({**CHEAPEST, "ledger": {"retention": "drop"}}, out=tmp_path / "run")
    with RunFolder.find(tmp_path / "run") as folder:
        account = statement(folder.read_books())
    assert {one.client: one.asked_last for one in account.clients} == {
        "client-0": None,
        "client-1": None,
    }


@pytest.mark.path
def test_how_old_the_oldest_remembered_update_is_stands_beside_the_money(tmp_path):
    memory = {"training": {"memory": "extrapolated"}, "federation": {"engine": "simulator"}}
    result = bara.run({**CHEAPEST, **memory, "mechanism": "turns"}, out=tmp_path / "run")
    with RunFolder.find(tmp_path / "run") as folder:
        books = folder.read_books()
        account = statement(books)
        ages = [max(record.delivery.ages, default=None) for record in books.history()]
        closed = closed_rounds(books, -1, 20)
    assert ages[-1] > 1
    assert account.oldest == result.history[-1]["oldest"] == ages[-1]
    assert [one.oldest for one in closed] == ages
    for told in (printed(run_summary(result, {})), printed(statement_tables(account))):
        assert re.search(rf"the oldest .*{ages[-1]}\s+rounds\s+old", told, re.DOTALL)
    assert f"the oldest for {ages[-1]} rounds" in run_report(result, "", "")


def test_what_losers_asked_is_dropped_with_the_bids():
    dropped = bara.run({**CHEAPEST, "ledger": {"retention": "drop"}})
    assert dropped.never_paid is None


def test_clients_that_bid_and_never_win_need_a_person_once_all_could_have_had_turns():
    session = assemble(Config.load(CHEAPEST))
    watch = Watch("runs/spring")
    needed = []
    for step in session.rounds(Config.load(CHEAPEST).purse()):
        if isinstance(step, bara.RoundRecord):
            watch.tell(step)
            found = [one.text for one in watch.needs() if "never recruited" in one.key]
            needed.append(bool(found))
    assert "client-2, client-3" in found[0]
    assert needed.index(True) == 6  # twelve were recruited in six rounds: three for each of four


@pytest.mark.parametrize(
    ("mechanism", "clients", "fact"),
    [
        ("posted-price:price=0.1", 4, "mechanism.price"),
        ("bid-price-first", 1, "mechanism.reserve"),
        ("bid-price-first", 4, "explain 1"),
    ],
)
def test_where_nobody_is_paid_the_hint_is_the_mechanisms_own(tmp_path, mechanism, clients, fact):
    name, _, price = mechanism.partition(":price=")
    words = ["run", "--out", str(tmp_path / "run"), "--set", f"mechanism.name={name}"]
    words += ["--set", "federation.engine=synthetic", "--set", f"clients.count={clients}"]
    words += ["--set", "budget.total=0.2", "--set", "budget.max_rounds=2"]
    if price:
        words += ["--set", f"mechanism.price={price}"]
    done = CliRunner().invoke(app, words)
    hint = done.stderr[done.stderr.index("nobody was paid") :]
    assert fact in hint


def test_nobody_need_look_where_all_have_their_turns():
    config = Config.load({**CHEAPEST, "mechanism": "turns"})
    watch = Watch("runs/spring")
    for step in assemble(config).rounds(config.purse()):
        if isinstance(step, bara.RoundRecord):
            watch.tell(step)
    assert not [one for one in watch.needs() if "never recruited" in one.key]


def test_the_statement_of_one_that_never_won_says_so_and_a_misspelt_name_is_told_apart(tmp_path):
    bara.run(CHEAPEST, out=tmp_path / "run")
    with RunFolder.find(tmp_path / "run") as folder:
        books = folder.open_books()
        with refused(LedgerError, "'client-2'", "20 rounds", "4.00"):
            own_statement(books, "client-2")
        with refused(LedgerError, "'cilent-2'", "did you mean 'client-2'"):
            own_statement(books, "cilent-2")

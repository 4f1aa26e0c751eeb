"""Money as people pay it: amounts in whole cents, numbered batches,
each payment in exactly one of them.
"""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from decimal import Decimal
from functools import partial

import pytest
from refusals import refused
from tampering import without_rules
from typer.testing import CliRunner

from bara import Bids, Purse, Session
from bara.allocators import Fixed
from bara.cli import app
from bara.errors import ConfigError, InvalidRecordError, LedgerError
from bara.ledger import Books, Store, Terms
from bara.ledger.payouts import (
    batch_csv,
    batch_json,
    batches,
    due,
    find_batch,
    kept_back,
    new_batch,
    read_payees,
)
from bara.mechanisms import bid_price_first
from bara.records import json_money
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run
from bara.runs.session import OwnLoop

EUR = [
    "federation.engine=synthetic",
    "clients.count=6",
    "clients.failure_rate=0.2",
    "budget.currency=EUR",
]


def cli(*words, code=0):
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def played(tmp_path, monkeypatch):
    """A run in euros with a key; returns its folder."""
    monkeypatch.setenv("THE_KEY", "secret")

    def play(*changes, rounds=12):
        config = Config.load(
            None, [*EUR, f"budget.max_rounds={rounds}", "ledger.key=THE_KEY", *changes]
        )
        with RunFolder.new(tmp_path / "run", config) as folder:
            play_run(config, folder=folder)
        return tmp_path / "run"

    return play


def test_bids_and_budgets_are_whole_cents_or_refused():
    with refused(InvalidRecordError, "budget.total", "0.01 EUR", "30.005 EUR"):
        Purse.of("30.005", 2, "EUR")
    bids = Bids.of({"ann": "1.25", "bob": "2.505"})
    payable = bids.in_units_of(10_000)
    assert (payable.clients, payable.unit) == (("ann",), 10_000)
    for fact in ("'bob'", "0.01", "2.505"):
        assert fact in payable.left_out["bob"]
    for change, said in (
        ("budget.currency=EURO", "ISO 4217"),
        ("ledger.client_cap=1.005", "whole in the smallest unit"),
        ("budget.total=10.001", "whole multiple"),
    ):
        done = CliRunner().invoke(
            app, ["run", "--set", "budget.currency=EUR", "--set", change, "--show-config"]
        )
        assert done.exit_code == 2
        assert said in done.output


@pytest.mark.parametrize(
    "mechanism", ["quality:quality=samples", "proportional-share:quality=samples"]
)
@pytest.mark.parametrize("currency", ["EUR", "JPY"])
def test_what_a_mechanism_claims_holds_at_the_smallest_unit(mechanism, currency):
    assert "holds in 40 trials" in cli("audit", mechanism, "--trials", 40, "--currency", currency)


def test_every_export_adds_up_to_the_cent(played):
    """Statement, rounds, lines, JSON and batches say one and the same sum;
    `make thorough` plays 10,000 rounds.
    """
    rounds = int(os.environ.get("BARA_TEST_ROUNDS", "150"))
    folder = played(
        "allocator.name=even",
        f"budget.total={20 * rounds}",
        "clients.bids=uniform(0.5, 9)",
        rounds=rounds,
    )
    whole = json.loads(cli("ledger", folder, "statement", "--json"))
    spent = Decimal(whole["spent_exact"])
    assert spent + Decimal(whole["left_exact"]) == Decimal(whole["budget_exact"])
    made = [
        batch["total_exact"] for batch in json.loads(cli("ledger", folder, "payouts", "--json"))
    ]
    exports = {
        "clients": [row["paid"] for row in table(cli("ledger", folder, "statement", "--csv"))],
        "rounds": [
            row["paid"] for row in table(cli("ledger", folder, "statement", "--csv", "--rounds"))
        ],
        "lines": [row["paid"] for row in table(cli("ledger", folder, "export", "--csv"))],
        "json": [
            line["paid_exact"] for line in json.loads(cli("ledger", folder, "export"))["lines"]
        ],
        "batches": made,
    }
    for name, amounts in exports.items():
        assert sum(map(Decimal, amounts)) == spent, name
        assert all(Decimal(amount) * 100 % 1 == 0 for amount in amounts), name
    assert spent > 0


def test_without_the_key_a_statement_says_that_it_is_not_verified(played, monkeypatch):
    folder = played()
    runner = CliRunner()
    told = runner.invoke(app, ["ledger", str(folder)])
    assert "NOT VERIFIED" not in told.stderr
    monkeypatch.delenv("THE_KEY")
    for words in ([], ["statement", "--json"], ["export", "--csv"], ["explain", "1"]):
        told = runner.invoke(app, ["ledger", str(folder), *words])
        assert told.exit_code == 0
        assert "NOT VERIFIED: run 'run' has a key, which is not set here" in told.stderr


def test_each_payment_is_in_one_batch_which_prints_the_same_again(played, tmp_path):
    folder = played()
    owed = json.loads(cli("ledger", folder, "payouts", "--json"))
    assert [(one["batch"], one["due"], one["at"]) for one in owed] == [(None, True, "")]
    assert {row["reference"] for row in owed[0]["payments"]} == {
        ""
    }  # nothing to transfer by, before it is made
    (tmp_path / "payees.csv").write_text(
        "client,name,iban\n" + "".join(f"client-{i},Clinic {i},DE{i}\n" for i in range(6))
    )
    first = cli("ledger", folder, "payouts", "--new", "--payees", tmp_path / "payees.csv")
    assert table(first)[0].keys() == {
        "client",
        "name",
        "iban",
        "amount",
        "currency",
        "rounds",
        "reference",
    }
    assert [row["reference"] for row in table(first)] == [
        f"run-1-{place}" for place in range(1, 1 + len(table(first)))
    ]
    assert first == cli(
        "ledger", folder, "payouts", "--batch", 1, "--payees", tmp_path / "payees.csv"
    )
    assert sum(Decimal(row["amount"]) for row in table(first)) == Decimal(owed[0]["total_exact"])
    assert "every payment is in a batch already" in cli(
        "ledger", folder, "payouts", "--new", code=1
    )
    assert "has no batch 2; it has 1 batch" in cli(
        "ledger", folder, "payouts", "--batch", 2, code=1
    )
    assert "the record is whole" in cli("ledger", folder, "verify")
    with closing(sqlite3.connect(folder / "ledger.db")) as database:
        assert not any("Clinic" in line for line in database.iterdump())


def test_a_batch_pays_the_rounds_that_none_before_it_pays(open_books, play_into):
    books = open_books()
    play_into(books, steps=5)  # settles round 2
    new_batch(books)
    play_into(books)
    new_batch(books)
    assert [(one.number, one.first, one.last) for one in batches(books)] == [(1, 1, 2), (2, 3, 6)]
    assert [find_batch(books, number).last for number in (1, 2)] == [2, 6]
    for number in (0, 3):
        with refused(LedgerError, f"no batch {number}", "2 batches"):
            find_batch(books, number)


def play_in_cents(books):
    """Three rounds of one's own loop, whose bids are whole cents."""
    session = Session(Fixed(2), bid_price_first(), OwnLoop())
    session.start(books)
    session.begin(0.1)
    while session.ask():
        session.award({"ann": 1, "bob": 1 + session.round, "cat": 3, "dan": 4})
        session.settle(0.2)


def test_runs_in_one_database_have_batches_of_their_own(tmp_path):
    with closing(Store.in_file(tmp_path / "books.db")) as store:
        one = Books.open(store, "one", {}, Purse.of(30, 3, currency="EUR"))
        two = Books.open(store, "two", {}, Purse.of(30, 3))
        for books in (one, two):
            play_in_cents(books)
        new_batch(one)
        assert (batches(two), due(one)) == ([], None)
        assert due(two).number == new_batch(two).number == 1
        for books, currency in ((one, "EUR"), (two, "")):
            rows = table(batch_csv(books, find_batch(books, 1)))
            assert {row["currency"] for row in rows} == {currency}
            times = Counter(client for record in books.history() for client in record.payments)
            assert {row["client"]: int(row["rounds"]) for row in rows} == times


def test_a_batch_in_json_has_the_payees_cells_and_exact_amounts(open_books, play_into):
    books = open_books()
    play_into(books)
    batch = new_batch(books)
    payees = {client: {"client": client, "iban": f"of {client}"} for client, _, _ in batch.payments}
    written = batch_json(books, batch, payees)
    rows = written.pop("payments")
    assert written == {
        "run": "run",
        "batch": 1,
        "due": False,
        "first_round": 1,
        "last_round": 6,
        "at": batch.at,
        "currency": None,
        **json_money(total=batch.total),
    }
    for row, (client, amount, rounds) in zip(rows, batch.payments, strict=True):
        assert (row["client"], row["iban"], row["rounds"]) == (client, f"of {client}", rounds)
        assert Decimal(row["amount_exact"]) * 10**6 == amount


def test_without_a_currency_amounts_are_exact_to_the_millionth(open_books, play_into):
    books = open_books()
    play_into(books)
    batch = new_batch(books)
    assert due(books) is None
    assert [one.number for one in batches(books)] == [1]
    assert batch_json(books, batch)["total_exact"] == table_total(batch_csv(books, batch))


def table_total(text):
    return str(sum(Decimal(row["amount"]) for row in table(text)))


def test_a_payee_who_is_not_known_stops_the_batch_before_it_is_made(played, tmp_path):
    folder = played()
    (tmp_path / "payees.csv").write_text("client,name\nclient-0,A\n")
    said = cli("ledger", folder, "payouts", "--new", "--payees", tmp_path / "payees.csv", code=1)
    assert "has no line for 'client-1', " in said
    assert "is due, in no batch yet" in cli("ledger", folder, "payouts")
    assert "batch  " not in cli("ledger", folder, "payouts")
    for text, *facts in (
        ("name\nA\n", "column", "`client`"),
        ("client\nA\nA\n", "payee 2", "'A'"),
        ("client,name\nA\n", "cells", "'A'", "payee 1"),
        ("client,name\nA,B\nC,D,E\n", "cells", "'C'", "payee 2"),
    ):
        (tmp_path / "payees.csv").write_text(text)
        with refused(ConfigError, tmp_path / "payees.csv", *facts):
            read_payees(tmp_path / "payees.csv")
    (tmp_path / "payees.csv").write_bytes(b"client\nJos\xe9\n")
    for file, reason in (("payees.csv", "UTF-8"), ("nothing.csv", "No such file")):
        with refused(ConfigError, tmp_path / file, reason):
            read_payees(tmp_path / file)


@pytest.mark.parametrize("text", ["\ufeffclient,name\r\nA,B\r\n", "client;name\nA;B\n"])
def test_payees_are_read_as_spreadsheets_write_them(tmp_path, text):
    (tmp_path / "payees.csv").write_text(text, newline="")
    assert read_payees(tmp_path / "payees.csv") == {"A": {"client": "A", "name": "B"}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("client;name\nA;Smith, Bob\n", {"client": "A", "name": "Smith, Bob"}),
        ("client,bank;branch\nA,B;C\n", {"client": "A", "bank;branch": "B;C"}),
    ],
)
def test_the_first_line_of_payees_says_what_parts_the_cells(tmp_path, text, found):
    (tmp_path / "payees.csv").write_text(text)
    assert read_payees(tmp_path / "payees.csv") == {"A": found}


def test_a_column_of_the_payees_never_takes_the_place_of_a_batchs_own(open_books, play_into):
    books = open_books()
    play_into(books)
    batch = new_batch(books)
    own = ("amount", "currency", "rounds", "reference")
    payees = {
        client: {"client": "mallory", **dict.fromkeys(own, "9"), "iban": "DE1"}
        for client, _, _ in batch.payments
    }
    text = batch_csv(books, batch, payees)
    assert text.splitlines()[0] == "client,iban,amount,currency,rounds,reference"
    without = [{k: v for k, v in row.items() if k != "iban"} for row in table(text)]
    assert without == table(batch_csv(books, batch))


def test_payees_may_come_through_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        pool.submit((tmp_path / "pipe").write_text, "client,name\nA,B\n")
        assert read_payees(tmp_path / "pipe") == {"A": {"client": "A", "name": "B"}}


def test_without_the_key_of_its_run_no_batch_is_made_or_shown(open_books, play_into):
    keyed = open_books("keyed", Terms(key=b"secret"))
    play_into(keyed, steps=5)
    new_batch(keyed)
    play_into(keyed)
    without = Books.find(keyed.store)
    for use in (due, batches, kept_back, new_batch, partial(find_batch, number=1)):
        with refused(LedgerError, "'keyed'", "ledger.key"):
            use(without)
    assert len(batches(keyed)) == 1


def test_no_payee_smuggles_a_formula_into_a_batch_whatever_parts_its_cells(played, tmp_path):
    folder = played()
    names = ["=1+1", "x;=1+1", 'x; "=1+1"', "@SUM(A1)", " -2+3", "＝1+1"]
    with (tmp_path / "payees.csv").open("w") as file:
        csv.writer(file).writerows(
            [("client", "=name"), *((f"client-{i}", name) for i, name in enumerate(names))]
        )
    text = cli("ledger", folder, "payouts", "--new", "--payees", tmp_path / "payees.csv")
    for parted in (",", ";"):
        cells = [cell for row in csv.reader(io.StringIO(text), delimiter=parted) for cell in row]
        assert not [cell for cell in cells if cell.strip(' "')[:1] in {*"=+-@＝"}]


def test_a_copy_pays_nobody_out(played, tmp_path):
    folder = played()
    shutil.copytree(folder, tmp_path / "copy")
    assert "here and nowhere else, use `bara ledger" in cli(
        "ledger", tmp_path / "copy", "payouts", "--new", code=1
    )
    shutil.copy(folder / "ledger.db", tmp_path / "copy.db")
    assert "here and nowhere else, use `bara ledger" in cli(
        "ledger", f"sqlite:///{tmp_path}/copy.db", "payouts", "--new", code=1
    )
    cli("ledger", folder, "payouts", "--new")


def test_a_ledger_with_a_second_name_pays_nobody_out(played):
    """Each name would have a write-ahead log of its own,
    and show what the other has paid out as still due.
    """
    folder = played()
    os.link(folder / "ledger.db", folder / "other.db")
    for place in (folder, f"sqlite:///{folder}/other.db"):
        assert "has another name, too (a hard link)" in cli(
            "ledger", place, "payouts", "--new", code=1
        )
    (folder / "other.db").unlink()
    cli("ledger", folder, "payouts", "--new")


def test_an_older_state_put_back_does_not_pay_out_again_where_there_is_a_receipt(played, tmp_path):
    folder = played(f"ledger.receipt={tmp_path / 'receipt.json'}")
    before = (folder / "ledger.db").read_bytes()
    cli("ledger", folder, "payouts", "--new")
    (folder / "ledger.db").write_bytes(before)
    assert "receipt" in cli("ledger", folder, "payouts", "--new", code=1)


def test_of_many_who_pay_out_at_once_one_makes_the_batch(played):
    folder = played()

    def pay_out(_):
        with RunFolder.find(folder) as found, contextlib.suppress(LedgerError):
            return new_batch(found.open_books()).number

    with ThreadPoolExecutor(6) as cashiers:
        assert sorted(cashiers.map(pay_out, range(6)), key=str) == [1, *[None] * 5]
    assert "the record is whole" in cli("ledger", folder, "verify")


@pytest.mark.parametrize(
    "change", ["body = replace(body, '\"first\":1', '\"first\":2')", "round = 3"]
)
def test_a_changed_batch_is_found(played, change):
    folder = played()
    cli("ledger", folder, "payouts", "--new")
    with closing(sqlite3.connect(folder / "ledger.db")) as database:
        with without_rules(database):
            database.execute(f"UPDATE events SET {change} WHERE kind = 'paid out'")  # noqa: S608 - our own words
        database.commit()
    assert "NOT whole" in cli("ledger", folder, "verify", code=1)
    assert "is not whole" in cli("ledger", folder, "payouts", code=1)


def test_a_signed_page_is_made_for_a_client_and_a_period_and_can_be_checked(played, tmp_path):
    folder = played()
    page, key = tmp_path / "statement.html", cli("ledger", folder, "sign").strip()
    page.write_text(
        cli(
            "ledger", folder, "statement", "--client", "client-1", "--since", "2020-01-01", "--html"
        )
    )
    text = page.read_text()
    assert "EUR" in text
    assert "http" not in text.replace("http-equiv", "")
    assert "the receipt is good: the operator signed that client-1 earned" in cli(
        "receipt", page, "--public-key", key
    )
    assert "but the client's record says 1.00 EUR" in cli(
        "receipt", page, "--public-key", key, "--paid", 1, code=1
    )
    page.write_text(re.sub(r"(<b>)[\d,.]+( EUR</b>)", r"\g<1>9,999.99\2", text, count=1))
    assert "was changed after it was signed" in cli("receipt", page, "--public-key", key, code=2)
    page.write_text(text.replace('"paid": ', '"paid": 1', 1))
    assert "does not match" in cli("receipt", page, "--public-key", key, code=1)
    for days in (("--until", "2020-01-01"), ("--since", "2999-01-01")):
        assert "in these days" in cli(
            "ledger", folder, "statement", "--client", "client-1", *days, code=1
        )
    own = ["ledger", folder, "statement", "--client", "client-1"]
    assert "must be days like 2026-01-31, got 'soon'" in cli(*own, "--until", "soon", code=1)
    assert "must not be after" in cli(
        *own, "--since", "2026-02-01", "--until", "2026-01-01", code=1
    )


def test_a_mechanism_that_pays_parts_of_a_cent_is_refused_before_the_promise(tmp_path, monkeypatch):
    (tmp_path / "crooked.py").write_text(
        "from bara.mechanisms import QualityAuction\nfrom dataclasses import replace\n\n\n"
        "class Crooked(QualityAuction):\n    def menu(self, bids):\n"
        "        menu = super().menu(bids)\n"
        "        return replace(menu, costs=menu.costs + 1, "
        "pay=lambda n, cap: menu.pay(n, cap) + (n == 1))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = Config.load(
        None, [*EUR, "mechanism.name=crooked:Crooked", "allocator.name=fixed", "allocator.n=1"]
    )
    with refused(InvalidRecordError, "Crooked", "'client-", "0001 EUR", "0.01 EUR"):
        play_run(config)


def test_in_a_currency_without_cents_no_export_has_any(tmp_path):
    yen = [change.replace("EUR", "JPY") for change in EUR]
    config = Config.load(None, [*yen, "budget.max_rounds=3"])
    with RunFolder.new(tmp_path / "run", config) as folder:
        play_run(config, folder=folder)
    batch = table(cli("ledger", tmp_path / "run", "payouts", "--new"))
    assert batch
    for row in (*batch, *table(cli("ledger", tmp_path / "run", "export", "--csv"))):
        amounts = [row[name] for name in ("amount", "promised", "paid") if row.get(name)]
        assert amounts
        assert not [amount for amount in amounts if "." in amount]


def test_a_large_batch_asks_for_a_receipt_which_a_twin_of_the_disk_does_not_share(
    open_books, play_into, tmp_path
):
    books = open_books(terms=Terms(receipt_above=1_000_000))
    play_into(books)
    total = due(books).total
    with refused(LedgerError, "ledger.receipt_above", "1.00", "adopt --new-receipt"):
        new_batch(books)
    assert not batches(books)
    assert new_batch(books, without_receipt=True).total == total
    receipt = Terms(receipt_above=1_000_000, receipt=tmp_path / "receipt.json")
    covered = open_books("covered", receipt)
    play_into(covered)
    assert new_batch(covered).total == total


def test_a_twin_that_shares_all_but_the_receipt_pays_nobody_a_second_time(
    open_books, play_into, tmp_path, monkeypatch
):
    """An image of a disk has the same numbers; here both copies are made to say the same place."""
    monkeypatch.setattr(Store, "identity", lambda _: "the same disk")
    terms = Terms(receipt=tmp_path / "receipt.json")
    books = open_books(terms=terms)
    play_into(books)
    books.store.close()
    shutil.copy(tmp_path / "run.db", tmp_path / "twin.db")
    new_batch(books)
    with closing(Store.in_file(tmp_path / "twin.db")) as store:
        with refused(LedgerError, "receipt counts 22 events"):
            new_batch(Books.find(store, terms=terms))
        assert new_batch(Books.find(store)).number == 1  # without a receipt nobody can tell


def test_a_large_batch_is_made_without_a_receipt_only_if_the_operator_says_so(played):
    folder = played("ledger.receipt_above=1")
    assert "ledger.receipt_above" in cli("ledger", folder, "payouts", "--new", code=1)
    assert table(cli("ledger", folder, "payouts", "--new", "--without-receipt"))


@pytest.mark.parametrize(
    ("days", "said"),
    [
        ({}, "over the whole run so far"),
        ({"--since": "2020-01-01"}, "from 2020-01-01 on"),
        ({"--until": "2999-12-31"}, "up to 2999-12-31"),
        ({"--since": "2020-01-01", "--until": "2999-12-31"}, "2020-01-01 to 2999-12-31"),
    ],
)
def test_the_check_of_a_receipt_names_run_and_period(played, tmp_path, days, said):
    folder = played(rounds=3)
    given = [word for pair in days.items() for word in pair]
    page = cli("ledger", folder, "statement", "--client", "client-0", "--html", *given)
    (tmp_path / "page.html").write_text(page)
    key = cli("ledger", folder, "sign").strip()
    checked = cli("receipt", tmp_path / "page.html", "--public-key", key)
    assert f"in run 'run', {said}" in checked

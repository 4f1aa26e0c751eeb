"""The bank: SEPA files by reference, and what its statements show as transferred."""

import csv
import hashlib
import io
import json
from xml.etree import ElementTree as ET

import pytest
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import ConfigError, LedgerError
from bara.ledger import verify
from bara.ledger.bank import credit_transfers, read_statement, reconcile
from bara.ledger.corrections import correct
from bara.ledger.decisions import decisions
from bara.ledger.payouts import (
    batches,
    due,
    kept_back,
    new_batch,
    read_payees,
    reference_of,
    returned,
    transfers,
)
from bara.records import money
from bara.runs.database import DatabaseRun
from bara.runs.explanation import explain_round

NS = {"": "urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"}
OURS = "DE02120300000000202051"
PAYEES = """client;name;iban
north;Nørth Clinic;DE02500105170137075030
south;St. Anna & Co;DE02100500000054540402
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "payees.csv").write_text(PAYEES)
    config = {
        "budget": {"total": 100, "max_rounds": 9, "currency": "EUR"},
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "mechanism": {"name": "bid-price-first"},
        "ledger": {"url": f"sqlite:///{tmp_path}/books.db"},
    }
    play(config)
    return config


def play(config, rounds=1):
    """Play rounds in each of which north and south earn 6.50."""
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        for _ in range(rounds):
            session.ask()
            session.award({"north": 3, "south": 4, "east": "6.50"})
            session.settle(0.2)


def at(config, action, *, hold=False):
    with DatabaseRun.find(config["ledger"]["url"]) as place:
        return action(place.hold_books() if hold else place.open_books())


def cli(config, *words):
    return CliRunner().invoke(app, ["ledger", config["ledger"]["url"], *map(str, words)])


def sepa(config, *words, code=0):
    account = ["--sepa", "--from-name", "The Consortium", "--from-iban", OURS]
    done = cli(config, "payouts", *words, "--payees", "payees.csv", *account)
    assert done.exit_code == code, done.output
    return done.output


def camt(*entries):
    """A statement with an entry for each (reference, amount, way)."""
    shown = "".join(
        f"<Ntry><Amt Ccy='EUR'>{amount}</Amt><CdtDbtInd>{way}</CdtDbtInd><BookgDt><Dt>2026-03-02"
        f"</Dt></BookgDt><NtryDtls><TxDtls><Refs><EndToEndId>{reference}</EndToEndId></Refs>"
        "</TxDtls></NtryDtls></Ntry>"
        for reference, amount, way in entries
    )
    space = "urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"
    return (
        f"<Document xmlns='{space}'><BkToCstmrStmt><Stmt>{shown}</Stmt></BkToCstmrStmt></Document>"
    ).replace("'", '"')


def read_in(config, tmp_path, text, name="statement.xml"):
    (tmp_path / name).write_text(text)
    return at(config, lambda books: reconcile(books, tmp_path / name, by="carl"))


def names(rows):
    return [row["reference"] for row in rows]


def test_a_batch_becomes_credit_transfers_with_a_reference_for_each_payment(config):
    tree = ET.fromstring(sepa(config, "--new").encode())  # noqa: S314 - our own
    paid = {
        one.findtext("PmtId/EndToEndId", None, NS): (
            one.findtext("Cdtr/Nm", None, NS),
            one.findtext("CdtrAcct/Id/IBAN", None, NS),
            one.findtext("Amt/InstdAmt", None, NS),
        )
        for one in tree.iterfind(".//CdtTrfTxInf", NS)
    }
    assert paid == {
        "spring-1-1": ("North Clinic", "DE02500105170137075030", "6.50"),
        "spring-1-2": ("St. Anna + Co", "DE02100500000054540402", "6.50"),
    }
    assert tree.findtext(".//GrpHdr/CtrlSum", None, NS) == "13.00"
    assert tree.findtext(".//GrpHdr/MsgId", None, NS) == "spring-1"
    assert tree.findtext(".//DbtrAcct/Id/IBAN", None, NS) == OURS


def test_each_transfer_is_booked_by_itself_so_that_a_statement_shows_its_reference(config):
    tree = ET.fromstring(sepa(config, "--new").encode())  # noqa: S314 - our own
    orders = tree.findall(".//PmtInf", NS)
    assert [one.findtext("BtchBookg", None, NS) for one in orders] == ["false", "false"]
    assert [len(one.findall("CdtTrfTxInf", NS)) for one in orders] == [1, 1]
    assert len({one.findtext("PmtInfId", None, NS) for one in orders}) == 2


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Universitätsklinikum Gießen & Marburg", "Universitatsklinikum Giessen + Marburg"),
        ("Hôpital_Nord @ Genève; #1", "Hopital-Nord . Geneve. .1"),
        ("x" * 80, "x" * 70),
        ("two\nlines", "two lines"),
        ("東京病院", "Dong Jing Bing Yuan"),
    ],
)
def test_names_are_written_in_the_letters_that_every_bank_takes(config, tmp_path, name, written):
    text = f'client;name;iban\nnorth;"{name}";{OURS}\nsouth;South;{OURS}\n'
    (tmp_path / "payees.csv").write_text(text)
    tree = ET.fromstring(sepa(config, "--new").encode())  # noqa: S314 - our own
    assert tree.findtext(".//Cdtr/Nm", None, NS) == written


def test_the_file_of_a_batch_is_the_same_message_each_time(config):
    sepa(config, "--new")

    def without_time(text):
        return [
            line for line in text.splitlines() if "CreDtTm" not in line and "PmtInfId" not in line
        ]

    assert without_time(sepa(config, "--batch", 1)) == without_time(sepa(config, "--batch", 1))


def test_the_csv_has_the_same_references(config):
    at(config, new_batch)
    rows = cli(config, "payouts", "--batch", 1).output.splitlines()
    assert [row.rpartition(",")[2] for row in rows] == ["reference", "spring-1-1", "spring-1-2"]


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ("DE02500105170137075030", "DE02500105170137075031", ("'north'", "DE02500105170137075031")),
        ("DE02500105170137075030", "", ("'north'", "'iban'")),
        ("DE02500105170137075030", "TR330006100519786457841326", ("'north'", "SEPA", "TR")),
        ("Nørth Clinic", "!!!", ("'north'", "'!!!'")),
        ("client;name;iban", "client;owner;iban", ("'north'", "'name'")),
        ("south", "soth", ("'south'", "--payees")),
        ("client;name;iban", "klient;name;iban", ("`client`", "';'", "'klient'")),
    ],
)
def test_a_payee_that_cannot_be_paid_is_refused_before_the_batch_is_made(
    config, tmp_path, old, new, facts
):
    file = tmp_path / "payees.csv"
    file.write_text(file.read_text().replace(old, new))
    done = cli(
        config,
        *("payouts", "--new", "--payees", file, "--sepa"),
        *("--from-name", "The Consortium", "--from-iban", OURS),
    )
    assert done.exit_code in {1, 2}
    assert all(fact in done.output for fact in facts), done.output
    assert at(config, batches) == []


def test_an_account_of_our_own_that_is_none_is_refused(config, tmp_path):
    payees = read_payees(tmp_path / "payees.csv")
    with refused(ConfigError, "who pays", "DE00"):
        at(config, lambda books: credit_transfers(books, due(books), payees, "We", "DE00"))


def test_sepa_is_refused_in_another_currency_or_without_what_it_needs(config, tmp_path):
    assert cli(config, "payouts", "--new", "--sepa").exit_code == 2
    dollars = {
        **config,
        "budget": {**config["budget"], "currency": "USD"},
        "ledger": {"url": f"sqlite:///{tmp_path}/dollars.db"},
    }
    play(dollars)
    assert "USD" in sepa(dollars, "--new", code=2)
    assert at(dollars, batches) == []


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("spring", "spring-12"),
        ("Spring-2026", "Spring-2026-12"),
        ("twenty-letters-of-it", "twenty-letters-of-it-12"),
        ("twenty-letters-of-its", "twenty-letter-"),
        ("a run, with a very long name", "a-run-with-a--"),
        ("été", "t-"),
        ("!", "-"),
    ],
)
def test_references_fit_a_bank_and_differ_between_runs(config, name, reference):
    def refer(books):
        books.name = name
        return reference_of(books, 12), reference_of(books, 12, 345)

    batch, found = at(config, refer)
    if reference.endswith("-"):  # a part of a digest tells the run from others
        reference += f"{hashlib.sha256(name.encode()).hexdigest()[:6]}-12"
    assert (batch, found) == (reference, f"{reference}-345")
    assert len(found) <= 35
    assert found.isascii()
    assert found.replace("-", "").isalnum()


@pytest.mark.parametrize("kind", ["camt.053", "CSV"])
def test_a_statement_says_what_was_transferred_what_is_missing_and_what_is_unknown(
    config, tmp_path, kind
):
    at(config, new_batch)
    if kind == "CSV":
        text = "date;reference;amount\n2026-03-02;spring-1-1;-6.50\n2026-03-02;rent;800\n"
    else:
        text = camt(("spring-1-1", "6.50", "DBIT"), ("rent", "800.00", "DBIT"))
    report = read_in(config, tmp_path, text)
    assert names(report.found) == ["spring-1-1"]
    assert names(report.missing) == ["spring-1-2"]
    assert names(report.unknown) == ["rent"]
    shown = {one["client"]: one["transferred"] for one in at(config, transfers)}
    assert shown == {"north": "2026-03-02", "south": ""}
    assert at(config, verify).ok


CAMT = """<?xml version='1.0' encoding='UTF-8'?>
<P:Document xmlns:P='urn:iso:std:iso:20022:tech:xsd:camt.053.001.02'><P:BkToCstmrStmt>
<P:Stmt><P:Acct/><P:Ntry><P:Amt Ccy='EUR'>800</P:Amt><P:CdtDbtInd>DBIT</P:CdtDbtInd>
<P:Sts>BOOK</P:Sts></P:Ntry></P:Stmt>
<P:Stmt><P:Acct/><P:Ntry><P:Amt Ccy='EUR'>13.00</P:Amt><P:CdtDbtInd>DBIT</P:CdtDbtInd>
<P:Sts>STATE</P:Sts><P:BookgDt><P:DtTm>2026-03-02T09:00:00</P:DtTm></P:BookgDt><P:NtryDtls>
<P:TxDtls><P:Refs><P:EndToEndId>spring-1-1</P:EndToEndId></P:Refs><P:AmtDtls><P:TxAmt>
<P:Amt Ccy='EUR'>6.50</P:Amt></P:TxAmt></P:AmtDtls></P:TxDtls>
<P:TxDtls><P:Refs><P:EndToEndId>spring-1-2</P:EndToEndId></P:Refs><P:AmtDtls><P:TxAmt>
<P:Amt Ccy='CCY'>6.50</P:Amt></P:TxAmt></P:AmtDtls></P:TxDtls>
</P:NtryDtls></P:Ntry></P:Stmt></P:BkToCstmrStmt></P:Document>"""


def test_a_statement_of_two_accounts_with_transfers_booked_in_one_sum_is_read(config, tmp_path):
    at(config, new_batch)
    text = CAMT.replace("STATE", "BOOK").replace("CCY", "EUR")
    report = read_in(config, tmp_path, text)
    assert names(report.found) == ["spring-1-1", "spring-1-2"]
    assert [row["transferred"] for row in report.found] == ["2026-03-02"] * 2
    assert [(row["reference"], row["amount"]) for row in report.unknown] == [("", money(800))]


@pytest.mark.parametrize("state", ["PDNG", "<P:Cd>PDNG</P:Cd>"])
def test_what_is_pending_is_not_transferred(config, tmp_path, state):
    at(config, new_batch)
    report = read_in(config, tmp_path, CAMT.replace("STATE", state).replace("CCY", "EUR"))
    assert report.found == []
    assert names(report.missing) == ["spring-1-1", "spring-1-2"]


@pytest.mark.parametrize("kind", ["camt.053", "CSV"])
def test_the_same_amount_in_another_currency_is_not_the_payment(config, tmp_path, kind):
    at(config, new_batch)
    text = CAMT.replace("STATE", "<P:Cd>BOOK</P:Cd>").replace("CCY", "CHF")
    if kind == "CSV":
        text = "reference,amount,currency\nspring-1-1,-6.50,EUR\nspring-1-2,-6.50,CHF\n"
    report = read_in(config, tmp_path, text)
    assert names(report.found) == ["spring-1-1"]
    (why,) = (row["why"] for row in report.unknown if row["reference"])
    assert "CHF" in why
    assert "6.50 EUR" in why


def test_a_statement_that_is_read_again_changes_nothing(config, tmp_path):
    at(config, new_batch)
    text = camt(("spring-1-1", "6.50", "DBIT"), ("spring-1-2", "6.50", "DBIT"))
    first = read_in(config, tmp_path, text)
    events = at(config, lambda books: books.receipt().events)
    again = read_in(config, tmp_path, text)
    assert (names(first.found), again.found, again.missing) == (
        ["spring-1-1", "spring-1-2"],
        [],
        [],
    )
    assert at(config, lambda books: books.receipt().events) == events


def test_another_amount_a_second_time_and_money_that_came_back_are_unknown(config, tmp_path):
    at(config, new_batch)
    report = read_in(
        config,
        tmp_path,
        camt(
            ("spring-1-1", "6.49", "DBIT"),
            ("spring-1-2", "6.50", "DBIT"),
            ("spring-1-2", "6.50", "DBIT"),
            ("spring-1-2", "6.50", "CRDT"),
        ),
    )
    assert names(report.found) == ["spring-1-2"]
    assert names(report.missing) == ["spring-1-1"]
    reasons = [row["why"] for row in report.unknown]
    assert [("6.50 EUR" in why, "twice" in why, "returned 1" in why) for why in reasons] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


SIGNED = "date,reference,amount\n2026-04-01,rent,-800\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (camt(("spring-1-1", "6.50", "CRDT")), "returned 1"),
        (SIGNED + "2026-04-02,spring-1-1,6.50\n", "returned 1"),
        (SIGNED + "2026-04-02,spring-1-1,-6.50\n", "2026-03-02"),
        (camt(("spring-1-1", "6.50", "DBIT")).replace("2026-03", "2026-04"), "2026-03-02"),
    ],
    ids=["camt, came back", "csv, came back", "csv, twice", "camt, twice"],
)
def test_what_a_later_statement_shows_of_a_payment_again_is_unknown(config, tmp_path, text, why):
    at(config, new_batch)
    read_in(config, tmp_path, camt(("spring-1-1", "6.50", "DBIT"), ("spring-1-2", "6.50", "DBIT")))
    report = read_in(config, tmp_path, text)
    (found,) = [one for one in report.unknown if one["reference"] == "spring-1-1"]
    assert why in found["why"]
    assert not report.found


def test_what_came_back_and_is_said_to_have_is_known(config, tmp_path):
    at(config, new_batch)
    at(config, lambda books: returned(books, 1, ["north"]))
    assert not read_in(config, tmp_path, camt(("spring-1-1", "6.50", "CRDT"))).unknown


def test_a_client_that_is_named_twice_came_back_once_and_the_record_stays_whole(config):
    at(config, new_batch)
    assert at(config, lambda books: returned(books, 1, ["north", "north"])) == ["north"]
    assert at(config, verify).ok
    assert at(config, due).total == money("6.50")


def test_every_cent_is_due_batched_transferred_or_came_back(config, tmp_path):
    """Through corrections, a transfer that came back, and the batch that pays it again."""
    at(config, new_batch)
    read_in(config, tmp_path, camt(("spring-1-1", "6.50", "DBIT"), ("spring-1-2", "6.50", "DBIT")))
    at(config, lambda books: returned(books, 1, ["south"], reason="closed"))
    at(config, lambda books: correct(books, 1, "south", money(-2), reason="too much"), hold=True)
    play(config)
    at(config, new_batch)
    assert [
        (one["reference"], one["amount"], one["transferred"], one["returned"])
        for one in at(config, transfers)
    ] == [
        ("spring-1-1", money("6.50"), "2026-03-02", False),
        ("spring-1-2", money("6.50"), "2026-03-02", True),
        ("spring-2-1", money("6.50"), "", False),
        ("spring-2-2", money("11"), "", False),
    ]
    report = read_in(config, tmp_path, camt(("spring-2-2", "11.00", "DBIT")))
    assert names(report.missing) == ["spring-2-1"]
    assert at(config, verify).ok
    kept = [one for one in at(config, transfers) if not one["returned"]]
    assert sum(one["amount"] for one in kept) == money(26 - 2)


def test_the_decisions_about_transfers_say_which_and_how_much(config, tmp_path):
    at(config, new_batch)
    at(config, lambda books: returned(books, 1, ["south"], reason="closed"))
    at(config, lambda books: correct(books, 1, "south", money(-2), reason="too much"), hold=True)
    at(config, new_batch)
    paid = (("spring-1-1", "6.50", "DBIT"), ("spring-2-1", "4.50", "DBIT"))
    read_in(config, tmp_path, camt(*paid))
    told = [(one.what, one.about, one.amount) for one in at(config, decisions)]
    assert told == [
        ("paid out", "batch 1", money(13)),
        ("returned", "batch 1: south", money("6.50")),
        ("corrected", "south, round 1", money(-2)),
        ("paid out", "batch 2", money("4.50")),
        ("transferred", "batch 1: north; batch 2: south", money(11)),
    ]
    rows = list(csv.DictReader(io.StringIO(cli(config, "decisions", "--csv").output)))
    assert [row["amount"] for row in rows] == ["13.00", "6.50", "-2.00", "4.50", "11.00"]
    tree = json.loads(cli(config, "decisions", "--json").output)
    assert (tree[1]["about"], tree[1]["amount_exact"]) == ("batch 1: south", "6.50")
    assert all(text in cli(config, "decisions").output for text in ("6.50", "11.00", "south"))


def test_the_list_of_batches_says_what_was_transferred_and_who_owes(config, tmp_path):
    at(config, new_batch)
    read_in(config, tmp_path, camt(("spring-1-1", "6.50", "DBIT"), ("spring-1-2", "6.50", "DBIT")))
    at(config, lambda books: returned(books, 1, ["south"]))
    at(config, lambda books: correct(books, 1, "north", money("-2.25")), hold=True)
    first, again = json.loads(cli(config, "payouts", "--json").output)
    state = [(row["transferred"], row["returned"]) for row in first["payments"]]
    assert state == [("2026-03-02", False), ("2026-03-02", True)]
    assert [(row["client"], row["transferred"]) for row in again["payments"]] == [("south", None)]
    assert "north owes 2.25 EUR" in cli(config, "payouts").output
    assert at(config, kept_back) == {"north": money("2.25")}
    play(config)
    assert at(config, kept_back) == {}


def test_what_a_client_owes_is_to_be_asked_back_once_the_run_has_ended(config):
    at(config, new_batch)
    at(config, lambda books: correct(books, 1, "north", money("-2.25")), hold=True)
    assert "kept back" in cli(config, "payouts").output
    with bara.open_session("spring", config) as session:
        while session.ask() is not None:
            session.award({"south": 4})
            session.settle(0.2)
    said = cli(config, "payouts").output
    assert "north owes 2.25 EUR" in said
    assert "ask for it back" in said
    assert "kept back" not in said


def test_a_client_whose_payment_was_taken_back_before_any_batch_owes_nothing(config):
    at(config, lambda books: correct(books, 1, "north", money("-6.50")), hold=True)
    assert at(config, kept_back) == {}


def test_an_explanation_says_transferred_only_once_the_bank_does(config, tmp_path):
    def last_words():
        return at(config, lambda books: explain_round(books, 1, "north")).sentences[-1]

    assert "in no batch yet" in last_words()
    at(config, new_batch)
    assert "no bank's statement has shown" in last_words()
    read_in(config, tmp_path, camt(("spring-1-1", "6.50", "DBIT")))
    assert last_words().endswith("in batch 1, transferred on 2026-03-02 by the bank's statement.")
    at(config, lambda books: returned(books, 1, ["north"]))
    assert last_words().endswith("in batch 1, which came back; in no batch yet.")
    at(config, new_batch)
    assert last_words().endswith("in batch 2, which no bank's statement has shown yet.")


def test_an_explanation_says_in_no_batch_of_what_is_kept_back(config):
    at(config, new_batch)
    at(config, lambda books: correct(books, 1, "north", money(-6)), hold=True)
    with bara.open_session("spring", config) as session:
        session.ask()
        session.award({"north": 3, "south": 4, "east": 5})
        session.settle(0.2)
    made = at(config, new_batch)
    assert [client for client, _, _ in made.payments] == ["south"]
    said = at(config, lambda books: explain_round(books, 2, "north")).sentences[-1]
    assert said.endswith("in no batch yet.")


def test_the_command_prints_the_reconciliation_and_who_read_it_stands_in_the_books(
    config, tmp_path
):
    at(config, new_batch)
    (tmp_path / "bank.xml").write_text(camt(("spring-1-1", "6.50", "DBIT")))
    said = cli(config, "reconcile", tmp_path / "bank.xml", "--as", "carl").output
    assert "1 payment found and stored as transferred, 1 in a batch and not found, 0" in said
    tree = json.loads(cli(config, "reconcile", tmp_path / "bank.xml", "--json").output)
    assert [row["amount"] for row in tree["missing"]] == ["6.50"]
    told = cli(config, "decisions", "--csv").output.splitlines()
    assert ",transferred,batch 1: north,carl," in told[-1]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("<nonsense", ("XML",)),
        ("<Document><Other/></Document>", ("camt.053",)),
        ('<!DOCTYPE a [<!ENTITY b "c">]><Document/>', ("entities",)),
        ("day,what\n1,2\n", ("`reference`", "','", "'day'")),
        ("reference,day\nspring-1-1,2\n", ("`amount`",)),
        ("reference,amount,date\nspring-1-1,-6.50,02.03.2026\n", ("'spring-1-1'", "02.03.2026")),
        ('reference;amount\nspring-1-1;"1.234,50"\n', ("'spring-1-1'", "1.234,50")),
    ],
)
def test_what_is_no_statement_is_refused_and_stores_nothing(config, tmp_path, text, facts):
    at(config, new_batch)
    events = at(config, lambda books: books.receipt().events)
    with refused(ConfigError, *facts):
        read_in(config, tmp_path, text)
    assert at(config, lambda books: books.receipt().events) == events


def test_a_csv_with_semicolons_is_read_and_one_with_both_names_the_separator(tmp_path):
    file = tmp_path / "payees.csv"
    file.write_text("client;name, whole;iban\nnorth;North, Inc.;DE\n")
    with refused(ConfigError, "`client`", "','", "'client;name'"):
        read_payees(file)
    file.write_text("client;name;iban\nnorth;North, Inc.\n")
    with refused(ConfigError, "'north'", "';'", "cells"):
        read_payees(file)


def test_a_statement_that_is_not_there_is_refused(tmp_path):
    with refused(ConfigError, "nowhere.xml"):
        read_statement(tmp_path / "nowhere.xml")


def test_a_copy_reads_no_statement(config, tmp_path):
    at(config, new_batch)
    (tmp_path / "copy.db").write_bytes((tmp_path / "books.db").read_bytes())
    copy = {**config, "ledger": {"url": f"sqlite:///{tmp_path}/copy.db"}}
    with refused(LedgerError, "copy"):
        read_in(copy, tmp_path, camt(("spring-1-1", "6.50", "DBIT")))


def test_a_whole_batch_does_not_come_back_once_a_statement_shows_a_transfer_of_it(config, tmp_path):
    at(config, new_batch)
    read_in(config, tmp_path, camt(("spring-1-1", "6.50", "DBIT")))
    with refused(LedgerError, "batch 1", "north", "--client"):
        at(config, lambda books: returned(books, 1))
    assert at(config, lambda books: returned(books, 1, ["south"])) == ["south"]

"""Invoices that the payer writes, and statements with the payee: printed, signed, checkable."""

import re

import pytest
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.ledger.corrections import correct
from bara.ledger.payouts import Part, new_batch, payment, returned
from bara.ledger.statements import lines
from bara.records import money
from bara.runs.database import DatabaseRun

PAYEES = """client,name,address,tax_number,vat,vat_note
north,North <Clinic>,"1 Main Street, Aachen",DE111111111,19,
south,South Clinic,"2 Hill Road, Bonn",DE222222222,,exempt by law
east,East Clinic,,DE333333333,,
"""
PAYER = [
    *("--from-name", "The Consortium", "--from-address", "3 Park Lane, Cologne"),
    *("--from-tax-number", "DE444444444"),
]


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET", "correct-horse-battery-staple")
    (tmp_path / "payees.csv").write_text(PAYEES)
    config = {
        "budget": {"total": 100, "max_rounds": 9, "currency": "EUR"},
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "mechanism": {"name": "bid-price-first"},
        "ledger": {"url": f"sqlite:///{tmp_path}/books.db", "key": "SECRET"},
    }
    play(config)
    return config


def play(config, asked="6.50", **void):
    """Play a round in which north and south earn what east asks."""
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        session.ask()
        session.award({"north": 3, "south": 4, "east": asked})
        session.settle(0.2, void=void)


def at(config, action, *, hold=False):
    with DatabaseRun.find(config["ledger"]["url"]) as place:
        return action(place.hold_books() if hold else place.open_books())


def cli(config, *words):
    return CliRunner().invoke(app, ["ledger", config["ledger"]["url"], *map(str, words)])


def invoice(config, batch, client, *more):
    return cli(
        config, "invoice", batch, "--client", client, "--payees", "payees.csv", *PAYER, *more
    )


def amounts(page):
    """Every amount on a page, in micro-units, in order."""
    return [money(found.replace(",", "")) for found in re.findall(r"(-?[\d,]+\.\d\d) EUR", page)]


def check(config, page, tmp_path, *words):
    """What the payee's own check of a page says."""
    key = cli(config, "sign").output.strip()
    (tmp_path / "page.html").write_text(page)
    given = ["receipt", str(tmp_path / "page.html"), "--public-key", key, *words]
    return CliRunner().invoke(app, given)


def test_an_invoice_says_who_for_what_and_how_much_of_it_is_tax(config):
    at(config, new_batch)
    page = invoice(config, 1, "north").output
    for said in ("North &lt;Clinic&gt;", "1 Main Street, Aachen", "DE111111111"):
        assert said in page
    for said in ("The Consortium", "3 Park Lane, Cologne", "DE444444444", "spring-1-1"):
        assert said in page
    # 6.50 with 19 % in it: 5.46 and 1.04, as 5.46 x 1.19 = 6.4974
    assert amounts(page) == [money(one) for one in ("6.50", "6.50", "5.46", "1.04", "6.50")]


def test_a_payee_without_a_rate_has_no_tax_lines_and_its_note_is_printed(config):
    at(config, new_batch)
    page = invoice(config, 1, "south").output
    assert "exempt by law" in page
    assert set(amounts(page)) == {money("6.50")}


@pytest.mark.parametrize("rate", ["0", "7", "7.7", "19", "20", "25", "99"])
def test_net_and_tax_are_the_total_to_the_cent(config, rate, tmp_path):
    (tmp_path / "payees.csv").write_text(PAYEES.replace(",19,", f",{rate},"))
    at(config, new_batch)
    *_, net, tax, total = amounts(invoice(config, 1, "north").output)
    assert net + tax == total == money("6.50")


def test_the_payee_checks_an_invoice_as_it_checks_a_statement(config, tmp_path):
    at(config, new_batch)
    page = invoice(config, 1, "north").output
    good = check(config, page, tmp_path, "--paid", "6.50")
    assert good.exit_code == 0, good.output
    assert "spring-1-1" in good.output
    assert check(config, page.replace("6.50", "7.50"), tmp_path).exit_code != 0
    assert check(config, page.replace("19 %", "9 %"), tmp_path).exit_code != 0


def test_an_invoice_shows_corrections_and_leaves_out_what_came_back(config):
    at(config, new_batch)
    play(config)
    at(config, lambda books: returned(books, 1, ["north"]))

    def take_back(books):
        correct(books, 1, "north", money(-1), by="anna", reason="came late")

    at(config, take_back, hold=True)
    at(config, new_batch)
    parts = at(config, lambda books: payment(books, 2, "north"))
    assert sorted(one.amount for one in parts) == sorted(map(money, ("6.50", "6.50", "-1")))
    settled = {line.round: line.at for line in at(config, lambda b: list(lines(b, "south")))}
    assert Part(2, money("6.50"), settled[2]) in parts
    page = invoice(config, 2, "north").output
    assert "came late" in page
    assert amounts(page)[-3:] == [money("5.50"), money("6.50"), money("12")]


def test_what_is_only_paid_again_has_its_invoice_already(config):
    at(config, new_batch)
    at(config, lambda books: returned(books, 1, ["north"]))
    at(config, new_batch)
    again = invoice(config, 2, "north")
    assert again.exit_code != 0
    assert "batch 1" in again.output


@pytest.mark.parametrize(
    ("client", "payees", "named"),
    [
        ("east", PAYEES, "east"),
        ("north", PAYEES.replace("1 Main Street, Aachen", ""), "address"),
        ("north", PAYEES.replace(",19,", ",nineteen,"), "nineteen"),
        ("north", PAYEES.replace(",19,", ",-1,"), "-1"),
        ("north", PAYEES.replace(",19,", ",NaN,"), "NaN"),
    ],
)
def test_an_invoice_that_would_lack_something_is_refused(config, client, payees, named, tmp_path):
    (tmp_path / "payees.csv").write_text(payees)
    at(config, new_batch)
    found = invoice(config, 1, client)
    assert found.exit_code != 0
    assert named in found.output
    assert "<html" not in found.output


def test_a_statement_names_the_payee_and_its_payments_and_the_books_do_not(config, tmp_path):
    at(config, new_batch)
    (tmp_path / "bank.csv").write_text("date,reference,amount\n2026-03-02,spring-1-1,-6.50\n")
    assert cli(config, "reconcile", "bank.csv").exit_code == 0
    words = ["statement", "--client", "north", "--html", "--payees", "payees.csv"]
    page = cli(config, *words).output
    for said in ("North &lt;Clinic&gt;", "DE111111111", "spring-1-1", "2026-03-02", "3.00 EUR"):
        assert said in page
    assert check(config, page, tmp_path, "--paid", "6.50").exit_code == 0
    assert check(config, page.replace("DE1", "DE9"), tmp_path).exit_code != 0
    assert b"DE111111111" not in (tmp_path / "books.db").read_bytes()

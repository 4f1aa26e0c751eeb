"""Why was X paid Y: a round in words and numbers that are those of the books.

And the whole run decided once more.
"""

import json
import sqlite3
from contextlib import closing

import pytest
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import LedgerError
from bara.records import show_money
from bara.runs.config import Config
from bara.runs.explanation import explain_round, offer_words
from bara.runs.folder import RunFolder
from bara.runs.play import play_run
from bara.runs.replay import replay

SMALL = ["federation.engine=synthetic", "clients.count=6", "budget.max_rounds=6", "budget.total=40"]


def cli(*words, code=0):
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def played(tmp_path):
    def play(*changes, name="run"):
        config = Config.load(None, [*SMALL, *changes])
        with RunFolder.new(tmp_path / name, config) as folder:
            play_run(config, folder=folder)
        return tmp_path / name

    return play


@pytest.fixture
def hospitals(tmp_path):
    """One round whose numbers can be worked out by hand; the URL of its books."""
    url = f"sqlite:///{tmp_path}/books.db"
    config = {
        "budget": {"total": 40, "max_rounds": 4, "currency": "EUR"},
        "clients": {"count": 4},
        "allocator": {"name": "fixed", "n": 2},
        "ledger": {"url": url},
    }
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        session.ask()
        session.award({"north": "2.50", "south": "3.10", "east": "4.00", "west": "9.00"})
        session.settle(0.2, void={"south": "its disk was full"})
    return url


def test_a_round_is_explained_as_the_books_have_it(hospitals):
    said = cli("ledger", hospitals, "explain", 1)
    for words in (
        (
            "with 40.00 EUR and 4 rounds left, the allocator offered to take 2 clients, "
            "whatever they cost"
        ),
        "4 clients asked: north 2.50 EUR, south 3.10 EUR, east 4.00 EUR, west 9.00 EUR",
        "2 clients won, for 8.00 EUR in all: north, south",
        "The first who did not win is east; its price, 4.00 EUR, is what each winner is promised",
        "south was not paid: its disk was full",
    ):
        assert words in said
    assert "neither bid nor won" in cli(
        "ledger", hospitals, "explain", 1, "--client", "nobody", code=1
    )
    assert "was not promised" in cli("ledger", hospitals, "explain", 7, code=1)


def test_what_another_ask_would_have_brought_shows_that_the_truth_is_best(hospitals):
    told = json.loads(cli("ledger", hospitals, "explain", 1, "--json"))
    by_name = {part["client"]: part for part in told["clients"]}
    assert (
        by_name["north"]["highest_exact"] == "3.99"
    )  # at 4.00 the tie goes to east, whose name sorts first
    assert by_name["west"]["highest_exact"] == "3.09"
    for part in told["clients"]:
        cost = part["asked"]
        profits = [(one["promised"] or cost) - cost for one in part["what_if"]]
        honest = next(
            (one["promised"] or cost) - cost for one in part["what_if"] if one["ask"] == cost
        )
        assert honest == max(profits)
    said = cli("ledger", hospitals, "explain", 1, "--client", "west")
    assert "west asked 9.00 EUR and did not win; a price of at most 3.09 EUR would have won" in said
    assert "nothing at 9.00 EUR" in said


def test_an_offer_tells_only_of_numbers_of_clients_for_which_it_pays():
    caps = bara.Offer.caps([0, 0, 3_000_000, 4_500_000, 4_500_000])
    assert offer_words(caps, show_money) == "up to 3.00 for 3, 4.50 for 4 to 5 clients"
    assert offer_words(bara.Offer.caps([0, 0]), show_money) == "nothing: it let the round pass"


def test_an_explanation_of_one_client_ends_with_what_it_was_paid_and_in_which_batch(hospitals):
    def last_words(client):
        return cli("ledger", hospitals, "explain", 1, "--client", client).strip().split("\n")[-1]

    assert last_words("north") == "north earned 4.00 EUR: in no batch yet."
    cli("ledger", hospitals, "payouts", "--new")
    batched = "north earned 4.00 EUR: in batch 1, which no bank's statement has shown yet."
    assert last_words("north") == batched
    assert "earned" not in last_words("south")  # it did not deliver


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        ("turns", "clients.stability=1"),
        ("fair", "clients.stability=0"),
        ("posted-price", "mechanism.price=1"),
        ("quality", "ledger.client_cap=9"),
    ],
)
def test_a_run_decided_again_from_its_bids_comes_out_the_same(played, mechanism, more):
    folder = played(f"mechanism.name={mechanism}", "clients.failure_rate=0.2", more)
    assert "replayed with the same result: 6 offers, 6 menus with awards" in cli(
        "ledger", folder, "verify", "--replay"
    )
    assert "Round 6." in cli("ledger", folder, "explain", 6)


def test_standing_prices_are_decided_again_and_their_fees_told(played):
    own = ("mechanism.name=standing", "mechanism.reserve=1.6", "clients.stability=1")
    folder = played(*own, "clients.failure_rate=0.2")
    said = cli("ledger", folder, "verify", "--replay")
    assert "replayed with the same result: 6 offers, 6 menus with awards" in said
    explained = cli("ledger", folder, "explain", 3)
    assert "What each winner is promised was set before anybody bid in this round." in explained
    assert "Each client's fee is what its turn is paid" in explained


def test_dropped_bids_are_neither_shown_nor_decided_again(played):
    folder = played("ledger.retention=drop", "allocator.name=even", name="even")
    said = cli("ledger", folder, "verify", "--replay")
    assert "6 offers, 0 menus" in said
    assert "cannot be made again: their bids are dropped" in said
    assert "What anybody asked is not shown" in cli("ledger", folder, "explain", 3)
    assert "0 offers, 0 menus" in cli(
        "ledger", played("ledger.retention=drop", name="planner"), "verify", "--replay"
    )


def test_the_first_decision_that_differs_is_named(played):
    """Somebody rewrote the books, hashes and all: only deciding again can tell."""
    folder = played("allocator.name=even")
    with RunFolder.find(folder) as found:
        books = found.read_books()
        assert replay(books).ok
        for _, record in books.promises(3, 3):
            first = record.awarded.award.clients[0]
    with closing(sqlite3.connect(folder / "ledger.db")) as database:
        database.execute("DROP TRIGGER promises_no_update")
        database.execute(
            "UPDATE promises SET amount = amount + 1 WHERE round = 3 AND client = ?", [first]
        )
        database.commit()
    with RunFolder.find(folder) as found:
        again = replay(found.read_books())
    assert (again.round, again.offers, again.awards) == (3, 3, 2)  # its offer was the same
    assert f"{first!r} would be promised" in again.problem
    assert "NOT whole" in cli("ledger", folder, "verify", "--replay", code=1)


def test_code_of_others_is_imported_only_where_that_is_said(tmp_path, monkeypatch, played):
    (tmp_path / "mine.py").write_text("from bara.mechanisms import QualityAuction as Mine\n")
    monkeypatch.syspath_prepend(tmp_path)
    folder = played("mechanism.name=mine:Mine")
    assert "say --plugins" in cli("ledger", folder, "verify", "--replay", code=2)
    assert "say --plugins" in cli("ledger", folder, "explain", 2)
    assert "the same" in cli("ledger", folder, "verify", "--replay", "--plugins")


def test_books_that_name_no_parts_say_so(open_books_bare):
    with refused(LedgerError, "'bare'", "allocator", "mechanism"):
        replay(open_books_bare)


@pytest.fixture
def open_books_bare(tmp_path):
    store = bara.ledger.Store.in_file(tmp_path / "bare.db")
    yield bara.ledger.Books.open(store, "bare", {}, bara.Purse.of(30, 6))
    store.close()


def test_how_the_run_ended_is_part_of_it(played):
    with RunFolder.find(played()) as found:
        assert explain_round(found.read_books(), 1).ended == "the deadline is reached"

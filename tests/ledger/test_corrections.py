"""Corrections: own entries, which statements, batches, balances, caps and replay follow."""

import pytest
import sqlalchemy as sa
from refusals import refused
from typer.testing import CliRunner

import bara
from bara.cli import app
from bara.errors import LedgerError, WaitingError
from bara.ledger import operators, verify
from bara.ledger.corrections import correct
from bara.ledger.decisions import decisions
from bara.ledger.payouts import batches, due, new_batch, returned
from bara.ledger.run_state import add_corrections, add_totals, closed_rounds, state
from bara.ledger.statements import Period, export_json, lines, own_statement, statement
from bara.mechanisms.client_cap import CAPPED
from bara.records import money
from bara.runs.database import DatabaseRun
from bara.runs.explanation import explain_round
from bara.runs.replay import replay

BIDS = {"north": 3, "south": 4, "east": 6}


@pytest.fixture
def config(tmp_path):
    return {
        "budget": {"total": 100, "max_rounds": 9, "currency": "EUR"},
        "clients": {"count": 3},
        "allocator": {"name": "fixed", "n": 2},
        "mechanism": {"name": "bid-price-first"},
        "ledger": {"url": f"sqlite:///{tmp_path}/books.db"},
    }


def play(config, rounds, **void):
    """Play more rounds, in each of which north and south are paid 6.00 unless they are void."""
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        for _ in range(rounds):
            session.ask()
            session.award(BIDS)
            session.settle(0.2, void=void)
        return session.purse


def at(config, action, *, hold=False):
    with DatabaseRun.find(config["ledger"]["url"]) as place:
        return action(place.hold_books() if hold else place.open_books())


def put_right(config, round_number, client, amount, reason="it was wrong"):
    return at(
        config,
        lambda books: correct(books, round_number, client, money(amount), by="anna", reason=reason),
        hold=True,
    )


def cli(config, *words):
    return CliRunner().invoke(app, ["ledger", config["ledger"]["url"], *map(str, words)])


def owed(batch):
    return {} if batch is None else {client: amount for client, amount, _ in batch.payments}


def whole(config):
    """Every sum that the books show is the same, and the record is in order."""
    assert at(config, verify).ok, at(config, verify).problem
    account = at(config, statement)
    assert account.spent == sum(one.paid for one in account.clients)
    assert account.spent == sum(one.paid or 0 for one in account.rounds)
    assert account.spent == sum(line.paid or 0 for line in at(config, lambda b: list(lines(b))))
    assert account.spent == at(config, state).spent
    made, left = at(config, batches), at(config, due)
    in_batches = sum(one.total for one in made) + (0 if left is None else left.total)
    assert account.spent <= in_batches
    totals = {}
    at(config, lambda books: add_totals(books, totals, closed_rounds(books, -1, 99)))
    at(config, lambda books: add_corrections(books, totals, 0))
    assert {one.client: one.paid for one in totals.values()} == {
        one.client: one.paid for one in account.clients
    }
    assert at(config, replay).ok
    return account


def test_a_correction_changes_what_was_spent_and_nothing_that_was_settled(config):
    play(config, 2)
    before = [line.paid for line in at(config, lambda books: list(lines(books)))]
    assert put_right(config, 1, "north", "-2.50", "a smaller test set") == money("3.50")
    account = whole(config)
    assert (account.spent, account.left) == (money("21.50"), money("78.50"))
    after = at(config, lambda books: list(lines(books)))
    assert [line.paid for line in after if line.correction is None] == before
    (own,) = (line for line in after if line.correction is not None)
    assert (own.client, own.round, own.paid) == ("north", 1, money("-2.50"))
    assert own.correction == "a smaller test set"


def test_a_correction_that_is_made_again_after_an_error_changes_nothing(config):
    play(config, 2)
    words = ["correct", 1, "north", "-2.50", "--once", "letter 7", "--reason", "half a test set"]
    assert cli(config, *words).exit_code == cli(config, *words).exit_code == 0
    assert whole(config).spent == money("21.50")
    for other in ([*words[:3], "-1", *words[4:]], ["correct", 2, *words[2:]]):
        found = cli(config, *other)
        assert found.exit_code == 1
        assert "letter 7" in found.output
    assert whole(config).spent == money("21.50")


def test_a_correction_like_an_earlier_one_is_refused_unless_it_is_said_to_be_another(config):
    play(config, 2)
    put_right(config, 1, "north", "-2.50", "half a test set")
    (first,) = at(config, decisions)
    words = ["correct", 1, "north", "-2.50", "--reason", "half a test set", "--as", "berta"]
    with refused(LedgerError, "anna", first.at, "'north'", "round 1", "-2.50 EUR", "--again"):
        put_right(config, 1, "north", "-2.50")
    for more in ([], ["--once", "letter 8"]):
        assert cli(config, *words, *more).exit_code == 1
    assert whole(config).spent == money("21.50")
    for others in ((2, "north", "-2.50"), (1, "south", "-2.50"), (1, "north", "-1")):
        put_right(config, *others)
    assert whole(config).spent == money("15.50")
    assert cli(config, *words, "--again").exit_code == 0
    assert whole(config).spent == money(13)


def test_a_correction_above_the_limit_takes_effect_once_two_people_gave_the_command(config):
    config["ledger"] |= {"approve_above": 2, "approvals": 2}
    with bara.open_session("spring", config) as session:
        session.begin(0.1)
        session.ask()
        with pytest.raises(WaitingError):
            session.award(BIDS)
    at(config, lambda books: operators.approve(books, 1, by="anna", reason="fine"))
    at(config, lambda books: operators.approve(books, 1, by="berta", reason="fine"))
    with bara.open_session("spring", config) as session:
        session.award()
        session.settle(0.2)
    words = ["correct", 1, "north", "-2.50", "--reason", "half a test set", "--as"]
    assert cli(config, *words, "anna").exit_code == 0
    assert whole(config).spent == money(12)
    with refused(LedgerError, "anna", "ledger.approvals"):
        put_right(config, 1, "north", "-2.50")
    assert cli(config, *words, "berta").exit_code == 0
    assert whole(config).spent == money("9.50")
    assert cli(config, *words, "clara").exit_code == 1
    assert cli(config, *words, "clara", "--again").exit_code == 0
    assert put_right(config, 1, "south", -2) == money(4)  # as much as one person may decide
    assert whole(config).spent == money("7.50")
    told = [(one.what, one.by, one.amount) for one in at(config, decisions)[2:]]
    assert told == [
        ("endorsed", "anna", money("-2.50")),
        ("corrected", "berta", money("-2.50")),
        ("endorsed", "clara", money("-2.50")),
        ("corrected", "anna", money(-2)),
    ]


def test_to_approve_a_correction_approves_no_award(config):
    config["ledger"] |= {"approve_above": 12, "approvals": 2}
    play(config, 2)
    with bara.open_session("spring", config) as session:
        session.ask()
        with pytest.raises(WaitingError):
            session.award({"north": 8, "south": 9, "east": 10})
    at(config, lambda books: operators.approve(books, 3, by="anna", reason="fine"))
    assert put_right(config, 1, "north", 13) is None
    at(config, lambda books: operators.approve(books, 3, by="berta", reason="fine"))
    assert at(config, verify).ok


def test_the_next_round_has_the_money_that_came_back(config):
    play(config, 2)
    put_right(config, 1, "north", -6)
    assert play(config, 0).left == money(76)  # the round before knows nothing of it yet
    assert play(config, 1).left == money(70)
    assert whole(config).left == money(70)


def test_a_round_that_is_promised_keeps_its_balance_and_the_one_after_follows(config):
    play(config, 2)
    with bara.open_session("spring", config) as session:
        session.ask()
        session.award(BIDS)
    put_right(config, 1, "north", -6)
    put_right(config, 2, "south", 1)
    whole(config)
    with bara.open_session("spring", config) as session:
        session.award()
        session.settle(0.3)
        session.ask()
        session.award(BIDS)
        assert session.promised.purse.left == money(100 - 36 + 6 - 1)
        session.settle(0.3)
    whole(config)


def test_a_winner_that_was_not_paid_by_mistake_can_be_paid(config):
    play(config, 1, south="it did not answer")
    assert put_right(config, 1, "south", 6, "its answer was in the wrong queue") == money(6)
    account = whole(config)
    assert account.spent == money(12)
    assert owed(at(config, due)) == {"north": money(6), "south": money(6)}


def test_corrections_go_on_after_the_run_has_ended(config):
    config["budget"]["max_rounds"] = 1
    play(config, 1)
    with bara.open_session("spring", config) as session:
        assert session.ask() is None
    put_right(config, 1, "north", -1)
    assert whole(config).spent == money(11)


@pytest.mark.parametrize(
    ("round_number", "client", "amount", "facts"),
    [
        (1, "north", 0, ("correction", "zero")),
        (1, "north", "0.001", ("0.01 EUR",)),
        (1, "north", "-6.01", ("'north'", "6.00 EUR", "-6.01 EUR")),
        (1, "east", 1, ("'east'", "round 1")),
        (3, "north", 1, ("'north'", "round 3")),
        (1, "north", "76.01", ("76.00 EUR", "76.01 EUR")),
    ],
)
def test_a_wrong_correction_is_refused_and_stores_nothing(
    config, round_number, client, amount, facts
):
    play(config, 2)
    with refused(LedgerError, *facts):
        put_right(config, round_number, client, amount)
    assert at(config, decisions) == []


def test_what_is_promised_cannot_be_given_away_by_a_correction(config):
    play(config, 2)
    with bara.open_session("spring", config) as session:
        session.ask()
        session.award(BIDS)
    with refused(LedgerError, "64.00 EUR", "65.00 EUR"):
        put_right(config, 1, "north", 65)
    put_right(config, 1, "north", 64)
    assert whole(config).left == money(12)


def test_what_came_back_twice_is_refused_once_all_of_it_is_back(config):
    play(config, 1)
    put_right(config, 1, "north", -4)
    with refused(LedgerError, "2.00 EUR", "-3.00 EUR"):
        put_right(config, 1, "north", -3)
    put_right(config, 1, "north", -2)
    assert whole(config).spent == money(6)


def test_nobody_may_play_the_run_while_a_payment_is_corrected(config):
    play(config, 1)
    with bara.open_session("spring", config), refused(LedgerError, "'spring'", "run by"):
        put_right(config, 1, "north", -1)


def test_the_next_batch_pays_what_was_added_and_keeps_back_what_a_client_owes(config):
    play(config, 1)
    first = at(config, new_batch)
    put_right(config, 1, "north", -4)
    put_right(config, 1, "south", 1)
    assert owed(at(config, due)) == {"south": money(1)}
    second = at(config, new_batch)
    assert (second.number, second.pays_rounds, owed(second)) == (2, False, {"south": money(1)})
    assert at(config, due) is None
    with refused(LedgerError, "'spring'", "owes nothing"):
        at(config, new_batch)
    play(config, 1)
    assert owed(at(config, new_batch)) == {"north": money(2), "south": money(6)}
    assert owed(at(config, batches)[0]) == owed(first)
    assert sum(one.total for one in at(config, batches)) == whole(config).spent


def test_a_batch_that_bounced_is_due_again_once(config):
    play(config, 1)
    first = at(config, new_batch)
    done = cli(config, "returned", 1, "--client", "south", "--reason", "account closed")
    assert done.exit_code == 0, done.output
    assert owed(at(config, due)) == {"south": money(6)}
    with refused(LedgerError, "batch 1", "'south'"):
        at(config, lambda books: returned(books, 1, ["south"]))
    with refused(LedgerError, "batch 1", "'east'"):
        at(config, lambda books: returned(books, 1, ["east"]))
    with refused(LedgerError, "batch 2"):
        at(config, lambda books: returned(books, 2))
    assert at(config, lambda books: returned(books, 1)) == ["north"]
    with refused(LedgerError, "batch 1"):
        at(config, lambda books: returned(books, 1))
    assert owed(at(config, new_batch)) == owed(first)
    assert at(config, verify).ok
    assert at(config, statement).spent == money(12)


def test_the_cap_of_a_client_follows(config):
    config["ledger"]["client_cap"] = 10
    play(config, 1)
    put_right(config, 1, "north", -5)
    put_right(config, 1, "south", "0.50")
    with bara.open_session("spring", config) as session:
        session.ask()
        award = session.award({"north": 9, "south": "3.51", "east": 9, "west": "9.50"})
        assert session.promised.left_out.reasons == {"south": CAPPED}
        assert dict(zip(award.clients, award.payments, strict=True)) == {
            "north": money(9),
            "east": money("9.50"),
        }
    assert at(config, replay).ok


def test_a_correction_stands_in_statements_in_its_own_days_exports_and_explanations(config):
    play(config, 1)
    put_right(config, 1, "north", -2, "a smaller test set")
    total, own = at(config, lambda books: own_statement(books, "north"))
    assert (total.won, total.paid, len(own)) == (1, money(4), 2)
    days = Period(own[1].at[:10], own[1].at[:10])
    assert at(config, lambda books: own_statement(books, "north", days))[0].paid == money(4)
    shown = cli(config, "statement", "--client", "north").output
    assert "-2.00" in shown
    assert "a smaller test set" in shown
    assert "-2.00" in cli(config, "export", "--csv").output
    (event,) = (one for one in at(config, export_json)["events"] if one["kind"] == "corrected")
    assert (event["amount_exact"], event["body"]["by"]) == ("-2.00", "anna")
    (told,) = at(config, decisions)
    assert (told.what, told.about, told.amount) == ("corrected", "north, round 1", money(-2))
    sentences = at(config, lambda books: explain_round(books, 1)).sentences
    assert any("anna" in one and "2.00 EUR" in one for one in sentences)


def test_the_command_takes_a_negative_amount(config):
    play(config, 1)
    done = cli(config, "correct", 1, "north", "-2.50", "--reason", "a typing error", "--as", "eva")
    assert (done.exit_code, "3.50 EUR" in done.output) == (0, True), done.output
    assert at(config, decisions)[0].by == "eva"


SLIPPED = {
    "more than was paid": "INSERT INTO corrections VALUES (1, 99, 1, 'north', 2, -7000000)",
    "a round that is settled": "INSERT INTO corrections VALUES (1, 99, 1, 'north', 1, -1000000)",
    "beyond the budget": "INSERT INTO corrections VALUES (1, 99, 1, 'north', 2, 90000000)",
    "nobody's payment": "INSERT INTO corrections VALUES (1, 99, 1, 'east', 2, 1000000)",
    "nothing": "INSERT INTO corrections VALUES (1, 99, 1, 'north', 2, 0)",
    "an edit": "UPDATE corrections SET amount = -1000000",
    "a removal": "DELETE FROM corrections",
}


@pytest.mark.parametrize("statement_", SLIPPED.values(), ids=SLIPPED)
def test_the_database_itself_refuses_a_correction_that_does_not_add_up(config, statement_):
    play(config, 1)
    put_right(config, 1, "south", -1)

    def slip_in(books):
        with books.store.write() as connection:
            connection.execute(sa.text(statement_))

    with refused(LedgerError, "refuses"):
        at(config, slip_in)
    whole(config)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE corrections SET amount = -2000000",
        "UPDATE corrections SET client = 'south'",
        "DELETE FROM corrections",
        "INSERT INTO corrections VALUES (1, 99, 1, 'south', 2, -1000000)",
    ],
)
def test_a_correction_that_was_changed_past_the_rules_is_found(config, change):
    play(config, 1)
    put_right(config, 1, "north", -1)

    def tamper(books):
        with books.store.write() as connection:
            for verb in ("update", "delete"):
                connection.execute(sa.text(f"DROP TRIGGER corrections_no_{verb}"))
            connection.execute(sa.text(change))
        return verify(books)

    assert not at(config, tamper).ok


def test_a_correction_needs_nothing_of_the_run_but_that_it_is_not_a_copy(config):
    """Paused or topped up, before and after, the sums stay right."""
    play(config, 2)
    at(config, lambda books: operators.top_up(books, money(5)))
    put_right(config, 2, "north", 3)
    play(config, 1)
    assert whole(config).left == money(100 + 5 - 36 - 3)

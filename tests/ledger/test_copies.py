"""A run pays once, however many copies of it there are.

Books that vanish stop it; nothing unverified leaves it.
"""

import shutil
import sqlite3
from contextlib import closing

import pytest
from refusals import refused
from tampering import without_rules
from typer.testing import CliRunner

from bara import open_session
from bara.cli import app
from bara.errors import LedgerError, WaitingError
from bara.ledger import Books, Receipt, Store, Terms, operators, signatures, verify
from bara.ledger.payouts import batches, new_batch
from bara.ledger.signatures import client_receipt
from bara.ledger.statements import export_json, lines, own_statement, statement
from bara.records import Purse, RoundRecord
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

SMALL = [
    "federation.engine=synthetic",
    "allocator.name=even",
    "budget.total=30",
    "budget.max_rounds=8",
]


class EnoughError(Exception):
    pass


def until(number):
    def observe(step):
        if isinstance(step, RoundRecord) and step.round == number:
            raise EnoughError

    return observe


def begin(path, *changes, rounds=3):
    with (
        pytest.raises(EnoughError),
        RunFolder.new(path, Config.load(None, [*SMALL, *changes])) as folder,
    ):
        play_run(folder.config, until(rounds), folder=folder)


def resume(path, *observers):
    with RunFolder.find(path) as folder:
        return play_run(folder.config, *observers, folder=folder)


def bara(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def test_a_copy_does_not_go_on_and_the_original_does(tmp_path):
    begin(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    said = bara("resume", tmp_path / "copy")
    assert said.exit_code == 1
    assert "a copy, a moved folder or a restored backup" in said.output
    assert resume(tmp_path / "run").rounds == 8


def test_a_copy_that_is_adopted_goes_on_to_the_same_end(tmp_path):
    begin(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert (
        "belongs here now"
        in bara("ledger", tmp_path / "copy", "adopt", "--reason", "agreed").output
    )
    assert resume(tmp_path / "copy").payments == resume(tmp_path / "run").payments
    with RunFolder.find(tmp_path / "copy") as folder:
        assert verify(folder.open_books()).ok


def test_a_copy_of_a_run_that_has_ended_shows_its_result_and_stays_as_it_is(tmp_path):
    begin(tmp_path / "run")
    result = resume(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert resume(tmp_path / "copy") == result
    with RunFolder.find(tmp_path / "run") as one, RunFolder.find(tmp_path / "copy") as two:
        assert one.open_books().receipt() == two.open_books().receipt()


def test_a_folder_that_is_only_renamed_goes_on(tmp_path):
    begin(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "renamed")
    assert resume(tmp_path / "renamed").rounds == 8


def test_a_restored_backup_is_a_copy(tmp_path):
    begin(tmp_path / "run")
    shutil.copytree(tmp_path / "run", tmp_path / "backup")
    resume(tmp_path / "run")
    for _ in range(3):  # a file system may give the same numbers out again
        shutil.rmtree(tmp_path / "run")
        shutil.copytree(tmp_path / "backup", tmp_path / "run")
        with refused(LedgerError, "'run'", "bara ledger", "adopt --reason TEXT`"):
            resume(tmp_path / "run")


def test_two_copies_with_one_receipt_stop_each_other(tmp_path):
    begin(tmp_path / "run", f"ledger.receipt={tmp_path}/receipt.json")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    with RunFolder.find(tmp_path / "copy") as folder:
        books = folder.open_books()
        operators.adopt(books)
        last = books.receipt().events
    with refused(LedgerError, tmp_path / "run", f"event {last}", f"receipt counts {last}"):
        resume(tmp_path / "run")
    resume(tmp_path / "copy")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["topup", "5", "--reason", "agreed"], ("event 12", "the receipt counts")),
        (["pause"], ("receipt.json", "a copy")),
        (["adopt", "--reason", "agreed"], ("receipt.json", "a copy")),
    ],
)
def test_what_an_operator_says_to_a_copy_that_was_left_behind_is_refused_before_it_is_stored(
    tmp_path, words, facts
):
    begin(tmp_path / "run", f"ledger.receipt={tmp_path}/receipt.json")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    resume(tmp_path / "run")
    with RunFolder.find(tmp_path / "copy") as folder:
        before = folder.open_books().receipt()
    said = bara("ledger", tmp_path / "copy", *words)
    assert said.exit_code == 1
    assert all(fact in said.output for fact in facts), said.output
    with RunFolder.find(tmp_path / "copy") as folder:
        assert folder.open_books().receipt() == before


def test_what_is_signed_is_as_old_as_the_head_it_is_signed_with(open_books, play_into, monkeypatch):
    books = open_books(terms=Terms(key=b"secret"))
    winner = play_into(books, 9)[1].award.clients[0]
    before = books.receipt().events

    def go_on(*arguments):
        found = own_statement(*arguments)
        operators.pause(books)
        return found

    monkeypatch.setattr(signatures, "own_statement", go_on)
    assert client_receipt(books, winner)["events"] == before
    assert books.receipt().events == before + 1


def test_nothing_is_added_to_a_record_that_is_not_whole(tmp_path):
    begin(tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run" / "ledger.db")) as connection:
        connection.execute("DROP TRIGGER promises_no_update")
        connection.execute("UPDATE promises SET amount = amount + 1")
        connection.commit()
        said = bara("ledger", tmp_path / "run", "topup", "5", "--reason", "agreed")
        assert (said.exit_code, "is not whole" in said.output) == (1, True)
        assert connection.execute("SELECT count(*) FROM top_ups").fetchone() == (0,)


@pytest.mark.parametrize("words", [["topup", "5", "--reason", "agreed"], ["pause"]])
def test_what_an_operator_says_to_a_copy_says_so_and_does_not_stop_the_original(tmp_path, words):
    begin(tmp_path / "run", f"ledger.receipt={tmp_path}/receipt.json")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    said = bara("ledger", tmp_path / "copy", *words)
    assert (said.exit_code, "only this copy of the run was changed" in said.stderr) == (0, True)
    assert resume(tmp_path / "run").rounds == 8


def test_what_an_operator_says_to_the_run_itself_says_nothing_of_copies(tmp_path):
    begin(tmp_path / "run")
    said = bara("ledger", tmp_path / "run", "topup", "5", "--reason", "agreed")
    assert (said.exit_code, said.stderr) == (0, "")


def test_a_receipt_of_another_record_is_never_replaced(tmp_path):
    begin(tmp_path / "run", f"ledger.receipt={tmp_path}/receipt.json")
    stolen = (tmp_path / "receipt.json").read_text().replace('"head": "', '"head": "0')

    def swap(step):
        if isinstance(step, RoundRecord) and step.round == 5:
            (tmp_path / "receipt.json").write_text(stolen)

    with refused(LedgerError, tmp_path / "receipt.json", "copy", "restore"):
        resume(tmp_path / "run", swap)
    with RunFolder.find(tmp_path / "run") as folder:
        assert folder.open_books().awarded() is None  # nothing more was promised


@pytest.fixture
def put_back(tmp_path):
    """A run whose older state was put into its own file, and whose receipt somebody deleted."""
    ledger, receipt = tmp_path / "run" / "ledger.db", tmp_path / "receipt.json"
    begin(tmp_path / "run", f"ledger.receipt={receipt}", "ledger.approve_above=0.1", rounds=0)
    older = ledger.read_bytes()
    with pytest.raises(WaitingError):
        resume(tmp_path / "run")
    assert bara("ledger", tmp_path / "run", "approve", "1", "--reason", "agreed").exit_code == 0
    with pytest.raises(WaitingError):
        resume(tmp_path / "run")
    ledger.write_bytes(older)
    receipt.unlink()
    return tmp_path / "run", receipt


@pytest.mark.parametrize(
    "words",
    [
        ["pause"],
        ["continue"],
        ["approve", "1", "--reason", "agreed"],
        ["decline", "1", "--reason", "agreed"],
        ["void", "1", "--reason", "why"],
        ["topup", "5", "--reason", "agreed"],
        ["forget", "client-00"],
        ["adopt", "--reason", "agreed"],
        ["payouts", "--new"],
        ["verify"],
        ["statement"],
    ],
    ids=lambda words: words[0],
)
def test_no_command_makes_a_receipt_that_is_missing(put_back, words):
    path, receipt = put_back
    said = bara("ledger", path, *words)
    assert said.exit_code == 1
    assert f"{receipt} is missing" in said.stderr
    assert f"bara ledger {path} adopt --new-receipt --reason TEXT`" in said.stderr
    assert not receipt.exists()
    with refused(LedgerError, receipt, "missing"):
        resume(path)


def test_a_lost_receipt_is_begun_anew_by_an_operator_who_says_so(put_back):
    path, receipt = put_back
    assert bara("ledger", path, "adopt", "--new-receipt", "--reason", "agreed").exit_code == 0
    assert bara("ledger", path, "verify", "--receipt", receipt).exit_code == 0
    again = bara("ledger", path, "adopt", "--new-receipt", "--reason", "agreed")
    assert (again.exit_code, str(receipt) in again.stderr) == (1, True)
    with pytest.raises(WaitingError):
        resume(path)


def test_a_run_without_a_receipt_can_be_given_one(tmp_path):
    begin(tmp_path / "run")
    assert (
        bara("ledger", tmp_path / "run", "adopt", "--new-receipt", "--reason", "agreed").exit_code
        == 1
    )
    config = tmp_path / "run" / "config.toml"
    named = f'[ledger]\nreceipt = "{tmp_path}/receipt.json"'
    config.write_text(config.read_text().replace("[ledger]", named))
    with refused(LedgerError, tmp_path / "receipt.json", "missing"):
        resume(tmp_path / "run")
    assert (
        bara("ledger", tmp_path / "run", "adopt", "--new-receipt", "--reason", "agreed").exit_code
        == 0
    )
    assert resume(tmp_path / "run").rounds == 8
    said = bara("ledger", tmp_path / "run", "verify")
    assert "the receipt fits" in said.output


def test_the_receipt_is_there_before_the_first_event(tmp_path):
    """A run that was killed while it opened its books opens them, with the receipt it began."""
    begun = Receipt("run", 0, "0" * 64)
    begun.write(tmp_path / "receipt.json")
    terms = Terms(receipt=tmp_path / "receipt.json")
    with closing(Store.in_file(tmp_path / "books.db")) as store:
        books = Books.open(store, "run", {}, Purse.of(1, 1), terms)
        books.check_receipt()
    with (
        closing(Store.in_file(tmp_path / "others.db")) as store,
        refused(LedgerError, tmp_path / "receipt.json"),
    ):
        Books.open(store, "another", {}, Purse.of(1, 1), terms)


def test_the_receipt_of_another_run_is_told_as_such_and_neither_run_loses_it(tmp_path):
    config = {
        "budget": {"total": 100, "max_rounds": 9},
        "clients": {"count": 3},
        "ledger": {"url": f"sqlite:///{tmp_path}/books.db", "receipt": f"{tmp_path}/receipt.json"},
    }
    others = {**config, "ledger": {**config["ledger"], "receipt": f"{tmp_path}/others.json"}}
    with open_session("spring", config) as session:
        session.begin(0.1)
    for _ in range(2):
        with (
            refused(LedgerError, tmp_path / "receipt.json", "'spring'", "'summer'") as caught,
            open_session("summer", config),
        ):
            pass
        assert "copy" not in str(caught.value)
        with open_session("summer", others) as session:  # and later under the wrong name
            session.begin(0.1)
    said = bara(
        "ledger",
        config["ledger"]["url"],
        "--run",
        "summer",
        "verify",
        "--receipt",
        tmp_path / "receipt.json",
    )
    assert (said.exit_code, "'spring'" in said.output) == (1, True)
    with open_session("spring", config) as session:
        session.ask()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_books_that_vanish_stop_the_run_before_money_moves(tmp_path, how):
    path = tmp_path / "run" / "ledger.db"

    def vanish(step):
        if isinstance(step, RoundRecord) and step.round == 3:
            shutil.copy(path, tmp_path / "kept")
            path.unlink()
            if how == "replaced":
                shutil.copy(tmp_path / "kept", path)

    with (
        refused(LedgerError, path, "removed or replaced", "start again"),
        RunFolder.new(tmp_path / "run", Config.load(None, SMALL)) as folder,
    ):
        play_run(folder.config, vanish, folder=folder)


def test_lost_books_never_begin_anew_even_where_the_first_session_was_killed(tmp_path):
    begin(tmp_path / "run")
    (tmp_path / "run" / ".opened").unlink()  # as if the process had died before it was written
    with pytest.raises(EnoughError):
        resume(tmp_path / "run", until(5))
    (tmp_path / "run" / "ledger.db").unlink()
    ledger = tmp_path / "run" / "ledger.db"
    with refused(LedgerError, f"opened in {ledger}", f"not in {ledger}", "ledger.url"):
        resume(tmp_path / "run")


def test_the_books_of_another_run_are_refused(tmp_path):
    begin(tmp_path / "one")
    begin(tmp_path / "two", "seed=1")
    shutil.copy(tmp_path / "two" / "ledger.db", tmp_path / "one" / "ledger.db")
    (tmp_path / "one" / "config.toml").write_text((tmp_path / "two" / "config.toml").read_text())
    with RunFolder.find(tmp_path / "one") as folder:
        operators.adopt(folder.open_books())
    with refused(LedgerError, tmp_path / "one" / "ledger.db", "not those", "ledger.url"):
        resume(tmp_path / "one")


@pytest.fixture
def raised(tmp_path, monkeypatch):
    """A finished run one of whose settlements somebody has raised,
    with the database's rules out of the way.
    """
    monkeypatch.setenv("KEY", "secret")
    with RunFolder.new(tmp_path / "run", Config.load(None, [*SMALL, "ledger.key=KEY"])) as folder:
        play_run(folder.config, folder=folder)
    with closing(sqlite3.connect(tmp_path / "run" / "ledger.db")) as connection:
        with without_rules(connection):
            connection.execute("UPDATE settlements SET paid = paid + 1000000 WHERE round = 2")
        connection.commit()
    with RunFolder.find(tmp_path / "run") as folder:
        yield folder.open_books()


@pytest.mark.parametrize(
    "leave",
    [
        statement,
        batches,
        export_json,
        lambda books: list(lines(books)),
        lambda books: own_statement(books, "client-00"),
        lambda books: client_receipt(books, "client-00"),
    ],
    ids=["statement", "payouts", "export", "lines", "own statement", "signature"],
)
def test_nothing_that_was_not_verified_is_shown_signed_or_paid_out(raised, leave):
    with refused(LedgerError, "'run'", "event 8", "round 2", "hash"):
        leave(raised)


def tamper(books, change):
    """Change something with the database's own rules out of the way."""
    with closing(sqlite3.connect(books.store.place)) as connection:
        with without_rules(connection):
            connection.execute(change)
        connection.commit()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE runs SET total = 1000000",
        "UPDATE settlements SET paid = 1 WHERE paid > 0 AND round = 3",
        "UPDATE closings SET paid = paid + 5, spent_after = spent_after + 5 WHERE round = 3",
        "UPDATE promises SET amount = 900000000 WHERE round = 3",
    ],
)
def test_a_chain_made_anew_does_not_hide_sums_that_do_not_add_up(tmp_path, change, monkeypatch):
    begin(tmp_path / "run", rounds=5)
    with RunFolder.find(tmp_path / "run") as folder:
        books = folder.open_books()
        tamper(books, change)
        monkeypatch.setattr(
            type(books.chain), "fits", lambda *_: True
        )  # every hash fits, as after a rehash
        finding = verify(books)
    assert not finding.ok


OF_ROUND_3 = "UPDATE events SET {} WHERE kind = '{}' AND round = 3"
SECOND_BATCH = """kind = 'paid out', body = '{"batch": 2, "first": 1}'"""


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (OF_ROUND_3.format("kind = 'paused'", "awarded"), ("round 3 is settled", "not promised")),
        (OF_ROUND_3.format("kind = 'paused'", "settled"), ("round 4 is promised", "round is 2")),
        (OF_ROUND_3.format("kind = 'declined'", "bids"), ("round 3 is declined", "not promised")),
        (OF_ROUND_3.format(SECOND_BATCH, "bids"), ("batch 2", "not settled")),
        (
            OF_ROUND_3.format("body = json_set(body, '$.purse[2]', 1)", "awarded"),
            ("1 of 30000000 was spent",),
        ),
        (OF_ROUND_3.format("body = json_remove(body, '$.purse')", "awarded"), ("cannot be read",)),
        (
            "UPDATE settlements SET client = client || '!' WHERE round = 3",
            ("round 3", "other clients"),
        ),
    ],
)
def test_a_chain_made_anew_does_not_hide_steps_that_do_not_follow(
    tmp_path, change, facts, monkeypatch
):
    begin(tmp_path / "run", rounds=5)
    with RunFolder.find(tmp_path / "run") as folder:
        books = folder.open_books()
        tamper(books, change)
        monkeypatch.setattr(type(books.chain), "fits", lambda *_: True)
        problem = verify(books).problem
    assert [fact for fact in facts if fact not in problem] == [], problem


def test_what_was_stored_without_a_receipt_is_on_it_once_the_run_goes_on(tmp_path, monkeypatch):
    receipt = tmp_path / "receipt.json"
    begin(tmp_path / "run", f"ledger.receipt={receipt}")

    def die(_books):
        raise EnoughError

    calls = []

    def die_after_the_commit(books):
        calls.append(books)
        if len(calls) == 2:
            raise EnoughError

    with monkeypatch.context() as patch, RunFolder.find(tmp_path / "run") as folder:
        patch.setattr(Books, "write_receipt", die_after_the_commit)
        with pytest.raises(EnoughError):
            operators.top_up(folder.open_books(), 1_000_000)
        stored = folder.read_books().receipt()
    assert Receipt.read(receipt).events == stored.events - 1
    with pytest.raises(EnoughError), RunFolder.find(tmp_path / "run") as folder:
        play_run(folder.config, die, folder=folder)
    assert Receipt.read(receipt).events >= stored.events


def test_a_batch_whose_receipt_was_lost_in_a_crash_is_covered_before_it_is_exported_again(
    tmp_path, monkeypatch
):
    receipt = tmp_path / "receipt.json"
    begin(tmp_path / "run", f"ledger.receipt={receipt}")
    older = (tmp_path / "run" / "ledger.db").read_bytes()

    def die(books):
        if books.bodies("paid out"):
            raise EnoughError  # after the commit

    with monkeypatch.context() as patch, RunFolder.find(tmp_path / "run") as folder:
        patch.setattr(Books, "write_receipt", die)
        with pytest.raises(EnoughError):
            new_batch(folder.open_books())
    with RunFolder.find(tmp_path / "run") as folder:
        books = folder.open_books()
        with refused(LedgerError, "every payment is in a batch already"):
            new_batch(books)
        assert len(batches(books)) == 1
    (tmp_path / "run" / "ledger.db").write_bytes(older)
    with (
        RunFolder.find(tmp_path / "run") as folder,
        refused(LedgerError, "the receipt counts", "its tail is missing"),
    ):
        new_batch(folder.open_books())

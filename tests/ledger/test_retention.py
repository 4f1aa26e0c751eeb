import hashlib
import json
import re
import shutil
import sqlite3
import time
from contextlib import ExitStack, closing

import numpy as np
import pytest
from refusals import refused
from typer.testing import CliRunner
from waiting import LONG

from bara import Offer, RoundRecord, open_session
from bara.allocators import Even
from bara.cli import app
from bara.errors import LedgerError
from bara.ledger import Books, Store, Terms, operators, read_books, verify
from bara.ledger.retention import Redacted
from bara.runs.config import Config
from bara.runs.folder import RunFolder
from bara.runs.play import play_run

DROP = Terms(retention="drop")


def everything(path):
    """Every text in a database file, deleted pages included."""
    return path.read_bytes()


def resumed(path, config, stop_after):
    """The result of a run that was stopped after a round and resumed; its ledger is whole."""

    class EnoughError(Exception):
        pass

    def stop(step):
        if isinstance(step, RoundRecord) and step.round == stop_after:
            raise EnoughError

    with pytest.raises(EnoughError), RunFolder.new(path, config) as folder:
        play_run(config, stop, folder=folder)
    with RunFolder.find(path) as folder:
        result = play_run(config, folder=folder)
        assert verify(folder.open_books()).ok
    return result


def test_dropped_bids_and_menus_are_gone_and_the_chain_still_holds(open_books, play_into):
    books = open_books("dropped", DROP)
    play_into(books, allocator=Redacted(Even()))
    assert verify(books).ok
    with books.store.read() as connection:
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM sealed").scalar() == 0
    record = list(books.history())[-1]
    with refused(LedgerError, "bids", "ledger.retention"):
        _ = record.awarded.bids.prices
    with refused(LedgerError, "menu's costs", "ledger.retention"):
        len(record.awarded.costs)


def test_no_price_of_a_loser_is_left_anywhere_in_the_file(open_books, play_into, tmp_path):
    books = open_books("dropped", DROP)
    steps = play_into(books, allocator=Redacted(Even()))
    books.store.close()
    left = everything(tmp_path / "dropped.db")
    for step in steps:
        if isinstance(step, RoundRecord):
            paid = set(step.awarded.award.payments)
            for price in step.awarded.bids.prices.tolist():
                # Digests and salts are hexadecimal: seven digits in a row among them are no price.
                assert price in paid or not re.search(rb"(?<![0-9a-f])%d(?![0-9a-f])" % price, left)


def left_by_a_kill(path, beside):
    """The files of a database as a kill leaves them now, in another folder; all their bytes."""
    beside.mkdir(exist_ok=True)
    left = b""
    for ending in ("", "-wal"):
        file = path.with_name(f"{path.name}{ending}")
        shutil.copy(file, beside / file.name)
        left += file.read_bytes()
    return left


def prices_in(left, steps):
    """The prices of settled rounds that stand in these bytes and were not paid to anybody."""
    found = set()
    for step in steps:
        if isinstance(step, RoundRecord):
            for price in step.awarded.bids.prices.tolist():
                if price not in step.awarded.award.payments and re.search(
                    rb"(?<![0-9a-f])%d(?![0-9a-f])" % price, left
                ):
                    found.add(price)
    return found


def test_a_kill_leaves_no_dropped_bid_in_the_log(open_books, play_into, tmp_path):
    steps = play_into(open_books("dropped", DROP), allocator=Redacted(Even()))
    assert not prices_in(left_by_a_kill(tmp_path / "dropped.db", tmp_path / "left"), steps)
    kept = play_into(open_books("kept"))
    assert prices_in(left_by_a_kill(tmp_path / "kept.db", tmp_path / "left"), kept)


@pytest.mark.path
def test_runs_that_share_a_file_leave_no_dropped_bid_in_it(tmp_path):
    """Their rows move from page to page; deleted ones are overwritten wherever they were."""
    config = {
        "budget": {"total": 10_000, "max_rounds": 9},
        "clients": {"count": 30},
        "allocator": "even",
        "mechanism": "bid-price-first",
        "ledger": {"url": f"sqlite:///{tmp_path / 'shared.db'}", "retention": "drop"},
    }
    rng = np.random.default_rng(0)
    settled = []
    with ExitStack() as stack:
        sessions = [stack.enter_context(open_session(name, config)) for name in ("a", "b", "c")]
        for session in sessions:
            session.begin(0.1)
        for _ in range(4):
            for session in rng.permutation(sessions):
                session.ask()
                prices = rng.integers(1_000_000, 9_000_000, 30) / 1e6
                session.award({f"client-{k}": price for k, price in enumerate(prices)})
            settled += [session.settle(0.5) for session in rng.permutation(sessions)]
        assert not prices_in(left_by_a_kill(tmp_path / "shared.db", tmp_path / "left"), settled)
    assert sum(len(record.awarded.bids.clients) for record in settled) == 3 * 4 * 30


def test_what_a_kill_has_left_in_the_log_is_gone_once_the_run_is_opened_to_go_on(
    open_books, play_into, tmp_path, monkeypatch
):
    """The kill may come in the moment before the log is emptied."""
    with monkeypatch.context() as killed:
        killed.setattr(Store, "empty_log", lambda _: None)
        steps = play_into(open_books("dropped", DROP), allocator=Redacted(Even()))
        assert prices_in(left_by_a_kill(tmp_path / "dropped.db", tmp_path / "left"), steps)
    with closing(Store.in_file(tmp_path / "left" / "dropped.db")) as store:
        assert Books.find(store) is not None
        again = left_by_a_kill(tmp_path / "left" / "dropped.db", tmp_path / "again")
        assert not prices_in(again, steps)


def test_a_reader_holds_up_no_round_and_the_log_is_emptied_after_it(
    open_books, play_into, tmp_path
):
    books = open_books("dropped", DROP)
    play_into(books, steps=3, allocator=Redacted(Even()))
    with (
        closing(Store.in_file(tmp_path / "dropped.db", patience=LONG)) as patient,
        closing(read_books(tmp_path / "dropped.db").store) as store,
        store.read() as reading,
    ):
        reading.exec_driver_sql("SELECT COUNT(*) FROM events").scalar()
        operators.pause(books)
        begun = time.monotonic()
        patient.empty_log()
        assert time.monotonic() - begun < LONG / 2
        assert (tmp_path / "dropped.db-wal").stat().st_size
    books.store.empty_log()
    assert not (tmp_path / "dropped.db-wal").stat().st_size


def test_bids_that_are_kept_are_in_the_file(open_books, play_into, tmp_path):
    """The test above can fail."""
    books = open_books("kept")
    steps = play_into(books)
    books.store.close()
    assert str(int(steps[-1].awarded.bids.prices[0])).encode() in everything(tmp_path / "kept.db")


def test_an_allocator_that_learns_from_menus_and_cannot_remember_is_refused_in_the_first_round(
    open_books, play_into
):
    class Nosy:
        def ask(self, _purse):
            return Offer.recruit(2)

        def tell(self, record):
            if record.round:
                self.cheapest = min(record.awarded.costs)

    with refused(LedgerError, "memory()", "restore()", "ledger.retention"):
        play_into(open_books("dropped", DROP), allocator=Redacted(Nosy()))


@pytest.mark.parametrize(
    "allocator",
    [
        ["name=bara", "cost_average=menus", "exploration_rounds=4", "reestimate=true"],
        ["name=bara", "cost_average=menus", "exploration_rounds=4"],
        ["name=planner"],
    ],
)
@pytest.mark.parametrize("stop_after", [1, 4, 9])
def test_an_allocator_that_learns_from_menus_resumes_though_they_are_dropped(
    tmp_path, stop_after, allocator
):
    config = Config.load(
        None,
        [
            "federation.engine=synthetic",
            "budget.total=60",
            "budget.max_rounds=12",
            "clients.count=6",
            *(f"allocator.{option}" for option in allocator),
            "ledger.retention=drop",
        ],
    )
    assert resumed(tmp_path / "run", config, stop_after) == play_run(config)


@pytest.mark.parametrize("stop_after", [1, 4, 9])
def test_standing_prices_are_remembered_though_bids_are_dropped(tmp_path, stop_after):
    small = ["federation.engine=synthetic", "budget.total=60", "budget.max_rounds=12"]
    own = ["mechanism.name=standing", "mechanism.reserve=1.6", "clients.stability=1"]
    config = Config.load(
        None, [*small, *own, "clients.count=6", "clients.absence_rate=0.2", "ledger.retention=drop"]
    )
    assert resumed(tmp_path / "run", config, stop_after) == play_run(config)


def left_by(folder):
    """Every file of a run, byte for byte, but for its ledger: that is a database's business."""
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "ledger.db" not in path.name
    }


def plain(result):
    """A result as JSON has it."""
    return json.loads(json.dumps(result.to_json()))


def printed(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.path
@pytest.mark.parametrize("mechanism", ["turns", "bid-price-first", "fair"])
@pytest.mark.parametrize("allocator", ["bara", "planner", "even"])
@pytest.mark.parametrize("engine", ["synthetic", "simulator"])
def test_a_run_that_has_ended_is_opened_again_and_again_and_stays_as_it_was(
    tmp_path, engine, allocator, mechanism
):
    changes = [
        f"federation.engine={engine}",
        f"allocator.name={allocator}",
        f"mechanism.name={mechanism}",
    ]
    changes += [
        "budget.total=60",
        "budget.max_rounds=10",
        "clients.count=8",
        "ledger.retention=drop",
    ]
    path, config = tmp_path / "run", Config.load(None, changes)
    once = printed(
        "run", "--out", path, "--json", *(word for change in changes for word in ("--set", change))
    )
    files = left_by(path)
    with RunFolder.find(path) as folder:
        events = folder.open_books().receipt()
    assert printed("resume", path, "--json") == once
    with RunFolder.find(path) as folder:
        assert plain(play_run(config, folder=folder)) == json.loads(once)
        assert folder.open_books().receipt() == events
    assert left_by(path) == files
    assert plain(resumed(tmp_path / "paused", config, stop_after=6)) == json.loads(once)


@pytest.mark.path
def test_a_report_leaves_a_run_whose_menus_are_dropped_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = (
        "federation.engine=synthetic",
        "budget.total=60",
        "budget.max_rounds=10",
        "ledger.retention=drop",
    )
    printed(
        "run", "--out", tmp_path / "run", *(word for change in small for word in ("--set", change))
    )
    files = left_by(tmp_path / "run")
    printed("report", tmp_path / "run")
    assert left_by(tmp_path / "run") == files


@pytest.mark.parametrize("cap", [[], ["ledger.client_cap=30"]])
@pytest.mark.parametrize("retention", ["keep", "drop"])
def test_privacy_spent_is_known_after_a_resume_though_bids_are_dropped(tmp_path, retention, cap):
    changes = [
        "mechanism.name=fl-market",
        "allocator.name=even",
        "budget.max_rounds=6",
        f"ledger.retention={retention}",
    ]
    config = Config.load(
        None, ["federation.engine=synthetic", "budget.total=40", "clients.count=6", *changes, *cap]
    )
    undisturbed = play_run(config)
    assert undisturbed.privacy
    assert resumed(tmp_path / "run", config, stop_after=3) == undisturbed


@pytest.mark.parametrize(
    "allocator", [["name=planner"], ["name=bara", "cost_average=menus", "exploration_rounds=4"]]
)
def test_after_a_few_rounds_an_allocators_memory_reveals_none_of_them(tmp_path, allocator):
    """After the first it would: an average of one menu is that menu, as the documentation says."""
    small = [
        "federation.engine=synthetic",
        "budget.total=40",
        "budget.max_rounds=8",
        "clients.count=6",
    ]
    changes = [*small, *(f"allocator.{option}" for option in allocator), "ledger.retention=drop"]
    config, seen = Config.load(None, changes), []
    with RunFolder.new(tmp_path / "run", config) as folder:
        play_run(config, seen.append, folder=folder)
    left = everything(tmp_path / "run" / "ledger.db")
    for step in seen:
        if isinstance(step, RoundRecord) and step.round:
            paid = {*step.awarded.award.payments, step.paid, step.awarded.award.cost}
            for number in {*step.awarded.bids.prices.tolist(), *step.awarded.costs.tolist()} - paid:
                assert not re.search(rb"(?<![0-9a-f])%d(?![0-9a-f])" % number, left)


def digest(salt, content):
    """What an event says of bids or of a menu that may be dropped later."""
    return hashlib.sha256(f"{salt}\n{content}".encode()).hexdigest()


def digests(path):
    """The digest of the first round's bids, and of its menu, as their events say them."""
    found = {}
    with closing(sqlite3.connect(path)) as connection:
        for kind, part in (("bids", "bids"), ("awarded", "menu")):
            (body,) = connection.execute(
                "SELECT body FROM events WHERE kind = ? AND round = 1", [kind]
            ).fetchone()
            found[part] = json.loads(body)[part]
    return found


def sealed(path):
    """The salt and the content of the first round's bids, and of its menu, where they are kept."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT part, salt, content FROM sealed WHERE round = 1")
        return {part: (salt, content) for part, salt, content in rows.fetchall()}


def test_a_dropped_price_cannot_be_guessed_back(open_books, play_into, tmp_path):
    """Knowing every bid but the salt, one cannot tell whether a guess is right."""
    steps = play_into(open_books("dropped", DROP), allocator=Redacted(Even()))
    twin = play_into(open_books("kept"), allocator=Redacted(Even()))
    assert steps[1].bids.prices.tolist() == twin[1].bids.prices.tolist()
    left, known = digests(tmp_path / "dropped.db"), sealed(tmp_path / "kept.db")
    assert left.keys() == known.keys() == {"bids", "menu"}
    assert sealed(tmp_path / "dropped.db") == {}
    for part, (salt, content) in known.items():
        assert len(left[part]) == 64
        assert left[part] not in {digest("", content), digest(salt, content)}


def test_with_the_salt_it_could(open_books, play_into, tmp_path):
    """The test above can fail: where bids are kept, so is the salt,
    and the digest is that of the content.
    """
    steps = play_into(open_books("kept"))
    said, known = digests(tmp_path / "kept.db"), sealed(tmp_path / "kept.db")
    assert {part: digest(*kept) for part, kept in known.items()} == said
    assert json.loads(known["bids"][1])["prices"] == steps[1].bids.prices.tolist()
    assert json.loads(known["menu"][1]) == steps[1].costs.tolist()

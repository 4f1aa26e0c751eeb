"""A step of a session may fail at any moment and be called again: that changes nothing.

The store of a run fails once, at every call it makes and at every fault point, before or after what
was written is durable. The program catches the error and calls the same step again. Books, awards
and what everybody learned must equal those of a run in which nothing failed.
"""

import contextlib
import json
from functools import partial

import pytest
from striking import strike

import bara
from bara.errors import LedgerError
from bara.ledger import Books, Store
from bara.runs.replay import replay

ASKED = {"ann": "2.00", "bob": "2.50", "cat": "3.00", "dan": "4.00"}
SALTED = {"menu", "bids", "memories", "place"}


@pytest.fixture
def misfortune(monkeypatch):
    """Let the n-th moment of a run fail."""
    return strike(monkeypatch, "bara.ledger.books.point", "bara.runs.session.point")


def again(step):
    """Call a step until it works, as a program that retries does."""
    for _ in range(3):
        with contextlib.suppress(LedgerError):
            return step()
    return step()


def play(folder, bad, fails_at, **changes):
    """Play a run whose n-th moment fails; return its awards, books and what is left."""
    folder.mkdir()
    ledger = {
        "url": f"sqlite:///{folder}/books.db",
        "receipt": str(folder / "receipt.json"),
        "client_cap": 8,
        **changes.pop("ledger", {}),
    }
    config = {
        "budget": {"total": 40, "max_rounds": 5},
        "clients": {"count": 4},
        "allocator": "even",
        "mechanism": "turns",
        "ledger": ledger,
        **changes,
    }
    awards = []
    with bara.open_session("spring", config) as session:
        bad.calls, bad.fails_at = 0, fails_at
        again(lambda: session.begin(0.1))
        while again(session.ask) is not None:
            award = again(lambda: session.award(ASKED))
            if award is None:
                break
            awards.append(award)
            again(partial(settle, session, award))
        left = session.purse.left
        moments = bad.calls
        bad.fails_at = 0
    with contextlib.closing(Store.open(ledger["url"])) as store:
        books = Books.find(store)
        events = [(event.kind, event.round, plain(event.body)) for event in events_of(books)]
        found = replay(books)
    assert found.ok, found
    return moments, (awards, events, left, (folder / "receipt.json").exists())


def settle(session, award):
    """Settle a round; bob, if he is a winner, does not deliver in round 2."""
    void = {}
    if session.round == 2 and "bob" in award.clients:
        void["bob"] = "it did not answer"
    session.settle(0.1 * session.round + 0.1 if award.n else None, void=void)


def events_of(books):
    with books.store.read() as connection:
        return list(books.chain.events(connection))


def plain(body):
    """What an event says, without salted digests and places."""
    tree = json.loads(body)
    tree.get("config", {}).pop("ledger", None)
    return {key: value for key, value in tree.items() if key not in SALTED}


@pytest.mark.parametrize(
    ("changes", "every"),
    [
        pytest.param({}, 9, id="turns, one moment in nine"),
        pytest.param({}, 1, id="turns", marks=pytest.mark.full),
        pytest.param({"ledger": {"retention": "drop"}}, 1, id="drop", marks=pytest.mark.full),
        pytest.param(
            {"allocator": "planner", "mechanism": "bid-price-first"},
            1,
            id="planner",
            marks=pytest.mark.full,
        ),
    ],
)
def test_property_a_step_that_fails_anywhere_and_is_called_again_changes_nothing(
    tmp_path, misfortune, changes, every
):
    moments, undisturbed = play(tmp_path / "undisturbed", misfortune, 0, **changes)
    assert moments > 50
    for moment in range(1, moments + 1, every):
        _, disturbed = play(tmp_path / str(moment), misfortune, moment, **changes)
        assert disturbed == undisturbed, f"an error at moment {moment} of {moments} changed the run"


def test_a_client_beyond_its_cap_is_left_out_by_name_in_the_books(tmp_path, misfortune):
    play(tmp_path / "run", misfortune, 0)
    with contextlib.closing(Store.open(f"sqlite:///{tmp_path}/run/books.db")) as store:
        records = list(Books.find(store).history())
    reasons = [record.awarded.left_out.reasons for record in records if record.awarded.left_out]
    assert any("cap" in reason for one in reasons for reason in one.values())
    assert any("backs off" in one.get("bob", "") for one in reasons)
    for record in records[1:]:
        assert set(record.awarded.opened.clients) == set(ASKED)

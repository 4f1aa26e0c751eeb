import asyncio
import json
import time

import pytest
from waiting import LONG

from bara import Session
from bara.allocators import Even
from bara.dashboard import _run_view as views
from bara.dashboard._event_stream import EventStream
from bara.dashboard._forecast import Extrapolation
from bara.dashboard._run_view import RunView
from bara.errors import LedgerError
from bara.ledger import Books, Store, read_books
from bara.ledger.run_state import closed_rounds
from bara.mechanisms import bid_price_first
from bara.records import Purse, RoundRecord
from bara.reports.result import read_result


@pytest.fixture
def going(tmp_path, make_federation):
    """A run that goes on when told to: (its file, a function that plays so many rounds)."""
    store = Store.in_file(tmp_path / "ledger.db")
    purse = Purse.of(500, 400)
    books = Books.open(store, "run", {"clients": {"count": 8}}, purse)
    federation = make_federation(failure_rate=0.3)
    steps = Session(Even(), bid_price_first(), federation).rounds(books)

    def play(rounds):
        while rounds:
            step = next(steps)
            rounds -= isinstance(step, RoundRecord)

    yield tmp_path / "ledger.db", play
    store.close()


def parse(message):
    number, data = message.decode().strip().split("\n")
    return int(number.removeprefix("id: ")), json.loads(data.removeprefix("data: "))


def test_news_hold_only_the_rounds_since(going):
    path, play = going
    play(4)
    view = RunView("run", "run", lambda: read_books(path))
    view.refresh()

    async def watch():
        stream = EventStream(view, interval=0.01).messages(after=1)
        first = parse(await anext(stream))
        play(2)
        second = parse(await asyncio.wait_for(anext(stream), LONG))
        await stream.aclose()
        return first, second

    (seen, first), (seen_then, second) = asyncio.run(watch())
    assert (seen, first["rounds"]["round"]) == (3, [2, 3])
    assert second["rounds"]["round"][0] == 4
    assert seen_then == second["rounds"]["round"][-1]


def test_watchers_are_told_what_a_visitor_read_first(going):
    path, play = going
    play(4)
    view = RunView("run", "run", lambda: read_books(path))
    view.refresh()

    async def watch():
        events = EventStream(view, interval=0.01)
        watcher = events.messages(after=1)
        await anext(watcher)
        play(2)
        view.refresh()  # as a visitor's request does
        visitor = events.messages(after=1)
        messages = await anext(visitor), await asyncio.wait_for(anext(watcher), LONG)
        await watcher.aclose()
        await visitor.aclose()
        return [parse(message) for message in messages]

    visited, watched = asyncio.run(watch())
    assert visited[1]["rounds"]["round"][0] == 2
    assert watched[1]["rounds"]["round"][0] == 4
    assert visited[0] == watched[0] > 3


def test_news_between_the_first_message_and_the_first_look_are_told(going):
    path, play = going
    play(4)
    view = RunView("run", "run", lambda: read_books(path))
    view.refresh()

    async def watch():
        events = EventStream(view, interval=0.01)
        earlier = events.messages(after=1)
        await anext(earlier)
        await earlier.aclose()  # and the message is kept: who asks for it need not wait
        watcher = events.messages(after=1)
        await anext(watcher)
        play(1)
        view.refresh()
        told = parse(await asyncio.wait_for(anext(watcher), LONG))
        await watcher.aclose()
        return told

    assert asyncio.run(watch())[1]["rounds"]["round"] == [4]


def test_what_a_visitor_read_is_told_though_the_ledger_is_away_since(going, monkeypatch):
    path, play = going
    play(4)
    view = RunView("run", "run", lambda: read_books(path))
    read = view.refresh
    read()

    def away(_):
        raise LedgerError("the database does not answer")

    monkeypatch.setattr(RunView, "refresh", away)

    async def watch():
        watcher = EventStream(view, interval=0.01).messages(after=1)
        await anext(watcher)
        play(1)
        read()
        told = parse(await asyncio.wait_for(anext(watcher), LONG))
        await watcher.aclose()
        return told

    assert asyncio.run(watch())[1]["rounds"]["round"] == [4]


def test_who_asks_again_after_an_error_is_not_given_the_same_error(going, monkeypatch):
    path, play = going
    play(4)
    view = RunView("run", "run", lambda: read_books(path))
    view.refresh()

    def away(*_):
        raise LedgerError("the database does not answer")

    async def ask(events):
        stream = events.messages(after=1)
        message = await anext(stream, None)
        await stream.aclose()
        return message

    async def watch():
        events = EventStream(view)
        with monkeypatch.context() as patch:
            patch.setattr("bara.dashboard._event_stream.run_json", away)
            refused = await ask(events)
        return refused, await ask(events)

    refused, answered = asyncio.run(watch())
    assert refused is None
    assert parse(answered)[1]["rounds"]["round"] == [2, 3]


def test_a_run_that_ended_is_followed_until_its_process_has_left_its_result(make_run):
    folder = make_run()
    playing = [True]
    results = []
    view = RunView(
        "one",
        "one",
        lambda: read_books(folder / "ledger.db"),
        lambda: playing[0],
        lambda: results[0] if results else None,
    )
    view.refresh()

    async def watch():
        stream = EventStream(view, interval=0.01).messages(after=11)
        ended = parse(await anext(stream))[1]
        results.append(read_result(folder / "result.json"))
        playing[0] = False
        with_result = parse(await asyncio.wait_for(anext(stream), LONG))[1]
        rest = [message async for message in stream]
        return ended, with_result, rest

    ended, with_result, rest = asyncio.run(watch())
    assert ended["state"]["word"] == with_result["state"]["word"] == "finished"
    assert [ended["state"]["over"], with_result["state"]["over"]] == [False, True]
    assert ended["glance"]["kept"] is None
    assert with_result["glance"]["kept"]["accuracy"] == results[0].accuracy_kept
    assert rest == []


def test_a_process_that_is_gone_is_news_though_the_books_could_not_be_read_at_first(
    going, monkeypatch
):
    path, play = going
    play(4)
    playing = [True]
    view = RunView("run", "run", lambda: read_books(path), lambda: playing[0])
    view.refresh()
    changes = view.changes
    playing[0] = False

    def away(_):
        raise LedgerError("the database does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(views, "state", away)
        with pytest.raises(LedgerError):
            view.refresh()
    view.refresh()
    assert view.changes == changes + 1


def test_a_hundred_watch_and_the_ledger_is_looked_at_once(going, monkeypatch):
    path, play = going
    play(3)
    view = RunView("run", "run", lambda: read_books(path))
    view.refresh()
    looks = []
    monkeypatch.setattr(
        view.__class__, "refresh", lambda self, real=RunView.refresh: looks.append(1) or real(self)
    )

    async def watch():
        begun = time.monotonic()
        news = EventStream(view, interval=0.05)
        streams = [news.messages(after=2) for _ in range(100)]
        await asyncio.gather(*map(anext, streams))
        play(1)
        messages = await asyncio.wait_for(asyncio.gather(*map(anext, streams)), LONG)
        seen = len(looks)
        seconds = time.monotonic() - begun
        for stream in streams:
            await stream.aclose()
        await asyncio.sleep(0.2)
        return messages, seen, seconds

    messages, seen, seconds = asyncio.run(watch())
    assert len({id(message) for message in messages}) == 1
    assert seen <= seconds / 0.05 + 1, "they do not share their looks"
    assert len(looks) <= seen + 1, "nobody watches any more, and still it looks"


def test_who_has_missed_too_much_is_told_to_load_again(going, monkeypatch):
    path, play = going
    play(12)
    monkeypatch.setattr("bara.dashboard._event_stream.MOST", 10)
    view = RunView("run", "run", lambda: read_books(path))
    view.refresh()

    async def first():
        stream = EventStream(view).messages(after=-1)
        message = parse(await anext(stream))
        await stream.aclose()
        return message

    assert asyncio.run(first()) == (11, {"reload": True})


def test_the_stream_of_a_run_that_has_ended_ends(make_run, visit):
    make_run()
    events = visit().get("/runs/one/events?after=10").text
    assert parse(events.encode())[1]["rounds"]["round"] == [11, 12]
    assert visit().get("/runs/one/events?after=none").status_code == 400


def test_a_page_grown_round_by_round_is_the_page_read_at_once(going):
    path, play = going
    grown = RunView("run", "run", lambda: read_books(path))
    for _ in range(10):
        play(1)
        grown.refresh()
    whole = RunView("run", "run", lambda: read_books(path))
    whole.refresh()
    assert (grown.rounds, grown.totals, grown.failures) == (
        whole.rounds,
        whole.totals,
        whole.failures,
    )
    assert grown.forecast == whole.forecast


@pytest.mark.parametrize("read", ["closed_rounds", "failures", "add_totals"])
def test_a_round_that_is_settled_while_a_page_reads_is_for_the_next_read_books(
    going, monkeypatch, read
):
    path, play = going
    play(3)
    view = RunView("run", "run", lambda: read_books(path))
    real = getattr(views, read)
    with monkeypatch.context() as patch:
        patch.setattr(views, read, lambda *args: play(4) or real(*args))
        view.refresh()
    assert view.failures, "nobody failed: this test shows nothing"
    assert view.state.closed == view.rounds[-1].round == 2
    view.refresh()
    whole = RunView("run", "run", lambda: read_books(path))
    whole.refresh()
    assert (view.rounds, view.totals, view.failures) == (whole.rounds, whole.totals, whole.failures)


def test_a_run_that_took_anothers_place_is_read_anew(going, make_run):
    path, play = going
    play(30)
    place = [path]
    view = RunView("run", "run", lambda: read_books(place[0]))
    view.refresh()
    place[0] = make_run() / "ledger.db"
    view.books = read_books(place[0])
    view.refresh()
    assert view.rounds[-1].round == 12


def test_a_long_run_is_forecast_in_blocks(going):
    path, play = going
    play(40)
    rounds = closed_rounds(read_books(path), -1, 39)
    long = [rounds[0], *rounds[1:] * 100]
    forecast = Extrapolation(8).forecast(long, 100)
    assert abs(forecast.accuracy - rounds[-1].accuracy) < 0.15
    assert Extrapolation(8).forecast(rounds[:3], 100) is None

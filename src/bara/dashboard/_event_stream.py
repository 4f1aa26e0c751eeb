"""Server-sent events: one poll of the ledger and one message, shared by all who watch a run."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, final

from starlette.concurrency import run_in_threadpool

from bara.dashboard._json_views import run_json
from bara.dashboard._presentation import MOST, compact
from bara.dashboard._run_view import RunView
from bara.errors import LedgerError

INTERVAL = 1.0
"""Seconds between two polls of the ledger."""

HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent, so that no proxy closes the connection."""


@final
class EventStream:
    """The stream of news of one run, shared by everyone who watches it.

    Args:
        view: The run.
        interval: Seconds between two polls of its ledger.
    """

    def __init__(self, view: RunView, interval: float = INTERVAL) -> None:
        self._view = view
        self._interval = interval
        self._watchers = 0
        self._poller: asyncio.Task[None] | None = None
        self._news = asyncio.Event()  # replaced with each change, so that every waiter wakes once
        # By the view's number of changes and the last round seen.
        self._messages: dict[tuple[int, int], asyncio.Task[tuple[bytes, int]]] = {}

    async def messages(self, after: int) -> AsyncIterator[bytes]:
        """Yield the rounds after `after`, then each change as it happens, until the run has ended.

        Args:
            after: The last round that the client has seen; -1 for none.
        """
        self._watchers += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll())
        try:
            while True:
                news = self._news
                try:
                    message, after = await self._message(after)
                except LedgerError:  # the browser reconnects, and that request tells the reason
                    return
                yield message
                if self._ended():
                    return
                while not await _within(news, HEARTBEAT):
                    yield b": still here\n\n"
        finally:
            self._watchers -= 1
            if not self._watchers and self._poller is not None:
                self._poller.cancel()
                self._poller = None

    def _ended(self) -> bool:
        state = self._view.state
        return state is not None and state.ended is not None

    async def _poll(self) -> None:
        told = self._view.changes
        while not self._ended():
            await asyncio.sleep(self._interval)
            try:
                await run_in_threadpool(self._view.refresh)
            except LedgerError:  # the database may come back; the page says that news stay out
                continue
            if self._view.changes != told:  # a visitor's request may have read the news first
                told = self._view.changes
                self._messages.clear()
                awaited = self._news
                self._news = asyncio.Event()
                awaited.set()

    async def _message(self, after: int) -> tuple[bytes, int]:
        """Return the message for all who have seen that round, and the last round in it."""
        asked = (self._view.changes, after)
        task = self._messages.get(asked)
        if task is None:
            task = asyncio.create_task(run_in_threadpool(self._make, after))
            self._messages[asked] = task
        return await asyncio.shield(task)

    def _make(self, after: int) -> tuple[bytes, int]:
        with self._view.held():
            closed = -1
            if self._view.rounds:
                closed = self._view.rounds[-1].round
            news: dict[str, Any] = {"reload": True}
            if closed - after <= MOST:
                news = run_json(self._view, after)
            return f"id: {closed}\ndata: {compact(news)}\n\n".encode(), closed


async def _within(news: asyncio.Event, seconds: float) -> bool:
    """Wait for the event; return False if it does not come in time."""
    try:
        await asyncio.wait_for(news.wait(), seconds)
    except TimeoutError:
        return False
    return True

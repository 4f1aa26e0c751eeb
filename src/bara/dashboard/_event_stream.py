"""Server-sent events: one poll of the ledger and one message, shared by all who watch a run."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Message:
    """One message of the stream.

    Attributes:
        text: What is sent.
        closed: The last settled round in it.
        changes: The view's number of changes when it was made.
        last: Whether nothing can follow it.
    """

    text: bytes
    closed: int
    changes: int
    last: bool


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
        self._messages: dict[tuple[int, int], asyncio.Task[Message]] = {}

    async def messages(self, after: int) -> AsyncIterator[bytes]:
        """Yield the rounds after `after`, then each change as it happens, until the run is over.

        A change that comes at any moment is told: who waits has first seen that the view is still
        as it was told, and is woken by any change since then, whoever read it.

        Args:
            after: The last round that the client has seen; -1 for none.
        """
        self._watchers += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll(self._view.changes))
        try:
            while True:
                try:
                    message = await self._message(after)
                except LedgerError:  # the page asks again, and that request tells the reason
                    return
                yield message.text
                if message.last:
                    return
                after = message.closed
                while self._view.changes == message.changes:
                    if not await _within(self._news, HEARTBEAT):
                        yield b": still here\n\n"
        finally:
            self._watchers -= 1
            if not self._watchers and self._poller is not None:
                self._poller.cancel()
                self._poller = None

    async def _poll(self, told: int) -> None:
        while True:
            await asyncio.sleep(self._interval)
            # The database may come back; until then the page says that news stay out.
            with contextlib.suppress(LedgerError):
                await run_in_threadpool(self._view.refresh)
            if self._view.changes != told:  # a visitor's request may have read the news first
                told = self._view.changes
                self._messages.clear()
                awaited = self._news
                self._news = asyncio.Event()
                awaited.set()

    async def _message(self, after: int) -> Message:
        """Return the message for all who have seen that round."""
        asked = (self._view.changes, after)
        task = self._messages.get(asked)
        if task is None:
            task = asyncio.create_task(run_in_threadpool(self._make, after))
            self._messages[asked] = task
        try:
            return await asyncio.shield(task)
        except LedgerError:
            self._messages.pop(asked, None)  # who asks next is not given this error again
            raise

    def _make(self, after: int) -> Message:
        view = self._view
        with view.held():
            closed = -1
            if view.rounds:
                closed = view.rounds[-1].round
            news: dict[str, Any] = {"reload": True}
            if closed - after <= MOST:
                news = run_json(view, after)
            text = f"id: {closed}\ndata: {compact(news)}\n\n".encode()
            return Message(text, closed, view.changes, view.over)


async def _within(news: asyncio.Event, seconds: float) -> bool:
    """Wait for the event; return False if it does not come in time."""
    try:
        await asyncio.wait_for(news.wait(), seconds)
    except TimeoutError:
        return False
    return True

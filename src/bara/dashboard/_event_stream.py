"""Server-sent events: one look at the ledger a second, however many watch, and one message for all of them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, final

from starlette.concurrency import run_in_threadpool

from bara.dashboard._json_views import run_json
from bara.dashboard._presentation import MOST, compact
from bara.dashboard._run_view import RunView
from bara.errors import LedgerError

INTERVAL = 1.0
"""Seconds between looks."""

HEARTBEAT = 15.0
"""Seconds of silence after which something is sent, so that nothing in between closes the line."""


@final
class EventStream:
    """The news of one run, for everyone who watches it."""

    def __init__(self, view: RunView, interval: float = INTERVAL) -> None:
        self._view = view
        self._interval = interval
        self._watchers = 0
        self._poller: asyncio.Task[None] | None = None
        self._news = asyncio.Event()  # replaced at each news, so that all who wait wake once
        self._made: dict[int, asyncio.Task[tuple[bytes, int]]] = {}

    async def messages(self, after: int) -> AsyncIterator[bytes]:
        """What is new since that round, and from then on everything as it happens, until the run has ended."""
        self._watchers += 1
        if self._poller is None:
            self._poller = asyncio.create_task(self._poll())
        try:
            while True:
                news = self._news
                try:
                    message, after = await self._message(after)
                except LedgerError:  # who asks again is told why
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
        while not self._ended():
            await asyncio.sleep(self._interval)
            try:
                changed = await run_in_threadpool(self._view.refresh)
            except (
                LedgerError
            ):  # a database that is away comes back, or the visitor sees that news stay out
                continue
            if changed:
                news, self._news = self._news, asyncio.Event()
                self._made.clear()
                news.set()

    async def _message(self, after: int) -> tuple[bytes, int]:
        """The message for those who have seen that round; made once for all of them."""
        task = self._made.get(after)
        if task is None:
            task = self._made[after] = asyncio.create_task(run_in_threadpool(self._make, after))
        return await asyncio.shield(task)

    def _make(self, after: int) -> tuple[bytes, int]:
        with self._view.held():
            closed = self._view.rounds[-1].round if self._view.rounds else -1
            missed = closed - after
            news: dict[str, Any] = (
                {"reload": True} if missed > MOST else run_json(self._view, after)
            )
            return f"id: {closed}\ndata: {compact(news)}\n\n".encode(), closed


async def _within(news: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(news.wait(), seconds)
    except TimeoutError:
        return False
    return True

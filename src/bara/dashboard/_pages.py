"""The web application: pages, the same content as JSON, tables as CSV, and a stream of news."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from bara.dashboard._event_stream import INTERVAL, EventStream
from bara.dashboard._guard import Guard, Rules
from bara.dashboard._json_views import COMPARED, compare_json, index_json, run_json
from bara.dashboard._presentation import compact
from bara.dashboard._round_view import Json, round_json
from bara.dashboard._run_index import RunIndex
from bara.dashboard._run_view import LONGEST, RunView
from bara.dashboard._tables import TABLES
from bara.errors import LedgerError
from bara.ledger.run_state import round_details
from bara.text import spelled

ASSETS = Path(__file__).parent / "assets"

T = TypeVar("T")


@final
class Pages:
    """The handlers of requests that have passed the guard.

    Args:
        index: The runs to show.
        interval: Seconds between two polls of a ledger that somebody watches.
    """

    def __init__(self, index: RunIndex, interval: float) -> None:
        self._index = index
        self._interval = interval
        self._streams: dict[RunView, EventStream] = {}

    def routes(self) -> list[Route | Mount]:
        """Return all routes; JSON comes before its page, whose pattern would match it as well."""
        return [
            Route("/", self.home),
            Route("/index.json", self.index),
            Route("/json", self.index),
            Route("/compare.json", self.compare),
            Route("/compare", self.compare_page),
            Route("/runs/{name:path}/events", self.events),
            Route("/runs/{name:path}/{table}.csv", self.table),
            Route("/runs/{name:path}/rounds/{number:int}.json", self.round),
            Route("/runs/{name:path}/rounds/{number:int}", self.run_page),
            Route("/runs/{name:path}.json", self.run),
            Route("/runs/{name:path}/rounds/{number:int}/json", self.round),
            Route("/runs/{name:path}/json", self.run),
            Route("/runs/{name:path}", self.run_page),
            Mount("/assets", StaticFiles(directory=ASSETS)),
        ]

    async def home(self, _request: Request) -> Response:
        """Serve the list of runs, or redirect to the only run."""
        if self._index.single:
            return RedirectResponse(f"/runs/{quote(self._index.names()[0])}", 307)
        return _file("index.html")

    async def index(self, _request: Request) -> Response:
        """Serve the list of runs as JSON."""
        return _json(await run_in_threadpool(index_json, self._index))

    async def compare(self, request: Request) -> Response:
        """Serve several runs side by side, as JSON."""
        names = list(dict.fromkeys(request.query_params.getlist("run")))[:COMPARED]
        views = [await self._view(name) for name in names]
        return _json(await run_in_threadpool(compare_json, views))

    async def compare_page(self, _request: Request) -> Response:
        """Serve the page that compares runs."""
        return _file("compare.html")

    async def run(self, request: Request) -> Response:
        """Serve one run as JSON."""
        view = await self._view(request.path_params["name"])
        return await run_in_threadpool(_held, view, lambda one: _json(run_json(one)))

    async def round(self, request: Request) -> Response:
        """Serve one round of a run as JSON."""
        view = await self._view(request.path_params["name"])
        return await run_in_threadpool(_round, view, request.path_params["number"])

    async def run_page(self, request: Request) -> Response:
        """Serve the page of one run."""
        await self._view(request.path_params["name"])
        return _file("run.html")

    async def table(self, request: Request) -> Response:
        """Serve one table of a run as CSV."""
        make = TABLES.get(request.path_params["table"])
        if make is None:
            raise HTTPException(404)
        view = await self._view(request.path_params["name"])
        text = await run_in_threadpool(_held, view, make)
        name = f'attachment; filename="{request.path_params["table"]}.csv"'
        return Response(text, media_type="text/csv", headers={"content-disposition": name})

    async def events(self, request: Request) -> Response:
        """Serve the news of one run as they happen."""
        view = await self._view(request.path_params["name"])
        stream = self._streams.get(view)
        if stream is None:
            stream = EventStream(view, self._interval)
            self._streams[view] = stream
        seen = request.headers.get("last-event-id") or request.query_params.get("after", "-1")
        return StreamingResponse(stream.messages(_number(seen)), media_type="text/event-stream")

    async def _view(self, name: str) -> RunView:
        """Return the run once it is read, without occupying a thread of the pool while waiting."""
        try:
            look = await run_in_threadpool(self._index.look, name)
        except LookupError:
            raise HTTPException(404, "There is no such run here.") from None
        try:
            return await asyncio.wait_for(asyncio.wrap_future(look), LONGEST)
        except TimeoutError:
            raise LedgerError(f"run {name!r} does not answer; ask again later") from None


def make_app(index: RunIndex, rules: Rules, *, interval: float = INTERVAL) -> Starlette:
    """Build the whole application, with its guard.

    Args:
        index: The runs to show.
        rules: The conditions that a request must meet.
        interval: Seconds between two polls of a ledger that somebody watches.
    """
    middleware = [
        Middleware(Guard, rules=rules),
        Middleware(TrustedHostMiddleware, allowed_hosts=[*rules.hosts], www_redirect=False),
        Middleware(GZipMiddleware, minimum_size=2000),
    ]
    return Starlette(
        routes=Pages(index, interval).routes(),
        middleware=middleware,
        exception_handlers={LedgerError: _unreadable},
    )


def _held(view: RunView, make: Callable[[RunView], T]) -> T:
    with view.held():
        return make(view)


def _round(view: RunView, number: int) -> Response:
    with view.held():
        details = round_details(view.books, min(number, 2**31 - 1))
        if details is not None:
            return _json(round_json(details, view.rounds, view.explained(details.round)))
    raise HTTPException(404, "There is no such round.")


def _number(text: str) -> int:
    try:
        return max(min(int(text), 2**31 - 1), -1)
    except ValueError:
        raise HTTPException(400, "Expected the number of a round.") from None


def _file(name: str) -> Response:
    return FileResponse(ASSETS / name, headers={"cache-control": "no-cache"})


def _json(content: Json) -> Response:
    return Response(compact(content), media_type="application/json")


async def _unreadable(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{spelled(str(error))}\n", 503)

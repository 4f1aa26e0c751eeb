"""The runs below a folder, or in a database. A request names one of those that were found; no path is made from it."""

import contextlib
import math
import os
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

from bara.dashboard._run_view import PATIENCE, RunView
from bara.errors import ConfigError, LedgerError
from bara.ledger import Books, Store, read_books
from bara.ledger.locks import is_held, is_played
from bara.ledger.store import check_url, run_names, whole_url
from bara.reports.result import Result, read_result
from bara.runs.folder import read_stored, stored_config

DEPTH = 3
"""Folders below the given one in which runs are looked for."""

FRESH = 0.2
"""Seconds for which what was found serves whoever else asks: a crowd that comes at once is one look."""


@dataclass(frozen=True)
class FoundRun:
    """A run that is there, and how it is looked at.

    Attributes:
        place: What stands for it in a command.
        books: Opens its books for reading.
        held: Whether a process has it; None where that cannot be known.
        result: What it came to, once that is there.
        age: By which the newest is listed first.
    """

    place: str
    books: Callable[[], Books]
    held: Callable[[], bool | None]
    result: Callable[[], Result | None]
    age: float


@final
class RunIndex:
    """One run's folder, a folder of runs, or the runs of a database.

    Args:
        place: Which folder, or the URL of the database.

    Attributes:
        title: What a page calls it.
        single: Whether it is itself a run.
    """

    def __init__(self, place: Path | str) -> None:
        source = DatabaseRuns(place) if isinstance(place, str) else FolderRuns(place)
        self.title, self.single = source.title, source.single
        self._source = source
        self._views: dict[str, RunView] = {}
        self._looks: dict[str, tuple[float, Future[RunView]]] = {}
        self._search: tuple[float, dict[str, FoundRun]] = (-math.inf, {})

    def names(self) -> list[str]:
        """The runs there are now, newest first."""
        return [
            name for name, _ in sorted(self._runs().items(), key=lambda one: (-one[1].age, one[0]))
        ]

    def view(self, name: str) -> RunView:
        """The run of that name, up to date; a `LedgerError` says why there is none to be seen, or not yet."""
        look = self.look(name)
        try:
            return look.result(max(self._looks[name][0] + PATIENCE - time.monotonic(), 0))
        except TimeoutError:
            raise LedgerError(
                f"run {name!r} does not answer, or takes long to read; it appears here once it is read"
            ) from None

    def look(self, name: str) -> "Future[RunView]":
        """The look at that run that is under way, or a new one, in a thread that nobody else waits for if it hangs."""
        found = self._runs().get(name)
        if found is None:
            raise LookupError(name)
        _, look = self._looks.get(name, (0.0, None))
        if look is None or look.done():
            look = Future[RunView]()
            look.set_running_or_notify_cancel()
            self._looks[name] = time.monotonic(), look
            threading.Thread(target=self._take, args=(look, name, found), daemon=True).start()
        return look

    def _take(self, look: "Future[RunView]", name: str, found: FoundRun) -> None:
        view = self._views.get(name) or self._views.setdefault(
            name, RunView(name, found.place, found.books, found.held, found.result)
        )
        try:
            view.refresh(FRESH)
        except LedgerError as error:
            look.set_exception(error)
        else:
            look.set_result(view)

    def _runs(self) -> dict[str, FoundRun]:
        searched, runs = self._search
        if time.monotonic() - searched >= FRESH:
            runs = dict(self._source.found())
            self._search = time.monotonic(), runs
        return runs


@final
class FolderRuns:
    """One run's folder, or a folder of runs; links that lead out of it are not followed."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(
                f"there is no folder {str(folder)!r}; expected a run's folder, or a folder of runs"
            )
        self._given = folder
        self._folder = folder.resolve()
        self.title = self._folder.name
        self.single = os.path.lexists(self._folder / "config.toml")

    def found(self) -> Iterator[tuple[str, FoundRun]]:
        """The runs there are, by name."""
        if self.single:
            yield self._found(Path(self._folder.name), self._folder, self._given)
            return
        folders = [self._folder]
        for _ in range(DEPTH):
            folders = [one for folder in folders for one in _folders(folder) if self._inside(one)]
            for path in folders:
                config, ledger = path / "config.toml", path / "ledger.db"
                if os.path.lexists(config) and self._inside(config) and self._inside(ledger):
                    below = path.relative_to(self._folder)
                    yield self._found(below, path, self._given / _name(below))

    def _found(self, name: Path, path: Path, place: Path) -> tuple[str, FoundRun]:
        books, held, result = (
            partial(_books, path, place),
            partial(is_held, path),
            partial(self._result, path),
        )
        return _name(name), FoundRun(str(place), books, held, result, _age(path))

    def _result(self, path: Path) -> Result | None:
        """What a run came to; None where it left nothing that can be read."""
        file = path / "result.json"
        try:
            return read_result(file) if self._inside(file) else None
        except ConfigError:
            return None

    def _inside(self, path: Path) -> bool:
        """A link that leads out of the folder is not followed; one that leads nowhere is the run's own trouble."""
        try:
            return path.resolve().is_relative_to(self._folder)
        except (OSError, RuntimeError):  # a loop
            return True


@final
class DatabaseRuns:
    """The runs of a database, which who started the dashboard has named."""

    single = False

    def __init__(self, url: str) -> None:
        self._url = whole_url(url)
        check_url(self._url)
        self.title = self._url.rpartition("/")[2]
        run_names(self._url)  # is it there at all?

    def found(self) -> Iterator[tuple[str, FoundRun]]:
        """The runs there are, by name."""
        for number, name in enumerate(run_names(self._url)):
            place = f"{shlex.quote(self._url)} --run {shlex.quote(name)}"
            books, held = partial(self._books, name, place), partial(self._held, name)
            yield _name(Path(name)), FoundRun(place, books, held, lambda: None, float(number))

    def _books(self, name: str, address: str) -> Books:
        return _addressed(read_books(self._url, name), address)

    def _held(self, name: str) -> bool | None:
        with contextlib.closing(Store.read_only(self._url)) as store:
            return is_played(store, name)


def _folders(folder: Path) -> list[Path]:
    """Those in a folder; none where it cannot be looked into."""
    try:
        return [one for one in folder.iterdir() if os.path.isdir(one)]  # noqa: PTH112 - which never raises
    except OSError:
        return []


def _name(path: Path) -> str:
    """What a run is called in addresses and on pages: text, whatever bytes its folder is called."""
    return path.as_posix().encode(errors="replace").decode()


def _books(path: Path, place: Path) -> Books:
    """The configuration is read for one key and otherwise left alone: the ledger knows what was run."""
    url = stored_config(path).get("ledger", {}).get("url")
    return _addressed(read_stored(path, None if url is None else str(url)), shlex.quote(str(place)))


def _addressed(books: Books, address: str) -> Books:
    books.address = address
    return books


def _age(path: Path) -> float:
    try:
        return (path / "config.toml").stat().st_mtime
    except OSError:
        return 0.0

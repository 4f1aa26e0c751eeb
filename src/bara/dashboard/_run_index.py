"""The runs in a folder or a database; requests name a run that was found, never a path."""

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
"""How many levels below the given folder are searched for runs."""

FRESH = 0.2
"""Seconds for which a search or a look is reused, so that simultaneous visitors cost one read."""


@dataclass(frozen=True)
class FoundRun:
    """A run that was found, and the functions that read it.

    Attributes:
        place: The words that name the run in a command.
        books: Opens the run's books for reading.
        held: Returns whether a process plays the run; None where that cannot be known.
        result: Returns the run's result, or None if there is none.
        age: A number that is higher for newer runs.
    """

    place: str
    books: Callable[[], Books]
    held: Callable[[], bool | None]
    result: Callable[[], Result | None]
    age: float


@final
class RunIndex:
    """The runs to show: one run's folder, a folder of runs, or the runs of a database.

    Args:
        place: The folder, or the URL of the database.

    Attributes:
        title: The name of the folder or database, for the page.
        single: Whether the folder is itself a run.
    """

    def __init__(self, place: Path | str) -> None:
        self._source = DatabaseRuns(place) if isinstance(place, str) else FolderRuns(place)
        self.title = self._source.title
        self.single = self._source.single
        self._views: dict[str, RunView] = {}
        self._looks: dict[str, tuple[float, Future[RunView]]] = {}
        self._search: tuple[float, dict[str, FoundRun]] = (-math.inf, {})

    def names(self) -> list[str]:
        """Return the names of all runs, newest first."""
        runs = self._runs()
        return sorted(runs, key=lambda name: (-runs[name].age, name))

    def view(self, name: str) -> RunView:
        """Return the run of that name, up to date.

        Raises:
            LookupError: There is no such run.
            LedgerError: The run cannot be read, or not in time.
        """
        look = self.look(name)
        started, _ = self._looks[name]
        try:
            return look.result(max(started + PATIENCE - time.monotonic(), 0))
        except TimeoutError:
            raise LedgerError(
                f"run {name!r} does not answer, or takes long to read; "
                "it appears here once it is read"
            ) from None

    def look(self, name: str) -> "Future[RunView]":
        """Start reading the run in a thread of its own, or join the read that is under way."""
        found = self._runs().get(name)
        if found is None:
            raise LookupError(name)
        _, look = self._looks.get(name, (0.0, None))
        if look is None or look.done():
            look = Future[RunView]()
            look.set_running_or_notify_cancel()
            self._looks[name] = (time.monotonic(), look)
            threading.Thread(target=self._take, args=(look, name, found), daemon=True).start()
        return look

    def _take(self, look: "Future[RunView]", name: str, found: FoundRun) -> None:
        view = self._views.get(name)
        if view is None:
            view = RunView(name, found.place, found.books, found.held, found.result)
            view = self._views.setdefault(name, view)  # another thread may have been faster
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
            self._search = (time.monotonic(), runs)
        return runs


@final
class FolderRuns:
    """The runs of a folder, or the folder of one run; links that lead out are not followed.

    Args:
        folder: The folder.

    Attributes:
        title: The folder's name.
        single: Whether the folder is itself a run.
    """

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
        """Yield the name of each run, and how to read it."""
        if self.single:
            yield self._found(Path(self._folder.name), self._folder, self._given)
            return
        level = [self._folder]
        for _ in range(DEPTH):
            below = list[Path]()
            for folder in level:
                below += filter(self._inside, _folders(folder))
            level = below
            for path in filter(self._is_run, level):
                name = path.relative_to(self._folder)
                yield self._found(name, path, self._given / _name(name))

    def _is_run(self, path: Path) -> bool:
        config = path / "config.toml"
        ledger = path / "ledger.db"
        return os.path.lexists(config) and self._inside(config) and self._inside(ledger)

    def _found(self, name: Path, path: Path, place: Path) -> tuple[str, FoundRun]:
        found = FoundRun(
            str(place),
            books=partial(_books, path, place),
            held=partial(is_held, path),
            result=partial(self._result, path),
            age=_age(path),
        )
        return _name(name), found

    def _result(self, path: Path) -> Result | None:
        """Return a run's result, or None if it left none that can be read."""
        file = path / "result.json"
        if not self._inside(file):
            return None
        try:
            return read_result(file)
        except ConfigError:
            return None

    def _inside(self, path: Path) -> bool:
        """Return whether a path stays in the folder; a loop of links does, and fails when read."""
        try:
            return path.resolve().is_relative_to(self._folder)
        except (OSError, RuntimeError):
            return True


@final
class DatabaseRuns:
    """The runs of a database that was named at the start of the dashboard.

    Args:
        url: The database.

    Attributes:
        title: The name of the database.
        single: False: a database can hold several runs.
    """

    single = False

    def __init__(self, url: str) -> None:
        self._url = whole_url(url)
        check_url(self._url)
        self.title = self._url.rpartition("/")[2]
        run_names(self._url)  # fail now if the database is not there

    def found(self) -> Iterator[tuple[str, FoundRun]]:
        """Yield the name of each run, and how to read it."""
        for number, name in enumerate(run_names(self._url)):
            place = f"{shlex.quote(self._url)} --run {shlex.quote(name)}"
            found = FoundRun(
                place,
                books=partial(self._books, name, place),
                held=partial(self._held, name),
                result=lambda: None,
                age=float(number),
            )
            yield _name(Path(name)), found

    def _books(self, name: str, address: str) -> Books:
        return _addressed(read_books(self._url, name), address)

    def _held(self, name: str) -> bool | None:
        with contextlib.closing(Store.read_only(self._url)) as store:
            return is_played(store, name)


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder; none if it cannot be read."""
    try:
        paths = list(folder.iterdir())
    except OSError:
        return []
    return [one for one in paths if os.path.isdir(one)]  # noqa: PTH112 - Path.is_dir may raise


def _name(path: Path) -> str:
    """Return a run's name as valid text, whatever bytes its folder's name is made of."""
    return path.as_posix().encode(errors="replace").decode()


def _books(path: Path, place: Path) -> Books:
    """Open a run's books; its configuration is read only for the address of its ledger."""
    url = stored_config(path).get("ledger", {}).get("url")
    if url is not None:
        url = str(url)
    return _addressed(read_stored(path, url), shlex.quote(str(place)))


def _addressed(books: Books, address: str) -> Books:
    """Set the words that name the run in the commands that the books suggest."""
    books.address = address
    return books


def _age(path: Path) -> float:
    try:
        return (path / "config.toml").stat().st_mtime
    except OSError:
        return 0.0

"""The runs below a folder. A request names one of those that were found; no path is ever made from a request."""

import math
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import final

from bara.dashboard._run_view import PATIENCE, RunView
from bara.errors import ConfigError, LedgerError
from bara.experiments.results import Result, read_result
from bara.experiments.run_folder import read_stored, stored_config
from bara.ledger import Books
from bara.ledger.locks import is_held

DEPTH = 3
"""Folders below the given one in which runs are looked for."""

FRESH = 0.2
"""Seconds for which what was found serves whoever else asks: a crowd that comes at once is one look."""


@final
class RunIndex:
    """One run's folder, or a folder of runs.

    Args:
        folder: Which.

    Attributes:
        folder: Which, with no links in its path.
        single: Whether it is itself a run.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(f"there is no folder {str(folder)!r}; required is a run's folder or one that holds runs")
        self._given = folder
        self.folder = folder.resolve()
        self.single = os.path.lexists(self.folder / "config.toml")
        self._views: dict[str, RunView] = {}
        self._looks: dict[str, tuple[float, Future[RunView]]] = {}
        self._search: tuple[float, dict[str, Path]] = (-math.inf, {})

    def names(self) -> list[str]:
        """The runs there are now, newest first."""
        return [name for name, _ in sorted(self._runs().items(), key=lambda one: (-_age(one[1]), one[0]))]

    def view(self, name: str) -> RunView:
        """The run of that name, up to date; a `LedgerError` says why there is none to be seen, or not yet."""
        look = self.look(name)
        try:
            return look.result(max(self._looks[name][0] + PATIENCE - time.monotonic(), 0))
        except TimeoutError:
            raise LedgerError(f"run {name!r} does not answer, or takes long to read; it is shown once it is") from None

    def look(self, name: str) -> "Future[RunView]":
        """The look at that run that is under way, or a new one, in a thread that nobody else waits for if it hangs."""
        path = self._runs().get(name)
        if path is None:
            raise LookupError(name)
        _, look = self._looks.get(name, (0.0, None))
        if look is None or look.done():
            look = Future[RunView]()
            look.set_running_or_notify_cancel()
            self._looks[name] = time.monotonic(), look
            threading.Thread(target=self._take, args=(look, name, path), daemon=True).start()
        return look

    def _take(self, look: "Future[RunView]", name: str, path: Path) -> None:
        view = self._views.get(name) or self._views.setdefault(
            name,
            RunView(name, self._place(name), lambda: _books(path), lambda: is_held(path), lambda: self._result(path)),
        )
        try:
            view.refresh(FRESH)
        except LedgerError as error:
            look.set_exception(error)
        else:
            look.set_result(view)

    def _result(self, path: Path) -> Result | None:
        """What a run came to; None where it left nothing that can be read."""
        file = path / "result.json"
        try:
            return read_result(file) if self._inside(file) else None
        except ConfigError:
            return None

    def _place(self, name: str) -> str:
        return str(self._given if self.single else self._given / name)

    def _runs(self) -> dict[str, Path]:
        searched, runs = self._search
        if time.monotonic() - searched >= FRESH:
            runs = dict(self._found())
            self._search = time.monotonic(), runs
        return runs

    def _found(self) -> Iterator[tuple[str, Path]]:
        if self.single:
            yield _name(Path(self.folder.name)), self.folder
            return
        folders = [self.folder]
        for _ in range(DEPTH):
            folders = [one for folder in folders for one in _folders(folder) if self._inside(one)]
            for path in folders:
                config, ledger = path / "config.toml", path / "ledger.db"
                if os.path.lexists(config) and self._inside(config) and self._inside(ledger):
                    yield _name(path.relative_to(self.folder)), path

    def _inside(self, path: Path) -> bool:
        """A link that leads out of the folder is not followed; one that leads nowhere is the run's own trouble."""
        try:
            return path.resolve().is_relative_to(self.folder)
        except (OSError, RuntimeError):  # a loop
            return True


def _folders(folder: Path) -> list[Path]:
    """Those in a folder; none where it cannot be looked into."""
    try:
        return [one for one in folder.iterdir() if os.path.isdir(one)]  # noqa: PTH112 - which never raises
    except OSError:
        return []


def _name(path: Path) -> str:
    """What a run is called in addresses and on pages: text, whatever bytes its folder is called."""
    return path.as_posix().encode(errors="replace").decode()


def _books(path: Path) -> Books:
    """The configuration is read for one key and otherwise left alone: the ledger knows what was run."""
    url = stored_config(path).get("ledger", {}).get("url")
    return read_stored(path, None if url is None else str(url))


def _age(path: Path) -> float:
    try:
        return (path / "config.toml").stat().st_mtime
    except OSError:
        return 0.0

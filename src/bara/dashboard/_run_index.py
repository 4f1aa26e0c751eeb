"""The runs below a folder. A request names one of those that were found; no path is ever made from a request."""

import math
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import final

from bara.dashboard._run_view import RunView
from bara.errors import ConfigError, LedgerError
from bara.ledger import Books, read_books
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
        self.single = (self.folder / "config.toml").is_file()
        self._views: dict[str, RunView] = {}
        self._search: tuple[float, dict[str, Path]] = (-math.inf, {})

    def names(self) -> list[str]:
        """The runs there are now, newest first."""
        return [name for name, _ in sorted(self._runs().items(), key=lambda one: (-_age(one[1]), one[0]))]

    def view(self, name: str) -> RunView:
        """The run of that name, up to date; a `LedgerError` says why there is none to be seen."""
        path = self._runs().get(name)
        if path is None:
            raise LookupError(name)
        view = self._views.get(name) or self._views.setdefault(
            name, RunView(name, self._place(name), lambda: _books(path), lambda: is_held(path))
        )
        view.refresh(FRESH)
        return view

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
            yield self.folder.name, self.folder
            return
        patterns = ["/".join([*["*"] * depth, "config.toml"]) for depth in range(1, DEPTH + 1)]
        for pattern in patterns:
            for config in self.folder.glob(pattern):
                if self._inside(config) and self._inside(config.parent / "ledger.db"):
                    yield config.parent.relative_to(self.folder).as_posix(), config.parent

    def _inside(self, path: Path) -> bool:
        """A link that leads out of the folder is not followed."""
        return path.resolve().is_relative_to(self.folder)


def _books(path: Path) -> Books:
    """The configuration is read for one key and otherwise left alone: the ledger knows what was run."""
    try:
        url = tomllib.loads((path / "config.toml").read_text()).get("ledger", {}).get("url")
    except (OSError, ValueError, AttributeError) as error:
        raise LedgerError(f"cannot read the configuration of {path.name!r}: {error}") from error
    return read_books(path / "ledger.db") if url is None else read_books(str(url), path.resolve().name)


def _age(path: Path) -> float:
    try:
        return (path / "config.toml").stat().st_mtime
    except OSError:
        return 0.0

"""A run in a database, by its URL and without a folder: for a program of one's own, and for who only looks."""

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self, final

from bara.errors import ConfigError, LedgerError, PausedError, WaitingError
from bara.ledger import Books, Store, Terms, read_books
from bara.ledger.locks import only_player
from bara.ledger.store import run_names, whole_url
from bara.runs.config import OWN_LOOP, Config, flat, read_toml
from bara.runs.factory import build_allocator, build_mechanism
from bara.runs.folder import RunFolder, check_books, command_for, terms
from bara.runs.session import OwnLoop, Session

_OWN = ("seed", "budget", "clients.count", "mechanism", "allocator", "ledger", "federation.engine")
"""What the configuration of a program of one's own may say; the rest is that program's business."""


@contextlib.contextmanager
def open_session(
    run: str, config: Config | Mapping[str, Any] | Path | str, *, protects: bool = False
) -> Iterator[Session]:
    """Open the books of a run that your own program plays, or go on where they say it stopped.

    The run is in the database that `ledger.url` names and nobody else can play it meanwhile. A
    wrong or missing key, a record that is not whole, a copy, and a configuration other than the one
    it was opened with are refused.

    Args:
        run: The run's name in its database.
        config: Budget, allocator, mechanism, `clients.count` and how the books are kept; a mapping
            or a TOML file.
        protects: Your clients train with local differential privacy where the mechanism asks for
            it.
    """
    with DatabaseRun.of(run, config) as place:
        session = Session(
            build_allocator(place.config), build_mechanism(place.config), OwnLoop(protects=protects)
        )
        session.start(place.claim_books())
        try:
            yield session
            session.leave()
        except PausedError as paused:
            if not isinstance(paused, WaitingError):
                paused.add_note(f"`bara ledger {place.address} continue` lets it go on")
            raise


@final
class DatabaseRun(contextlib.ExitStack):
    """One run of a database; a context manager, because it holds connections and perhaps a lock.

    Attributes:
        url: Where it is.
        name: Which run it is.
    """

    def __init__(self, url: str, name: str, config: Config | None = None) -> None:
        super().__init__()
        self.url = whole_url(url)
        self.name = name
        self._config = config

    @classmethod
    def of(cls, name: str, config: Config | Mapping[str, Any] | Path | str) -> Self:
        """A run of one's own, new or not, as a configuration has it."""
        config = _own(config)
        if config.ledger.url is None:
            raise ConfigError(
                "ledger.url is not set; say where the books are, like sqlite:///spring.db"
            )
        if "total" not in config.budget.model_fields_set:
            raise ConfigError("budget.total is not set; say how much may be spent at most")
        return cls(config.ledger.url, name, config)

    @classmethod
    def find(cls, url: str, name: str | None = None) -> Self:
        """A run that is there; the only one, unless it is named."""
        names = run_names(url)
        if name is None and len(names) > 1:
            raise ConfigError(
                f"{url!r} holds {len(names)} runs; say which one with --run: {_list(names)}"
            )
        if name is None and names:
            name = names[0]
        if name not in names:
            raise ConfigError(
                f"{url!r} holds no run{f' {name!r}' if name else ''}; it holds: {_list(names)}"
            )
        return cls(url, str(name))

    @property
    def config(self) -> Config:
        """What is run, as the books were opened with it."""
        if self._config is None:
            with contextlib.closing(read_books(self.url, self.name).store) as store:
                books = Books.find(store, self.name)
                self._config = Config.parse(
                    {} if books is None else books.opening.get("config", {})
                )
        return self._config

    @property
    def address(self) -> str:
        """The run as one writes it after `bara ledger`."""
        return f"{shlex.quote(self.url)} --run {shlex.quote(self.name)}"

    @property
    def resume_command(self) -> str:
        """What makes the run go on."""
        return command_for("resume", Path("ITS-FOLDER"), self.config.federation.engine)

    @property
    def continue_command(self) -> str:
        """What lets the run go on, once it was paused."""
        return f"bara ledger {self.address} continue"

    def read_books(self) -> Books:
        """The books, for reading only."""
        books = read_books(self.url, self.name, self._terms())
        self.callback(books.store.close)
        return self._addressed(books)

    def open_books(self) -> Books:
        """The books, for what an operator may do while the run goes on."""
        books = Books.find(self._store(), self.name, self._terms())
        if books is None:
            raise LedgerError(f"{self.url!r} holds no run {self.name!r}")
        return self._addressed(books)

    def hold_books(self) -> Books:
        """The books, for what an operator may do only while nobody plays the run: its lock is taken."""
        books = self.open_books()
        self.enter_context(only_player(books.store, self.name))
        check_books(books, Config.parse(books.opening.get("config", {})), f"run {self.name!r}")
        return books

    def claim_books(self) -> Books:
        """Take the run's lock and open its books, or go on with those that are there; to play it."""
        config = self.config
        store, kept = self._store(), terms(config)
        self.enter_context(only_player(store, self.name))
        books = Books.find(store, self.name, kept)
        if books is None:
            return self._addressed(
                Books.open(store, self.name, config.model_dump(mode="json"), config.purse(), kept)
            )
        engine = books.opening.get("config", {}).get("federation", {}).get("engine")
        if engine != OWN_LOOP:
            raise ConfigError(
                f"run {self.name!r} in {store.place} was opened with the engine {engine!r}, not by a program of your "
                "own; choose another name"
            )
        check_books(books, config, f"run {self.name!r}")
        return self._addressed(books)

    def _terms(self) -> Terms:
        return terms(self.config, needs_key=False)

    def _store(self) -> Store:
        store = Store.open(self.url)
        self.callback(store.close)
        return store

    def _addressed(self, books: Books) -> Books:
        books.address = self.address
        return books


def find_run(place: str, run: str | None = None) -> RunFolder | DatabaseRun:
    """A run by its folder, or by the URL of its database and its name there."""
    if "://" in place:
        return DatabaseRun.find(place, run)
    if run is not None:
        raise ConfigError(
            f"--run {run} names a run of a database, and {place!r} is a folder; leave it out"
        )
    return RunFolder.find(Path(place))


def _own(given: Config | Mapping[str, Any] | Path | str) -> Config:
    """The configuration of a program of one's own; what that program decides itself is refused, not ignored."""
    if isinstance(given, Config):
        return given.model_copy(
            update={"federation": Config.parse({"federation": {"engine": OWN_LOOP}}).federation}
        )
    tree = dict(given) if isinstance(given, Mapping) else read_toml(Path(given))
    for key in flat(tree):
        if not any(key == own or key.startswith(f"{own}.") for own in _OWN):
            raise ConfigError(f"{key} is set, which your own program decides; leave it out")
    return Config.parse({**tree, "federation": {"engine": OWN_LOOP}})


def _list(names: list[str], most: int = 10) -> str:
    return ", ".join([*map(repr, names[:most]), *["..."] * (len(names) > most)]) or "none"

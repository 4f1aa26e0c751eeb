"""A run in a database, played by a program of the user's own (`bara.open_session`)."""

import contextlib
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self, final

from bara.errors import ConfigError, LedgerError, PausedError, WaitingError
from bara.ledger import Books, Store, read_books
from bara.ledger.locks import only_player
from bara.ledger.store import run_names, whole_url
from bara.runs.config import Config, read_toml
from bara.runs.config_sections import FederationSection
from bara.runs.engines import OWN_LOOP, kind_of
from bara.runs.factory import build_allocator, build_mechanism, limits_of
from bara.runs.folder import RunFolder
from bara.runs.place import Place, check_books, command_for, terms_of
from bara.runs.session import OwnLoop, Session
from bara.text import flat

_OWN_KEYS = (
    "seed",
    "budget",
    "clients.count",
    "mechanism",
    "allocator",
    "ledger",
    "limits",
    "federation.engine",
)
"""The keys that the configuration of an own program may set; the program decides the rest."""

Given = Config | Mapping[str, Any] | Path | str
"""The configuration of an own program: a mapping, a TOML file, or a `Config`."""


@contextlib.contextmanager
def open_session(run: str, config: Given, *, protects: bool = False) -> Iterator[Session]:
    """Open the books of a run that your own program plays, or go on where they say it stopped.

    The run is in the database that `ledger.url` names and nobody else can play it meanwhile. A
    wrong or missing key, a record that is not whole, a copy, and a configuration other than the one
    the run was opened with are refused.

    Args:
        run: The run's name in its database.
        config: Budget, allocator, mechanism, `clients.count` and how the books are kept.
        protects: Your clients train with local differential privacy where the mechanism asks for
            it.
    """
    with DatabaseRun.of(run, config) as place:
        allocator = build_allocator(place.config)
        mechanism = build_mechanism(place.config)
        federation = OwnLoop(protects=protects)
        session = Session(allocator, mechanism, federation, limits_of(place.config))
        session.start(place.claim_books())
        try:
            yield session
            session.leave()
        except PausedError as paused:
            if not isinstance(paused, WaitingError):
                paused.add_note(f"`{place.continue_command}` lets it go on")
            raise


@final
class DatabaseRun(Place):
    """A run in a database.

    Args:
        url: The database.
        name: The name of the run in it.
        config: The configuration of the run; None to read it from the books when it is needed.
    """

    def __init__(self, url: str, name: str, config: Config | None = None) -> None:
        super().__init__()
        self.url = whole_url(url)
        self._name = name
        self._config = config

    @classmethod
    def of(cls, name: str, given: Given) -> Self:
        """Describe a run of an own program, new or not."""
        config = _own(given)
        if config.ledger.url is None:
            raise ConfigError(
                "ledger.url is not set; say where the books are, like sqlite:///spring.db"
            )
        if "total" not in config.budget.model_fields_set:
            raise ConfigError("budget.total is not set; say how much may be spent at most")
        return cls(config.ledger.url, name, config)

    @classmethod
    def find(cls, url: str, name: str | None = None) -> Self:
        """Find a run in a database: the one of that name, or the only one."""
        names = run_names(url)
        if name is None and len(names) > 1:
            raise ConfigError(
                f"{url!r} holds {len(names)} runs; say which one with --run: {_list(names)}"
            )
        if name is None and names:
            name = names[0]
        if name is None:
            raise ConfigError(f"{url!r} holds no run; it holds: {_list(names)}")
        if name not in names:
            raise ConfigError(f"{url!r} holds no run {name!r}; it holds: {_list(names)}")
        return cls(url, name)

    @property
    def config(self) -> Config:  # type: ignore[override] # it is read from the books when needed
        """The configuration, as the books were opened with it."""
        if self._config is None:
            with contextlib.closing(read_books(self.url, self.name).store) as store:
                books = Books.find(store, self.name)
                tree = None if books is None else books.opening.get("config")
                self._config = Config.parse(tree or {"federation": {"engine": OWN_LOOP}})
        return self._config

    @property
    def name(self) -> str:
        """The name of the run in its database."""
        return self._name

    @property
    def address(self) -> str:
        """The words that name the run in a command, after `bara ledger`."""
        return f"{shlex.quote(self.url)} --run {shlex.quote(self.name)}"

    @property
    def resume_command(self) -> str:
        """The command that makes the run go on once it was stopped, for whoever plays it."""
        return command_for("resume", Path("ITS-FOLDER"), self.config.federation.engine)

    @property
    def continue_command(self) -> str:
        """The command that lets the run go on once it was paused."""
        return f"bara ledger {self.address} continue"

    def read_books(self) -> Books:
        """Open the books for reading only."""
        books = read_books(self.url, self.name, terms_of(self.config, needs_key=False))
        self._closing(books.store)
        return self._addressed(books)

    def open_books(self) -> Books:
        """Open the books for what an operator may do while the run goes on."""
        terms = terms_of(self.config, needs_key=False)
        books = Books.find(self._store(), self.name, terms)
        if books is None:
            raise LedgerError(f"{self.url!r} holds no run {self.name!r}")
        return self._addressed(books)

    def hold_books(self) -> Books:
        """Take the run's lock, for what an operator may do only while nobody plays the run."""
        books = self.open_books()
        self.enter_context(only_player(books.store, self.name))
        opened = Config.parse(books.opening.get("config", {}))
        check_books(books, opened, f"run {self.name!r}")
        return books

    def claim_books(self) -> Books:
        """Take the run's lock and open its books, new or not, to play the run."""
        config = self.config
        store = self._store()
        terms = terms_of(config)
        self.enter_context(only_player(store, self.name))
        books = Books.find(store, self.name, terms)
        if books is None:
            tree = config.model_dump(mode="json")
            return self._addressed(Books.open(store, self.name, tree, config.purse(), terms))
        engine = books.opening.get("config", {}).get("federation", {}).get("engine", "")
        if kind_of(engine).player != "own-program":
            raise ConfigError(
                f"run {self.name!r} in {store.place} was opened with the engine {engine!r}, not by "
                "a program of your own; choose another name"
            )
        check_books(self._addressed(books), config, f"run {self.name!r}")
        return books

    def _store(self) -> Store:
        return self._closing(Store.open(self.url))


def find_run(place: str, run: str | None = None) -> Place:
    """Find a run by its folder, or by the URL of its database and its name there."""
    if "://" in place:
        return DatabaseRun.find(place, run)
    if _is_sqlite(Path(place)):
        raise ConfigError(
            f"{place!r} is a SQLite database, and not the folder of a run; name the runs in it by "
            f"its URL: sqlite:///{place}"
        )
    if run is not None:
        raise ConfigError(
            f"--run {run} names a run of a database, and {place!r} is a folder; leave it out"
        )
    return RunFolder.find(Path(place))


def _is_sqlite(path: Path) -> bool:
    """Return whether a path is a SQLite database, by the first bytes of every such file."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _own(given: Given) -> Config:
    """Read the configuration of an own program; refuse keys that the program itself decides."""
    if isinstance(given, Config):
        return given.model_copy(update={"federation": _own_loop()})
    tree = dict(given) if isinstance(given, Mapping) else read_toml(Path(given))
    for key in flat(tree):
        if not _is_own(key):
            raise ConfigError(f"{key} is set, which your own program decides; leave it out")
    return Config.parse({**tree, "federation": {"engine": OWN_LOOP}})


@cache
def _own_loop() -> FederationSection:
    return Config.parse({"federation": {"engine": OWN_LOOP}}).federation


def _is_own(key: str) -> bool:
    return any(key == own or key.startswith(f"{own}.") for own in _OWN_KEYS)


def _list(names: list[str]) -> str:
    """Return the names for a message, the first ten of many."""
    if not names:
        return "none"
    shown = ", ".join(map(repr, names[:10]))
    return f"{shown}, ..." if len(names) > 10 else shown

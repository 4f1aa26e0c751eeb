"""The folder a run leaves behind: configuration, ledger, checkpoints and models, result, report."""

import contextlib
import errno
import json
import os
import shlex
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any, Self, final

from bara.errors import ConfigError, LedgerError, NoBooksError
from bara.faults import point
from bara.files import SMALL, make_folder, read_whole, write_whole
from bara.ledger import Books, Store, Terms, read_books, stored_receipt, verify
from bara.ledger.locks import only_process, only_session
from bara.ledger.notifications import check_hook
from bara.ledger.operators import check_place, continue_run
from bara.ledger.store import check_host, run_names, whole_url
from bara.records import money
from bara.reports.result import Result, read_result
from bara.runs.config import FLOWER_APP, OWN_LOOP, Config, flat
from bara.runs.data import settled


def command_for(verb: str, place: Path, engine: str) -> str:
    """The command, whole and exact, that runs or resumes what is there: bara's own, or a Flower app's."""
    others = {FLOWER_APP: "flwr run", OWN_LOOP: OWN_PROGRAM}
    return others.get(engine) or f"bara {verb} {shlex.quote(str(place))}"


OWN_PROGRAM = "your own program, which goes on where it stopped"
"""What makes a run go on that `bara.open_session` opened."""


@final
class RunFolder(contextlib.ExitStack):
    """A run on disk; a context manager, because it holds a lock and a database. Use `new` or `find`.

    Attributes:
        path: Where it is.
        config: What is run.
    """

    def __init__(self, path: Path, config: Config, *, is_new: bool) -> None:
        super().__init__()
        self.path = path
        self.config = config
        self._is_new = is_new
        self._claimed: Books | None = None

    @classmethod
    def new(cls, path: Path | None, config: Config) -> Self:
        """A folder that is not there yet or is empty; None for a new one below `runs/`. Nothing is written yet."""
        config = settled(config)
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
        path = (
            path
            or Path("runs") / f"{stamp}-{config.dataset}-{config.allocator.name.rpartition(':')[2]}"
        )
        _check_name(path, "the run's folder")
        if path.exists() and (
            not path.is_dir() or any(not one.name.startswith(".") for one in path.iterdir())
        ):
            raise ConfigError(f"{str(path)!r} already exists; --out must be a new or empty folder")
        terms(config)
        return cls(path, _with_whole_paths(config), is_new=True)

    @classmethod
    def find(cls, path: Path) -> Self:
        """The folder of a run that was started."""
        _check_name(path, "the run's folder")
        if not (path / "config.toml").exists():
            raise ConfigError(f"there is no run in {str(path)!r}: it has no config.toml")
        return cls(path, Config.parse(stored_config(path)), is_new=False)

    def claim_books(self) -> Books:
        """Take the run's lock and open its books, or go on with those of a run that was started; to play it."""
        if self._claimed is None:
            self._claimed = self._addressed(self._start() if self._is_new else self._hold())
            continue_run(self._claimed)
        return self._claimed

    def _start(self) -> Books:
        """Make the folder, take its lock, open its books."""
        try:
            make_folder(self.path)
        except OSError as error:
            raise ConfigError(f"cannot write to the folder {str(self.path)!r}: {error}") from None
        point("folder made")
        self.enter_context(only_process(self.path))
        if (self.path / "config.toml").exists():
            raise ConfigError(f"{str(self.path)!r} already holds a run; --out must be a new folder")
        if (
            self.config.ledger.url is not None
        ):  # before it could be opened: which run of that database is this folder's
            write_whole(
                self.path / _OPENED, [f"{self.config.ledger.url}\n\n{self.path.resolve().name}\n"]
            )
        write_whole(self.path / "config.toml", [self.config.to_toml()])
        point("configuration written")
        store = self._locked_store()
        if self._books(store) is not None:
            (self.path / "config.toml").unlink()
            (self.path / _OPENED).unlink(missing_ok=True)
            raise ConfigError(
                f"{store.place} already holds a run {self.name!r}; --out must be a folder with another name"
            )
        return self._open(store)

    def _hold(self) -> Books:
        """Take the lock, and check the ledger from its first event on."""
        self.enter_context(only_process(self.path))
        store = self._locked_store()
        books = self._books(store)
        if books is None:
            self._refuse_lost_books(store.place)
            self._refuse_another_run(store)
            return self._open(store)
        check_books(books, self.config, str(self.path))
        self._mark_opened(books)
        return books

    def read_books(self) -> Books:
        """The books, for reading only: nothing is made, changed or held, and no server asked that nobody has named."""
        url = self.config.ledger.url
        try:
            books = read_stored(self.path, url, terms(self.config, needs_key=False))
        except NoBooksError:
            self._refuse_lost_books(url or str(self.path / "ledger.db"))
            raise LedgerError(
                f"the run in {self.path} was stopped before its books were opened; `{self.resume_command}` opens them"
            ) from None
        self.callback(books.store.close)
        return self._addressed(books)

    def open_books(self) -> Books:
        """The books, for what an operator may do while the run goes on."""
        self.read_books()  # they are there, and where the operator says
        books = self._books(self._store(), needs_key=False)
        assert books is not None  # noqa: S101 - it was read a moment ago
        return self._addressed(books)

    def hold_books(self) -> Books:
        """The books, for what an operator may do only while nobody plays the run: its lock is taken."""
        self.read_books()
        return self._addressed(self._hold())

    def put_aside(self) -> Path | None:
        """Make room for a new run: one that has promised nothing moves beside its place; None where it has, and stays.

        Its books stay whole. Those on a server cannot move: their run goes on as it was opened.
        """
        if self.config.ledger.url is not None:
            return None
        with only_process(self.path):
            if not self._is_untouched():
                return None
            free = (self.path.with_name(f"{self.path.name}.{number}") for number in count(1))
            place = next(path for path in free if not path.exists())
            self.path.rename(place)
        return place

    def finish(self, result: Result, report: str) -> Result:
        """Write the result and the report; returns the result, which then knows where they are."""
        write_whole(self.path / "report.html", [report])
        whole = json.JSONEncoder(indent=1).iterencode(
            result.to_json()
        )  # a long run's need not be in memory at once
        write_whole(self.path / "result.json", chain(whole, "\n"))
        point("result written")
        return replace(result, folder=self.path)

    def result(self) -> Result:
        """What the run came to."""
        path = self.path / "result.json"
        if not path.is_file():
            raise ConfigError(
                f"the run in {str(self.path)!r} has not ended; `bara dashboard` shows it as it is, "
                f"`{self.resume_command}` finishes it"
            )
        return replace(read_result(path), folder=self.path)

    @property
    def command(self) -> str:
        """What repeats the run."""
        return command_for("run", self.path / "config.toml", self.config.federation.engine)

    @property
    def resume_command(self) -> str:
        """What makes the run go on, once it was stopped."""
        if handed := self.config.handed_over():
            return f"bara.resume({str(self.path)!r}, {', '.join(f'{part}=...' for part in handed)})"
        return command_for("resume", self.path, self.config.federation.engine)

    @property
    def continue_command(self) -> str:
        """What lets the run go on, once it was paused."""
        return self.resume_command

    @property
    def address(self) -> str:
        """The run as one writes it after `bara ledger`."""
        return shlex.quote(str(self.path))

    @property
    def name(self) -> str:
        """What the run is called in a database that it shares; a folder that was renamed since still says it."""
        return run_name(self.path)

    def _open(self, store: Store) -> Books:
        tree = self.config.model_dump(mode="json")
        books = Books.open(store, self.name, tree, self.config.purse(), terms(self.config))
        self._mark_opened(books)
        return books

    def _mark_opened(self, books: Books) -> None:
        """Note, before anybody is promised anything, where the books are and how they begin."""
        path, first = self.path / _OPENED, books.first_hash()
        if self._opened_line(1) not in ("", first):
            raise LedgerError(
                f"the books in {books.store.place} are not those that the run in {self.path} was opened with; restore "
                "those, or set ledger.url in config.toml to where they are"
            )
        name = [] if self.config.ledger.url is None else [books.name]
        write_whole(path, ["".join(f"{line}\n" for line in (books.store.place, first, *name))])

    def _is_untouched(self) -> bool:
        try:
            books = read_books(self.path / "ledger.db")
        except NoBooksError:
            return not self._opened_line(1)
        with contextlib.closing(books.store):
            return books.is_untouched()

    def _opened_line(self, number: int) -> str:
        return _opened(self.path)[number]

    def _refuse_another_run(self, store: Store) -> None:
        """In a database that others use, open no new run because of a folder that `bara run` has not made itself."""
        if self.config.ledger.url is not None and not self._opened_line(2):
            names = ", ".join(map(repr, run_names(self.config.ledger.url)[:10])) or "none"
            raise ConfigError(
                f"{store.place} holds no run {self.name!r} (it holds: {names}), and this folder was not made by `bara "
                "run`; look at one of them with `bara ledger URL --run NAME`, or start a new run with `bara run "
                f"{shlex.quote(str(self.path / 'config.toml'))}`"
            )

    def _refuse_lost_books(self, place: str | None) -> None:
        """Without its books a run that was opened would begin anew, and pay everybody again."""
        if self._opened_line(1):
            raise LedgerError(
                f"the books of the run in {self.path} were opened in {self._opened_line(0)} and are not in "
                f"{place}; restore them, or set ledger.url in config.toml to where they are"
            )

    def _locked_store(self) -> Store:
        store = self._store()
        self.enter_context(only_session(store, self.name))
        return store

    def _store(self) -> Store:
        url = self.config.ledger.url
        store = Store.in_file(self.path / "ledger.db") if url is None else Store.open(url)
        self.callback(store.close)
        return store

    def _addressed(self, books: Books) -> Books:
        books.address = self.address
        return books

    def _books(self, store: Store, *, needs_key: bool = True) -> Books | None:
        own = self.config.ledger.url is None
        return Books.find(
            store, None if own else self.name, terms(self.config, needs_key=needs_key)
        )


_OPENED = ".opened"
"""The file that says that a run's books were opened, and where."""

_MAY_CHANGE = {
    "ledger.url",
    "ledger.receipt",
    "ledger.key",
    "ledger.notify",
    "data.path",
    "federation.workers",
}
"""Where things are, and how many processes train: nothing of a run's result depends on them."""


def _opened(folder: Path) -> list[str]:
    """Where a folder's books were opened, how they begin, what the run is called there; "" for what it does not say."""
    try:
        return [*read_whole(folder / _OPENED, SMALL).split("\n"), "", ""]
    except FileNotFoundError:
        return ["", "", ""]
    except (OSError, ValueError) as error:
        raise LedgerError(f"cannot read {folder / _OPENED}: {error}") from None


def run_name(folder: Path) -> str:
    """What a folder's run is called in a database that it shares; one that was renamed since still says it."""
    return _opened(folder)[2] or folder.resolve().name


def stored_config(folder: Path) -> dict[str, Any]:
    """What a run's folder says of itself, as keys that nobody has looked into yet."""
    try:
        return tomllib.loads(read_whole(folder / "config.toml", SMALL))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read the configuration of {folder.name!r}: {error}") from None


def read_stored(folder: Path, url: str | None, terms: Terms | None = None) -> Books:
    """The books of the run in a folder, for reading only, unless they are on a server that only the folder names."""
    if url is None:
        return read_books(folder / "ledger.db", terms=terms)
    check_host(url)
    return read_books(url, run_name(folder), terms)


def check_books(books: Books, config: Config, whose: str) -> None:
    """Refuse to go on with books that are not whole, not at their place, or were opened with another configuration."""
    books.check_key()
    finding = verify(books, stored_receipt(books))
    if not finding.ok:
        raise LedgerError(
            f"the ledger of {whose} is not whole: event {finding.wrong}: {finding.problem}"
        )
    _refuse_changes(config, Config.parse(books.opening["config"]))
    check_place(books)


def _refuse_changes(now: Config, opened: Config) -> None:
    """Refuse to go on with a configuration other than the one a run was opened with."""
    one, two = flat(now.model_dump(mode="json")), flat(opened.model_dump(mode="json"))
    for key in sorted(one.keys() | two.keys()):
        if key not in _MAY_CHANGE and one.get(key) != two.get(key):
            raise ConfigError(
                f"{key} must be the {two.get(key)!r} the run was opened with, got {one.get(key)!r} in its configuration"
                + (" (`bara ledger DIR topup` adds to a budget)" if key == "budget.total" else "")
            )


def _with_whole_paths(config: Config) -> Config:
    """The same database and receipt wherever the run is resumed; a receipt that cannot be written is refused."""
    changes: dict[str, str] = {}
    if config.ledger.url is not None:
        changes["url"] = whole_url(config.ledger.url)
    if config.ledger.receipt is not None:
        path = Path(config.ledger.receipt).absolute()
        _check_name(path, "ledger.receipt")
        if not path.parent.is_dir():
            raise ConfigError(
                f"ledger.receipt is {str(path)!r}, but its folder does not exist; create it"
            )
        if path.exists():
            raise ConfigError(
                f"ledger.receipt is {str(path)!r}, which already exists and may be another run's; name a new file"
            )
        changes["receipt"] = str(path)
    return config.model_copy(update={"ledger": config.ledger.model_copy(update=changes)})


def _check_name(path: Path, what: str) -> None:
    """Refuse a name that books cannot hold, or that no file can have."""
    try:
        os.stat(str(path).encode())  # noqa: PTH116 - as UTF-8, which a name need not be
    except (UnicodeEncodeError, ValueError):
        raise ConfigError(f"{what} must have a name in UTF-8, got {str(path)!r}") from None
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise ConfigError(f"{what} is {str(path)!r}: {error.strerror}") from None


def terms(config: Config, *, needs_key: bool = True) -> Terms:
    """How a configuration wants its books kept; who only reads needs no key."""
    ledger = config.ledger
    key = None if ledger.key is None else os.environ.get(ledger.key, "").encode() or None
    if key is None and ledger.key is not None and needs_key:
        raise ConfigError(
            f"ledger.key names the environment variable {ledger.key!r}, which is not set"
        )
    return Terms(
        ledger.retention,
        None if ledger.approve_above is None else money(ledger.approve_above),
        None if ledger.receipt is None else Path(ledger.receipt),
        key,
        _hook(ledger.notify) if needs_key else None,
    )


def _hook(notify: str | None) -> str | None:
    """Who is told what needs a person; a URL that is a secret stands in the environment."""
    if notify is None:
        return None
    hook = os.environ.get(notify[1:], "") if notify.startswith("$") else notify
    if not hook:
        raise ConfigError(
            f"ledger.notify names the environment variable {notify[1:]!r}, which is not set"
        )
    check_hook(hook)
    return hook

"""The folder of a run: configuration, ledger, checkpoints and models, result, report."""

import contextlib
import errno
import json
import os
import shlex
import tomllib
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Self, final

from bara.errors import ConfigError, LedgerError, NoBooksError
from bara.faults import point
from bara.files import SMALL, make_folder, read_whole, write_whole
from bara.ledger import Books, Store, Terms, read_books
from bara.ledger.locks import only_process, only_session
from bara.ledger.operators import continue_run
from bara.ledger.store import check_host, run_names, whole_url
from bara.reports.result import Result, read_result
from bara.runs.config import Config
from bara.runs.fingerprints import MadeBy, changed_parts, made_by
from bara.runs.place import Place, check_books, command_for, terms_of
from bara.runs.summary import completed, result_of

_CONFIG = "config.toml"
_LEDGER = "ledger.db"
_RESULT = "result.json"

_MADE_BY = ".made-by.json"
"""The file with the fingerprints of the code and the data that a run began with."""

_OPENED = ".opened"
"""The file that says that a run's books were opened, and where."""


@final
class RunFolder(Place):
    """A run on disk. Use `new` or `find`.

    Attributes:
        path: The folder.
        config: The configuration of the run.
    """

    def __init__(self, path: Path, config: Config, *, is_new: bool) -> None:
        super().__init__()
        self.path = path
        self.config = config
        self._is_new = is_new
        self._claimed: Books | None = None

    @classmethod
    def new(cls, path: Path | None, config: Config) -> Self:
        """Choose a folder that is not there yet or is empty; nothing is written yet.

        Args:
            path: The folder; None for a new one below `runs/`.
            config: The configuration of the run.
        """
        if path is None:
            stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
            allocator = config.allocator.name.rpartition(":")[2]
            path = Path("runs") / f"{stamp}-{config.dataset}-{allocator}"
        _check_name(path, "the run's folder")
        if path.exists() and not _is_empty(path):
            raise ConfigError(f"{str(path)!r} already exists; --out must be a new or empty folder")
        terms_of(config)  # a key or a notification that is not set is refused before anything runs
        return cls(path, _with_whole_paths(config), is_new=True)

    @classmethod
    def find(cls, path: Path) -> Self:
        """Find the folder of a run that was started."""
        _check_name(path, "the run's folder")
        if not (path / _CONFIG).exists():
            raise ConfigError(f"there is no run in {str(path)!r}: it has no config.toml")
        return cls(path, Config.parse(stored_config(path)), is_new=False)

    # --- the books -------------------------------------------------------------------------------

    def claim_books(self) -> Books:
        """Take the run's lock and open its books, new or not, to play the run."""
        if self._claimed is None:
            self._claimed = self._start() if self._is_new else self._hold()
            continue_run(self._claimed)
        return self._claimed

    def read_books(self) -> Books:
        """Open the books for reading only; a server is asked only if the operator has named it."""
        url = self.config.ledger.url
        try:
            books = read_stored(self.path, url, terms_of(self.config, needs_key=False))
        except NoBooksError:
            self._refuse_lost_books(url or str(self.path / _LEDGER))
            raise LedgerError(
                f"the run in {self.path} was stopped before its books were opened; "
                f"`{self.resume_command}` opens them"
            ) from None
        self._closing(books.store)
        return self._addressed(books)

    def open_books(self) -> Books:
        """Open the books for what an operator may do while the run goes on."""
        self.read_books()  # they are there, and where the operator says
        books = self._books(self._store(), needs_key=False)
        assert books is not None  # noqa: S101 - they were read a moment ago
        return books

    def hold_books(self) -> Books:
        """Take the run's lock, for what an operator may do only while nobody plays the run."""
        self.read_books()
        return self._hold()

    def _start(self) -> Books:
        """Make the folder, take its lock, open its books."""
        try:
            make_folder(self.path)
        except OSError as error:
            raise ConfigError(f"cannot write to the folder {str(self.path)!r}: {error}") from None
        point("folder made")
        self.enter_context(only_process(self.path))
        if (self.path / _CONFIG).exists():
            raise ConfigError(f"{str(self.path)!r} already holds a run; --out must be a new folder")
        url = self.config.ledger.url
        if url is not None:  # before it could be opened: the run of that database which is ours
            write_whole(self.path / _OPENED, [f"{url}\n\n{self.path.resolve().name}\n"])
        write_whole(self.path / _MADE_BY, [json.dumps(made_by(self.config), indent=1)])
        write_whole(self.path / _CONFIG, [self.config.to_toml()])
        point("configuration written")
        store = self._locked_store()
        if self._books(store) is not None:
            (self.path / _CONFIG).unlink()
            (self.path / _OPENED).unlink(missing_ok=True)
            raise ConfigError(
                f"{store.place} already holds a run {self.name!r}; --out must be a folder with "
                "another name"
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

    def _open(self, store: Store) -> Books:
        tree = self.config.model_dump(mode="json")
        terms = terms_of(self.config)
        books = Books.open(store, self.name, tree, self.config.purse(), terms)
        self._mark_opened(books)
        return self._addressed(books)

    def _books(self, store: Store, *, needs_key: bool = True) -> Books | None:
        name = None if self.config.ledger.url is None else self.name
        books = Books.find(store, name, terms_of(self.config, needs_key=needs_key))
        if books is None:
            return None
        return self._addressed(books)

    def _locked_store(self) -> Store:
        store = self._store()
        self.enter_context(only_session(store, self.name))
        return store

    def _store(self) -> Store:
        url = self.config.ledger.url
        if url is None:
            return self._closing(Store.in_file(self.path / _LEDGER))
        return self._closing(Store.open(url))

    # --- what makes it ---------------------------------------------------------------------------

    def made_by(self) -> MadeBy | None:
        """Return the fingerprints that the run began with; None before version 0.3."""
        try:
            found: MadeBy = json.loads(read_whole(self.path / _MADE_BY, SMALL))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read {self.path / _MADE_BY}: {error}") from None
        return found

    def refuse_other_code(self, accepted: Collection[str]) -> None:
        """Refuse to go on with other code or data than the run began with.

        Args:
            accepted: The import paths of parts that were handed over anew, which may have changed.
        """
        began = self.made_by()
        if began is None:
            return
        changed = changed_parts(began)
        for name in changed:
            if name.rpartition(" ")[2] not in accepted:
                raise ConfigError(
                    f"{name} has changed since the run in {str(self.path)!r} began; put it back, "
                    "or, if the run shall go on with a part as it is now, hand that over: "
                    f"bara.resume({str(self.path)!r}, allocator='package.module:Name')"
                )
        if changed:
            both = {name: f"{began[name]}, then {now}" for name, now in changed.items()}
            write_whole(self.path / _MADE_BY, [json.dumps(began | both, indent=1)])

    # --- the mark that books were opened ---------------------------------------------------------

    def _mark_opened(self, books: Books) -> None:
        """Note, before anybody is promised anything, where the books are and how they begin."""
        first = books.first_hash()
        if self._opened_line(1) not in ("", first):
            raise LedgerError(
                f"the books in {books.store.place} are not those that the run in {self.path} was "
                "opened with; restore those, or set ledger.url in config.toml to where they are"
            )
        lines = [books.store.place, first]
        if self.config.ledger.url is not None:
            lines.append(books.name)
        write_whole(self.path / _OPENED, ["".join(f"{line}\n" for line in lines)])

    def _opened_line(self, number: int) -> str:
        return _opened(self.path)[number]

    def _refuse_another_run(self, store: Store) -> None:
        """Refuse to open a run in a shared database for a folder that `bara run` has not made."""
        url = self.config.ledger.url
        if url is None or self._opened_line(2):
            return
        names = ", ".join(map(repr, run_names(url)[:10])) or "none"
        command = f"bara run {shlex.quote(str(self.path / _CONFIG))}"
        raise ConfigError(
            f"{store.place} holds no run {self.name!r} (it holds: {names}), and this folder was "
            "not made by `bara run`; look at one of them with `bara ledger URL --run NAME`, or "
            f"start a new run with `{command}`"
        )

    def _refuse_lost_books(self, place: str | None) -> None:
        """Refuse to begin a run anew whose books are gone: everybody would be paid again."""
        if self._opened_line(1):
            raise LedgerError(
                f"the books of the run in {self.path} were opened in {self._opened_line(0)} and "
                f"are not in {place}; restore them, or set ledger.url in config.toml to where they "
                "are"
            )

    @property
    def is_made(self) -> bool:
        """True once the folder holds a run that can be resumed."""
        return (self.path / _CONFIG).exists()

    # --- the result ------------------------------------------------------------------------------

    def finish(self, result: Result, report: str) -> Result:
        """Write the result and the report; return the result, which then knows its folder."""
        write_whole(self.path / "report.html", [report])
        result = replace(result, made_by=self.made_by())
        tree = result.to_json()
        pieces = json.JSONEncoder(indent=1).iterencode(tree)  # a long run's text is large
        write_whole(self.path / _RESULT, chain(pieces, "\n"))
        point("result written")
        return replace(result, folder=self.path)

    @property
    def has_result(self) -> bool:
        """True once the run has ended."""
        return (self.path / _RESULT).is_file()

    def result(self) -> Result:
        """Return the result of a run that has ended, as its books have it.

        The file of the result only adds what books do not hold, such as the kept model.
        """
        if not self.has_result:
            raise ConfigError(
                f"the run in {str(self.path)!r} has not ended; `bara dashboard` shows it as it is, "
                f"`{self.resume_command}` finishes it"
            )
        stored = read_result(self.path / _RESULT)
        return replace(completed(result_of(self.read_books()), stored), folder=self.path)

    def put_aside(self) -> Path | None:
        """Move a run that has promised nothing beside its place, and return where it is now.

        The books stay whole. None where the run stays: it has promised something, or its books are
        on a server and cannot move.
        """
        if self.config.ledger.url is not None:
            return None
        with only_process(self.path):
            if not self._is_untouched():
                return None
            free = _free_name(self.path)
            self.path.rename(free)
        return free

    def _is_untouched(self) -> bool:
        try:
            books = read_books(self.path / _LEDGER)
        except NoBooksError:
            return not self._opened_line(1)
        with contextlib.closing(books.store):
            return books.is_untouched()

    # --- what one types --------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the run in its database; a folder that was renamed since still says it."""
        return run_name(self.path)

    @property
    def address(self) -> str:
        """The words that name the run in a command, after `bara ledger`."""
        return shlex.quote(str(self.path))

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        return command_for("run", self.path / _CONFIG, self.config.federation.engine)

    @property
    def resume_command(self) -> str:
        """The command that makes the run go on once it was stopped, for whoever plays it."""
        handed = self.config.handed_over()
        if handed:
            arguments = ", ".join(f"{part}=..." for part in handed)
            return f"bara.resume({str(self.path)!r}, {arguments})"
        return command_for("resume", self.path, self.config.federation.engine)

    @property
    def continue_command(self) -> str:
        """The command that lets the run go on once it was paused: resuming ends the pause."""
        return self.resume_command


def _is_empty(path: Path) -> bool:
    """True for a folder that holds nothing but hidden files."""
    return path.is_dir() and all(file.name.startswith(".") for file in path.iterdir())


def _free_name(path: Path) -> Path:
    """Find a name beside a folder that nothing has yet: `spring.1`, `spring.2`, ..."""
    number = 1
    while path.with_name(f"{path.name}.{number}").exists():
        number += 1
    return path.with_name(f"{path.name}.{number}")


def _opened(folder: Path) -> list[str]:
    """Read where a folder's books were opened, how they begin, and the run's name ("" if none)."""
    try:
        return [*read_whole(folder / _OPENED, SMALL).split("\n"), "", ""]
    except FileNotFoundError:
        return ["", "", ""]
    except (OSError, ValueError) as error:
        raise LedgerError(f"cannot read {folder / _OPENED}: {error}") from None


def run_name(folder: Path) -> str:
    """Return the name of a folder's run in a database that it shares with others."""
    return _opened(folder)[2] or folder.resolve().name


def stored_config(folder: Path) -> dict[str, Any]:
    """Read the configuration in a run's folder, as keys that nobody has checked yet."""
    try:
        return tomllib.loads(read_whole(folder / _CONFIG, SMALL))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read the configuration of {folder.name!r}: {error}") from None


def read_stored(folder: Path, url: str | None, terms: Terms | None = None) -> Books:
    """Open a folder's books for reading; a server that only the folder names is not asked."""
    if url is None:
        return read_books(folder / _LEDGER, terms=terms)
    check_host(url)
    return read_books(url, run_name(folder), terms)


def _with_whole_paths(config: Config) -> Config:
    """Make paths absolute, so that the run finds database and receipt wherever it is resumed."""
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
                f"ledger.receipt is {str(path)!r}, which already exists and may be another run's; "
                "name a new file"
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

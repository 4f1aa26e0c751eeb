"""A database that holds ledgers: SQLite in a file, or PostgreSQL by URL; opened, migrated, and spoken to safely."""

import contextlib
import os
import shlex
import socket
import sqlite3
import struct
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self, final
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, NoSuchModuleError

from bara.errors import ConfigError, LedgerError, MissingExtraError, NoBooksError

VERSIONS = ("0001", "0002")
"""Of the schema, from the first on."""

HEAD = VERSIONS[-1]
"""The newest, to which every ledger is brought when it is opened for writing."""

HOSTS = "BARA_LEDGER_HOSTS"
"""The environment variable in which an operator names the database servers that a run's folder may send readers to."""

WRITERS = 5_522_401
"""The number of the PostgreSQL lock that writers take turns with."""


@final
class Store:
    """An open database. Use `open`.

    Attributes:
        place: Where it is, as an error message says it.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._driver: Any = engine.dialect.loaded_dbapi
        self._file: list[int] | None = None  # which file it is, while it is written to
        self._unlocked: Path | None = None  # a file that is only read
        self._looks = threading.local()
        self.place = (
            engine.url.database
            if engine.dialect.name == "sqlite"
            else engine.url.render_as_string()
        )

    @classmethod
    def open(cls, url: str | sa.URL, *, patience: float = 5.0) -> Self:
        """Open a database and bring its schema up to date.

        Args:
            url: `sqlite:///path/ledger.db` or `postgresql+psycopg://host/database`.
            patience: Seconds to wait for another program's lock.
        """
        store = cls(_engine(url, patience))
        try:
            store._migrate()
            store._file = (
                _file_number(store.place) if store.engine.dialect.name == "sqlite" else None
            )
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def in_file(cls, path: Path, *, patience: float = 5.0) -> Self:
        """Open a SQLite file."""
        return cls.open(_file_url(path), patience=patience)

    @classmethod
    def read_only(cls, place: Path | str, *, patience: float = 2.0) -> Self:
        """Open a SQLite file or a database's URL for reading only: nothing is migrated, locked, written or left behind.

        On SQLite a connection is made for each look and let go at once, so that a run that ends can
        fold its log in. A first schema is read as it is.
        """
        url = _file_url(place) if isinstance(place, Path) else _parsed(place)
        if url.get_backend_name() != "sqlite":
            return cls(_engine(url, patience))
        path = Path(url.database or "")
        for file in (_beside(path, end) for end in ("", "-wal", "-shm", "-journal")):
            if file.exists() and not file.is_file():  # a pipe would be waited for
                raise LedgerError(f"{file} is not a regular file, so it cannot be a ledger")
        if not path.exists():
            raise NoBooksError(f"there is no ledger {str(path)!r} yet")
        engine = sa.create_engine(
            url, creator=lambda: _connect_read_only(path, patience), poolclass=sa.NullPool
        )
        sa.event.listen(engine, "begin", _begin_sqlite)
        store = cls(engine)
        store._unlocked = path
        return store

    def close(self) -> None:
        """Let go of it; SQLite folds its write-ahead log into the file."""
        if "_writer" in vars(self):
            self._writer.close()
            del self._writer
        self.engine.dispose()

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One durable transaction: all of it is stored or none."""
        with self._clear_errors(), self._writer.begin():
            if (
                self.engine.dialect.name == "postgresql"
            ):  # one writer at a time, as SQLite has it anyway
                self._writer.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS})")
            yield self._writer
            self._check_file()

    def identity(self) -> str:
        """What tells this database from a copy of it: where a file and its folder are, or a server's own number."""
        if self.engine.dialect.name == "sqlite":
            device, number = _file_number(self.place) or (0, 0)
            folder = Path(self.place or "").absolute().parent
            place = f"device {device}, folder {folder.stat().st_ino}.{_generation(folder)}, file {number}"
            return f"{socket.gethostname()}, {place}"
        with self.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()), "
                "COALESCE(host(inet_server_addr()), 'local'), COALESCE(inet_server_port(), 0) FROM pg_control_system()"
            ).one()
        return "server {}, database {}, at {}:{}".format(*found)

    def _check_file(self) -> None:
        """Refuse a file that is gone, or has two names and so two logs: what it says would be paid again."""
        if self._file is None:
            return
        *file, names = _file_number(self.place, "dev", "ino", "nlink") or [0]
        if file != self._file:
            raise LedgerError(
                f"the ledger {self.place} was removed or replaced while it was in use; nothing of this step is stored: "
                "restore it, then resume"
            )
        if names > 1:
            raise LedgerError(
                f"the ledger {self.place} has another name, too (a hard link), and each name would have a log of its "
                "own; nothing of this step is stored: remove one of the names"
            )

    @cached_property
    def _writer(self) -> sa.Connection:
        """Kept from commit to commit: to take one from the pool and give it back is a fifth of a commit's work."""
        return self.engine.connect().execution_options(bara_write=True)

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One consistent look; one within another, in a thread, is the same: what is verified is what is shown."""
        outer: sa.Connection | None = getattr(self._looks, "now", None)
        if outer is not None and not outer.closed:
            yield outer
            return
        with self._at_rest(), self._clear_errors(), self.engine.begin() as connection:
            if (
                self.engine.dialect.name == "postgresql"
            ):  # else each statement would see another moment
                connection.exec_driver_sql(
                    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
                )
            self._looks.now = connection
            yield connection

    @contextlib.contextmanager
    def _at_rest(self) -> Iterator[None]:
        """Refuse what was read of a file without a log, which no lock protects, if a run went on in it meanwhile."""
        path = self._unlocked
        before = (
            None
            if path is None or _beside(path, "-wal").exists()
            else _file_number(path, "mtime_ns", "size")
        )
        try:
            yield
        finally:
            if before is not None and _file_number(path, "mtime_ns", "size") != before:
                raise LedgerError(
                    f"a run went on in the ledger {path} while it was read; try again"
                )

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, self._driver.IntegrityError) as error:
            raise LedgerError(
                f"the ledger {self.place} refuses this: {_words(error)}; nothing of it was stored"
            ) from error
        except (
            DatabaseError,
            self._driver.Error,
            UnicodeDecodeError,
        ) as error:  # SQLite quotes damaged bytes
            raise LedgerError(
                f"cannot use the ledger {self.place}: {_words(error)}; this step is stored as a whole or not at all; "
                "once the cause is gone, `bara resume` goes on"
            ) from error

    def _migrate(self) -> None:
        if self.version() == HEAD:
            return
        from alembic import command  # noqa: PLC0415 - slow to import, and only needed when there is something to do
        from alembic.config import Config  # noqa: PLC0415

        config = Config()
        config.set_main_option(
            "script_location", str(Path(__file__).parent / "migrations").replace("%", "%%")
        )
        config.set_main_option(
            "version_locations",
            str(Path(__file__).parent / "migrations/versions").replace("%", "%%"),
        )
        config.set_main_option("path_separator", "newline")
        with self.write() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, HEAD)

    def version(self) -> str | None:
        """The schema's version; None for a database without one."""
        with self.read() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            found = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
        version = None if found is None else str(found)
        if version not in (None, *VERSIONS):
            raise LedgerError(
                f"the ledger {self.place} has schema {version}, but this bara only knows up to {HEAD}; update bara"
            )
        return version


def insert(connection: sa.Connection, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, values in the order of the table's columns, by a statement that is compiled once.

    They go straight to the driver: a round's few rows take the database less time than they take
    SQLAlchemy.
    """
    if rows:
        connection.connection.cursor().executemany(_insertion(table, connection.dialect), rows)


@lru_cache
def _insertion(table: sa.Table, dialect: sa.Dialect) -> str:
    return str(sa.insert(table).compile(dialect=dialect))


def whole_url(url: str) -> str:
    """The same database from whatever folder it is opened; a server's is as it was."""
    parsed = _parsed(url)
    file = parsed.database or ":memory:"
    if parsed.get_backend_name() != "sqlite" or file == ":memory:" or file.startswith("file:"):
        return url
    return parsed.set(database=str(Path(file).absolute())).render_as_string(hide_password=False)


def run_names(url: str) -> list[str]:
    """The runs that a database holds, in the order in which they were opened; nothing in it is changed."""
    store = Store.read_only(url)
    with contextlib.closing(store):
        if store.version() is None:
            return []
        with store.read() as connection:
            return [
                str(name)
                for name in connection.scalars(sa.text("SELECT name FROM runs ORDER BY id"))
            ]


def check_host(url: str) -> None:
    """Refuse a database server that nobody but a run's folder names: it would be sent the operator's password.

    Servers on this machine are no exception: another of its users may have started them.
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        return
    allowed = set(os.environ.get(HOSTS, "").replace(",", " ").split())
    names = [url]
    if parsed.host and not parsed.query:  # an option may name another host
        names = [*([f"{parsed.host}:{parsed.port}"] if parsed.port else []), parsed.host, url]
    if not allowed.intersection(names):
        raise LedgerError(
            f"the folder keeps its books on a server that you have not allowed, {parsed.render_as_string()}; nothing "
            f"was sent to it; if it is yours, set {HOSTS}={shlex.quote(names[0])}"
        )


def _file_url(path: Path) -> sa.URL:
    """Made of its parts: in a text, `?` and `%` of a folder's name would be the URL's own."""
    return sa.URL.create("sqlite", database=str(path))


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def check_url(url: str | sa.URL) -> None:
    """Refuse what is no database, and a password, which would be stored, before anything is written."""
    parsed = _parsed(url)
    if parsed.password is not None or "password" in parsed.query:
        raise ConfigError(
            "ledger.url holds a password, which would be stored; use PGPASSWORD or ~/.pgpass"
        )


def _parsed(url: str | sa.URL) -> sa.URL:
    try:
        return sa.make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            f"ledger.url is {str(url)!r}, which does not name a database: {error}"
        ) from error


def _engine(url: str | sa.URL, patience: float) -> sa.Engine:
    parsed = _parsed(url)
    try:
        check_url(url)
        if parsed.get_backend_name() == "sqlite":
            engine = sa.create_engine(parsed, connect_args={"timeout": patience})
            sa.event.listen(engine, "connect", _prepare_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
            return engine
        return sa.create_engine(
            parsed, paramstyle="format", connect_args={"connect_timeout": max(int(patience), 2)}
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{url} needs {error.name}: pip install 'bara-fl[postgres]'"
        ) from error
    except NoSuchModuleError as error:
        raise ConfigError(
            f"ledger.url is {url!r}, which does not name a database: {error}"
        ) from error


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = (
        None  # transactions begin where we say, not where the driver guesses
    )
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA secure_delete = ON")  # a dropped bid is overwritten, not only unlinked
    cursor.close()


def _connect_read_only(path: Path, patience: float) -> sqlite3.Connection:
    try:
        return _look_at(path, patience)
    except (
        sqlite3.OperationalError
    ):  # a run that ends in this instant takes its log away: what is there now?
        return _look_at(path, patience)


def _look_at(path: Path, patience: float) -> sqlite3.Connection:
    """A connection that makes and changes no file, which a plain read-only one would do to the log and its index."""
    log, index = _beside(path, "-wal").exists(), _beside(path, "-shm").exists()
    # Without a log nobody writes; a log without its index is a dead run's, and is indexed in
    # memory.
    how = (
        "immutable=1" if not log else "mode=ro&readonly_shm=1" if index else "mode=ro&vfs=unix-none"
    )
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{how}", uri=True, timeout=patience, isolation_level=None
    )
    try:
        if log and not index:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA temp_store = MEMORY")
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for table, columns in _SINCE_THE_FIRST.items():
            if table not in there:
                connection.execute(f"CREATE TEMP TABLE {table} ({columns})")
    except BaseException:
        connection.close()
        raise
    return connection


_SINCE_THE_FIRST = {"top_ups": "run, number, amount", "memories": "run, part, round, salt, content"}
"""Tables that a ledger of the first schema does not have; who reads it sees them empty."""


def _begin_sqlite(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("bara_write", False)
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if write else "BEGIN")


def _file_number(place: Path | str | None, *what: str) -> list[int] | None:
    """What tells a file from others, or other things of it; None where it is not there."""
    try:
        found = os.stat(place or "")  # noqa: PTH116 - the text is at hand
    except OSError:
        return None
    return [getattr(found, f"st_{name}") for name in what or ("dev", "ino")]


def _generation(folder: Path) -> int:
    """Tells a folder from a later one of the same number, which file systems give out again; 0 where they cannot say.

    (Of the ledger's own file it cannot be asked: closing it once more would let go of SQLite's
    locks.)
    """
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - not everywhere

        file = os.open(folder, os.O_RDONLY)
        try:
            found = fcntl.ioctl(file, 0x80087601, bytes(struct.calcsize("l")))  # FS_IOC_GETVERSION
        finally:
            os.close(file)
        return int(struct.unpack("l", found)[0]) & 0xFFFFFFFF
    return 0


def _words(error: Exception) -> str:
    """What the database itself says."""
    return str(getattr(error, "orig", error)).strip().partition("\n")[0]

"""The database that holds ledgers: a SQLite file, or a PostgreSQL database given by its URL."""

import contextlib
import os
import re
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
from bara.files import LARGEST
from bara.ledger import _schema as schema

VERSIONS = ("0001", "0002", "0003")
"""The versions of the schema, oldest first."""

HEAD = VERSIONS[-1]
"""The newest version; a ledger is migrated to it when it is opened for writing."""

HOSTS = "BARA_LEDGER_HOSTS"
"""The environment variable that lists the database servers that a run's folder may point to."""

WRITERS = 5_522_401
"""The number of the PostgreSQL advisory lock that admits one writer at a time."""


@final
class Store:
    """An open database. Use `open`, `in_file` or `read_only` to get one.

    Attributes:
        place: The path of the SQLite file or the URL of the server, for error messages.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._driver: Any = engine.dialect.loaded_dbapi
        self._file: list[int] | None = None  # device and inode of a SQLite file opened for writing
        self._unlocked: Path | None = None  # the path of a SQLite file opened read-only
        self._snapshots = threading.local()
        self.place: str | None = engine.url.render_as_string()
        if engine.dialect.name == "sqlite":
            self.place = engine.url.database

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
            if store.engine.dialect.name == "sqlite":
                store._file = _stat_fields(store.place, "dev", "ino")
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def in_file(cls, path: Path, *, patience: float = 5.0) -> Self:
        """Open a SQLite file and bring its schema up to date.

        Args:
            path: The file, which is created if it does not exist.
            patience: Seconds to wait for another program's lock.
        """
        return cls.open(_file_url(path), patience=patience)

    @classmethod
    def read_only(cls, place: Path | str, *, patience: float = 2.0) -> Self:
        """Open a database for reading only: nothing is migrated, locked, written or left behind.

        On SQLite each read has a connection of its own and closes it at once, so that a run that
        ends can fold its write-ahead log into the file. Older schemas are read as they are.

        Args:
            place: The path of a SQLite file, or a database's URL.
            patience: Seconds to wait for another program's lock.
        """
        if isinstance(place, Path):
            url = _file_url(place)
        else:
            check_url(place)
            url = _parsed(place)
        if url.get_backend_name() != "sqlite":
            return cls(_engine(url, patience))
        path = Path(url.database or "")
        for ending in ("", "-wal", "-shm", "-journal"):
            file = _beside(path, ending)
            if file.exists() and not file.is_file():  # opening a pipe would block
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
        """Close the database; SQLite then folds its write-ahead log into the file."""
        if "_writer" in vars(self):
            self._writer.close()
            del self._writer
        self.engine.dispose()

    @contextlib.contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Write in one durable transaction: all of it is stored, or nothing."""
        outcome = "this step is stored as a whole or not at all; it can be done again"
        with self._clear_errors(outcome), self._writer.begin():
            if self.engine.dialect.name == "postgresql":  # SQLite admits one writer anyway
                self._writer.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS})")
            yield self._writer
            self._check_file()

    def empty_log(self) -> None:
        """Fold SQLite's write-ahead log into the file and empty it: it holds what was deleted.

        Nobody is waited for: while somebody reads, the log stays as it is until the next time.
        """
        if self.engine.dialect.name != "sqlite" or self._unlocked is not None:
            return
        with self._clear_errors("what was written stays written; try again"):
            cursor = self._writer.connection.cursor()
            (patience,) = cursor.execute("PRAGMA busy_timeout").fetchone()
            cursor.execute("PRAGMA busy_timeout = 0")
            try:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                cursor.execute(f"PRAGMA busy_timeout = {int(patience)}")

    def identity(self) -> str:
        """Return a text that differs between this database and any copy of it.

        For SQLite it names the host, the device, the folder and the file; for PostgreSQL, the
        server's own identifier, the database and the address.
        """
        if self.engine.dialect.name == "sqlite":
            device, file_inode = _stat_fields(self.place, "dev", "ino") or (0, 0)
            folder = Path(self.place or "").absolute().parent
            folder_inode = folder.stat().st_ino
            return (
                f"{socket.gethostname()}, device {device}, "
                f"folder {folder_inode}.{_generation(folder)}, file {file_inode}"
            )
        with self.read() as connection:
            found = connection.exec_driver_sql(
                "SELECT system_identifier, "
                "(SELECT oid FROM pg_database WHERE datname = current_database()), "
                "COALESCE(host(inet_server_addr()), 'local'), COALESCE(inet_server_port(), 0) "
                "FROM pg_control_system()"
            ).one()
        return "server {}, database {}, at {}:{}".format(*found)

    def server_user(self) -> str | None:
        """Return the user that is logged in to the database server; None for a file."""
        if self.engine.dialect.name == "sqlite":
            return None
        with self.read() as connection:
            return str(connection.scalar(sa.text("SELECT session_user")))

    def _check_file(self) -> None:
        """Refuse a file that was replaced or hard-linked: payments would be lost and made again.

        Each name of a linked file would have a write-ahead log of its own.
        """
        if self._file is None:
            return
        found = _stat_fields(self.place, "dev", "ino", "nlink")
        if found is None or found[:2] != self._file:
            raise LedgerError(
                f"the ledger {self.place} was removed or replaced while it was in use; "
                "nothing of this step is stored: restore it, then start again"
            )
        if found[2] > 1:
            raise LedgerError(
                f"the ledger {self.place} has another name, too (a hard link), and each name "
                "would have a log of its own; nothing of this step is stored: remove one of the "
                "names"
            )

    @cached_property
    def _writer(self) -> sa.Connection:
        """The connection of all commits.

        Taking one from the pool each time would be a fifth of a commit's work.
        """
        return self.engine.connect().execution_options(bara_write=True)

    @contextlib.contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Read from one consistent snapshot.

        Nested calls in one thread share it, so that what is verified is also what is shown.
        """
        outer: sa.Connection | None = getattr(self._snapshots, "now", None)
        if outer is not None and not outer.closed:
            yield outer
            return
        outcome = "nothing was changed; try again"
        with self._at_rest(), self._clear_errors(outcome), self.engine.begin() as connection:
            if self.engine.dialect.name == "postgresql":
                # Otherwise each statement would see a snapshot of its own.
                connection.exec_driver_sql(
                    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
                )
            self._snapshots.now = connection
            yield connection

    @contextlib.contextmanager
    def _at_rest(self) -> Iterator[None]:
        """Refuse what was read if the file changed meanwhile: without an index nothing locks it."""
        path = self._unlocked
        before = None
        if path is not None and not _has_index(path):
            before = _stat_fields(path, "mtime_ns", "size")
        try:
            yield
        finally:
            if before is not None and _stat_fields(path, "mtime_ns", "size") != before:
                raise LedgerError(
                    f"a run went on in the ledger {path} while it was read; try again"
                )

    @contextlib.contextmanager
    def _clear_errors(self, outcome: str) -> Iterator[None]:
        """Turn the errors of the database into a LedgerError that says what to do.

        Args:
            outcome: What became of the step, and that it can be repeated once the cause is gone.
        """
        try:
            yield
        except (IntegrityError, self._driver.IntegrityError) as error:
            raise LedgerError(
                f"the ledger {self.place} refuses this: {_words(error)}; nothing of it was stored"
            ) from error
        # UnicodeDecodeError: SQLite's messages may quote damaged bytes.
        except (DatabaseError, self._driver.Error, UnicodeDecodeError) as error:
            raise LedgerError(
                f"cannot use the ledger {self.place}: {_words(error)}; {outcome} once the cause "
                "is gone"
            ) from error

    def _migrate(self) -> None:
        if self.version() == HEAD:
            return
        from alembic import command, config  # noqa: PLC0415 - slow to import and rarely needed

        scripts = str(Path(__file__).parent / "migrations").replace("%", "%%")
        options = config.Config()
        options.set_main_option("script_location", scripts)
        options.set_main_option("version_locations", f"{scripts}/versions")
        options.set_main_option("path_separator", "newline")
        with self.write() as connection:
            options.attributes["connection"] = connection
            command.upgrade(options, HEAD)

    def version(self) -> str | None:
        """Return the version of the schema; None for a database without one."""
        with self.read() as connection:
            if connection.dialect.name == "sqlite":
                self._refuse_disguises(connection)
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            found = schema_version(connection)
        if found is not None and found not in VERSIONS:
            raise LedgerError(
                f"the ledger {self.place} has schema {found}, "
                f"but this bara only knows up to {HEAD}; update bara"
            )
        return found

    def _refuse_disguises(self, connection: sa.Connection) -> None:
        """Refuse a file in which something computed stands in the place of a table of ours.

        Reading a stranger's view, virtual table, generated column or index of an expression could
        take for ever; so could a table whose pages lead to one another in a circle.
        """
        ours = {*schema.metadata.tables, "alembic_version"}
        for name, kind, page in connection.exec_driver_sql(
            "SELECT name, type, rootpage FROM sqlite_master WHERE type IN ('table', 'view')"
        ).all():
            if str(name).lower() not in ours:
                continue
            plain = kind == "table" and page
            if plain:
                columns = connection.exec_driver_sql(
                    "SELECT MAX(hidden) FROM pragma_table_xinfo(?)", (name,)
                )
                computed = connection.exec_driver_sql(_COMPUTED_INDEXES, (name,))
                plain = not columns.scalar() and computed.first() is None
            if not plain:
                raise LedgerError(
                    f"{name} in {self.place} is not a plain table, as bara makes it, but is "
                    "computed when it is read; nothing of it was read"
                )
            if self._unlocked is not None:
                found = connection.exec_driver_sql(f"PRAGMA quick_check({name})").scalar()
                if "2nd reference" in str(found):
                    raise LedgerError(
                        f"{name} in {self.place} holds pages that are read again and again, as no "
                        "database writes them, and reading it could take for ever; nothing of it "
                        "was read"
                    )


def schema_version(connection: sa.Connection) -> str | None:
    """Return the version of the schema as the database itself says it."""
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if found is None else str(found)


_COMPUTED_INDEXES = """
SELECT index_list.name FROM pragma_index_list(?) AS index_list
JOIN pragma_index_xinfo(index_list.name) AS field
JOIN sqlite_master ON sqlite_master.name = index_list.name
WHERE field.cid = -2
OR index_list.partial AND substr(sql, instr(sql, 'WHERE')) NOT IN (
    'WHERE round IS NULL', 'WHERE round IS NOT NULL'
)
"""
"""Finds indexes of a table that hold an expression, or whose rows one chooses that is not ours."""


def insert(connection: sa.Connection, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows by a statement that is compiled once and goes straight to the driver.

    SQLAlchemy's own way would take longer than the database needs for a round's few rows.

    Args:
        connection: The database.
        table: The table to insert into.
        rows: The values of each row, in the order of the table's columns.
    """
    if rows:
        connection.connection.cursor().executemany(_insertion(table, connection.dialect), rows)


@lru_cache
def _insertion(table: sa.Table, dialect: sa.Dialect) -> str:
    return str(sa.insert(table).compile(dialect=dialect))


def fetch(connection: sa.Connection, query: sa.Select[Any], **values: Any) -> list[Any]:
    """Return the rows of a query that is compiled once and goes straight to the driver.

    SQLAlchemy's own way takes several times as long as the database for the few rows of an event.

    Args:
        connection: The database.
        query: The query, which must be built once, not at each call.
        values: The values of its parameters.
    """
    text, names, constants = _selection(query, connection.dialect)
    given = constants | values
    cursor = connection.connection.cursor()
    cursor.execute(text, [given[name] for name in names])
    return list(cursor.fetchall())


@lru_cache
def _selection(
    query: sa.Select[Any], dialect: sa.Dialect
) -> tuple[str, Sequence[str], dict[str, Any]]:
    """Return a query's text, the names of its parameters in order, and the values of its own."""
    compiled: Any = query.compile(dialect=dialect)
    return str(compiled), compiled.positiontup or (), compiled.params


def whole_url(url: str) -> str:
    """Make a SQLite file's path in a URL absolute; return the URL of a server as it is."""
    check_url(url)
    parsed = _parsed(url)
    if parsed.get_backend_name() != "sqlite":
        return url
    file = Path(parsed.database or "").absolute()
    return parsed.set(database=str(file)).render_as_string(hide_password=False)


def run_names(url: str) -> list[str]:
    """Return the names of a database's runs in the order they were opened; change nothing."""
    store = Store.read_only(url)
    with contextlib.closing(store):
        if store.version() is None:
            return []
        with store.read() as connection:
            names = connection.scalars(sa.text("SELECT name FROM runs ORDER BY id"))
            return list(map(str, names))


def check_host(url: str) -> None:
    """Refuse a database server that the operator has not allowed in BARA_LEDGER_HOSTS.

    Whoever wrote a run's folder chose its URL, and the server would be sent the operator's
    password. Servers on this machine are no exception: another user may have started them.
    """
    parsed = _parsed(url)
    if parsed.get_backend_name() == "sqlite":
        return
    allowed = set(os.environ.get(HOSTS, "").replace(",", " ").split())
    names = [url]
    if parsed.host and not parsed.query:  # an option in the query may name another host
        names = [parsed.host, url]
        if parsed.port:
            names = [f"{parsed.host}:{parsed.port}", *names]
    if not allowed.intersection(names):
        raise LedgerError(
            "the folder keeps its books on a server that you have not allowed, "
            f"{parsed.render_as_string()}; nothing was sent to it; "
            f"if it is yours, set {HOSTS}={shlex.quote(names[0])}"
        )


def _file_url(path: Path) -> sa.URL:
    """Return a file's URL without parsing text, where `?` and `%` in a path have a meaning."""
    return sa.URL.create("sqlite", database=str(path))


def _beside(path: Path, ending: str) -> Path:
    """Return the path with an ending added to its name, as SQLite names its log and index."""
    return path.with_name(path.name + ending)


def check_url(url: str | sa.URL) -> None:
    """Refuse a URL that names no durable database, or that holds a password or a variable.

    A password would be stored. Books in memory would be gone with the program, and whoever starts
    it again would pay everybody again.
    """
    parsed = _parsed(url)
    variable = _VARIABLE.search(str(url))
    if variable:
        raise ConfigError(
            f"ledger.url is {str(url)!r}, but bara does not replace {variable[0]}; "
            "write the database's own URL"
        )
    if parsed.get_backend_name() == "sqlite" and not _is_file(parsed):
        raise ConfigError(
            f"ledger.url is {str(url)!r}, which names no file, so the books would be gone with the "
            "program and everybody paid again; name a file, like sqlite:///spring.db"
        )
    if parsed.password is not None or "password" in parsed.query:
        raise ConfigError(
            "ledger.url holds a password, which would be stored; use PGPASSWORD or ~/.pgpass"
        )


_VARIABLE = re.compile(r"\$(\{\w+\}|[A-Z_][A-Z0-9_]*\b)")
"""An environment variable that nobody has replaced by its value."""


def _is_file(url: sa.URL) -> bool:
    """Return whether a SQLite URL names a plain file; an option could put it into memory."""
    file = url.database or ":memory:"
    elsewhere = url.host or url.username or url.query
    return file != ":memory:" and not file.startswith("file:") and not elsewhere


def _parsed(url: str | sa.URL) -> sa.URL:
    try:
        return sa.make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(
            f"ledger.url is {str(url)!r}, which does not name a database: {error}"
        ) from error


def _engine(url: str | sa.URL, patience: float) -> sa.Engine:
    parsed = _parsed(url)
    check_url(url)
    if parsed.drivername not in _DRIVERS:
        raise ConfigError(
            f"ledger.url is {str(url)!r}; books are kept in SQLite (sqlite:///spring.db) or in "
            "PostgreSQL (postgresql+psycopg://host/database)"
        )
    try:
        if parsed.get_backend_name() == "sqlite":
            engine = sa.create_engine(parsed, connect_args={"timeout": patience})
            sa.event.listen(engine, "connect", _prepare_sqlite)
            sa.event.listen(engine, "begin", _begin_sqlite)
            return engine
        # A stricter isolation, which a database may have as its default, would fix what a writer
        # sees before it has waited for the writers before it, and refuse it.
        return sa.create_engine(
            parsed,
            paramstyle="format",
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": max(int(patience), 2)},
        )
    except ImportError as error:  # a driver that is there may lack the server's own library
        driver = error.name or parsed.get_driver_name()
        raise MissingExtraError(
            f"{parsed.render_as_string()} needs {driver}, which cannot be loaded "
            f"({error}): write postgresql+psycopg://... and pip install 'bara-fl[postgres]'"
        ) from error
    except NoSuchModuleError as error:
        raise ConfigError(
            f"ledger.url is {url!r}, which does not name a database: {error}"
        ) from error


_DRIVERS = {
    "sqlite",
    "sqlite+pysqlite",
    "postgresql",
    "postgresql+psycopg",
    "postgresql+psycopg2",
}
"""The databases that may hold books, with their drivers as a URL names them."""


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver must not begin transactions of its own
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA secure_delete = ON")  # a dropped bid is overwritten, not only unlinked
    cursor.close()


def _connect_read_only(path: Path, patience: float) -> sqlite3.Connection:
    try:
        return _look_at(path, patience)
    except sqlite3.OperationalError:
        # A run that ends at this moment removes its log; what is there now can be read.
        return _look_at(path, patience)


def _look_at(path: Path, patience: float) -> sqlite3.Connection:
    """Connect without creating or changing a file.

    SQLite's plain read-only mode would touch the write-ahead log and its index.
    """
    dead_log = False
    if _has_index(path):
        options = "mode=ro&readonly_shm=1"
    elif _has_log(path):  # of a run that died; SQLite indexes it in memory
        dead_log = True
        options = "mode=ro&vfs=unix-none"
    else:  # nobody has written yet
        options = "immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{options}", uri=True, timeout=patience, isolation_level=None
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
        connection.set_progress_handler(lambda: 1, _MOST_STEPS)  # what is called ends the statement
        if dead_log:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(
            "PRAGMA ignore_check_constraints = ON"
        )  # a stranger may have written them
        there = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for table, columns in _SINCE_THE_FIRST.items():
            if table not in there:
                connection.execute(f"CREATE TEMP TABLE {table} ({columns})")
    except BaseException:
        connection.close()
        raise
    return connection


_MOST_STEPS = 2_000_000_000
"""The steps, half a minute of them, after which a statement that only reads is ended."""


def _has_index(path: Path) -> bool:
    """Return whether a SQLite file has a write-ahead log with its index, by which to lock it."""
    return _beside(path, "-wal").exists() and _beside(path, "-shm").exists()


def _has_log(path: Path) -> bool:
    """Return whether the write-ahead log of a SQLite file holds anything that counts.

    SQLite, reading without an index, would delete a log without a valid frame when it closes: under
    the hands of a process that has just opened the file, and whose commits would be gone.
    """
    try:
        with _beside(path, "-wal").open("rb") as file:
            head = file.read(_LOG_HEAD + _FRAME_HEAD)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # SQLite says what is wrong with it
    salts = head[16:24]  # a frame counts if it carries the salts of the log's head
    return len(head) == _LOG_HEAD + _FRAME_HEAD and salts == head[_LOG_HEAD + 8 : _LOG_HEAD + 16]


_LOG_HEAD, _FRAME_HEAD = 32, 24
"""The sizes in bytes of the heads of a write-ahead log and of each of its frames."""

_SINCE_THE_FIRST = {
    "top_ups": "run, number, amount",
    "memories": "run, part, round, salt, content",
    "corrections": "run, number, round, client, counts_from, amount",
}
"""Tables and columns added since the first schema; a reader of that schema sees them empty."""


def _begin_sqlite(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("bara_write", False)
    connection.connection.cursor().execute("BEGIN IMMEDIATE" if write else "BEGIN")


def _stat_fields(place: Path | str | None, *names: str) -> list[int] | None:
    """Return these `st_` fields of a file's status; None if there is no such file."""
    if not place:
        return None
    try:
        status = Path(place).stat()
    except OSError:
        return None
    return [getattr(status, f"st_{name}") for name in names]


def _generation(folder: Path) -> int:
    """Return a folder's inode generation; 0 where the file system has none.

    It differs between a folder and a later one that was given the same inode number. The ledger's
    file itself cannot be asked: closing it once more would release SQLite's locks.
    """
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # noqa: PLC0415 - not on every system

        get_version = 0x80087601  # FS_IOC_GETVERSION
        file = os.open(folder, os.O_RDONLY)
        try:
            found = fcntl.ioctl(file, get_version, bytes(struct.calcsize("l")))
        finally:
            os.close(file)
        return int(struct.unpack("l", found)[0]) & 0xFFFFFFFF
    return 0


def _words(error: Exception) -> str:
    """Return the first line of the database's own error message."""
    return str(getattr(error, "orig", error)).strip().partition("\n")[0]

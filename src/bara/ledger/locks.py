"""Locks that let only one process play a run.

The operating system, or the database server, releases a lock when its holder is gone.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger.store import Store

try:
    import fcntl
except ModuleNotFoundError:
    raise LedgerError(
        "this system cannot lock a run's folder (Python has no fcntl here), "
        "so a run could be paid twice; runs need Linux or macOS, or WSL on Windows"
    ) from None


@contextlib.contextmanager
def only_process(folder: Path, name: str = ".lock", what: str | None = None) -> Iterator[None]:
    """Hold the lock of a run's folder; refuse if another process holds it.

    The lock of a process that died is free, so no lock is ever stale.

    Args:
        folder: The folder of the lock file.
        name: The name of the lock file.
        what: How the error message names the run; None for the run in the folder.
    """
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        file = os.fdopen(os.open(folder / name, flags, 0o666), "a+")  # no link: it is emptied
    except OSError as error:
        raise LedgerError(f"cannot write to {folder}: {error.strerror}") from error
    with file:
        try:
            _take(file)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another"
            run = what or f"the run in {folder}"
            raise LedgerError(
                f"{run} is being run by process {holder}; stop it, or wait until it ends"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _take(file: IO[str]) -> None:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        time.sleep(0.1)  # `is_held` in another process takes the lock for a moment
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(folder: Path, name: str = ".lock") -> bool | None:
    """Return whether a process holds the lock of a run's folder; None if there is no lock to read.

    The holder itself must not ask: the system never refuses a lock to its own holder, and releases
    it when the holder closes the file.
    """
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would block
        with os.fdopen(descriptor) as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


@contextlib.contextmanager
def only_session(store: Store, run: str) -> Iterator[None]:
    """On PostgreSQL, hold a run's lock on the server, against processes on other machines too."""
    if store.engine.dialect.name != "postgresql":
        yield
        return
    with store.engine.connect() as connection:
        if not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(_number(run)))):
            raise LedgerError(
                f"run {run!r} in {store.place} is being run by another process; "
                "stop it, or wait until it ends"
            )
        connection.commit()
        try:
            yield
        finally:
            with contextlib.suppress(sa.exc.DBAPIError):  # a server that is gone holds no lock
                connection.scalar(sa.select(sa.func.pg_advisory_unlock(_number(run))))
            connection.invalidate()  # it may still hold the lock, so it must not go to the pool


_MINE: set[Path] = set()
"""The lock files that this process holds."""


@contextlib.contextmanager
def only_player(store: Store, run: str) -> Iterator[None]:
    """Hold a run that has no folder, by the server or by a lock file beside the SQLite database."""
    path = _beside(store, run)
    if path is None:
        with only_session(store, run):
            yield
        return
    if path in _MINE:  # the system never refuses a lock to its own holder
        raise LedgerError(f"run {run!r} is already being run by this process; let it end first")
    with only_process(path.parent, path.name, f"run {run!r}"):
        _MINE.add(path)
        try:
            yield
        finally:
            _MINE.discard(path)


def is_played(store: Store, run: str) -> bool | None:
    """Return whether a process plays a run that has no folder; None if that is unknown."""
    path = _beside(store, run)
    if path is not None:
        return is_held(path.parent, path.name)
    high, low = divmod(_number(run) % 2**64, 2**32)
    query = sa.text(
        "SELECT EXISTS (SELECT 1 FROM pg_locks "
        "WHERE locktype = 'advisory' AND classid = :high AND objid = :low)"
    )
    with store.read() as connection:
        return bool(connection.scalar(query, {"high": high, "low": low}))


def _beside(store: Store, run: str) -> Path | None:
    """Return the path of a run's lock file beside its SQLite database; None on a server."""
    if store.engine.dialect.name != "sqlite":
        return None
    path = Path(store.place or "").absolute()
    digest = hashlib.sha256(run.encode()).hexdigest()[:16]
    return path.with_name(f".{path.name}.{digest}.lock")


def _number(run: str) -> int:
    """Return the number of a run's advisory lock on PostgreSQL, a signed 64-bit integer."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:8], signed=True)

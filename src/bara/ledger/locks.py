"""One process per run: a lock that the operating system, or the database server, lets go of when its holder is gone."""

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
        "this system cannot lock a run's folder (Python has no fcntl here), so a run could be paid twice; runs need "
        "Linux or macOS, or WSL on Windows"
    ) from None


@contextlib.contextmanager
def only_process(folder: Path, name: str = ".lock", what: str | None = None) -> Iterator[None]:
    """Hold the lock of a run's folder, or refuse. A dead process holds nothing, so no lock is ever stale."""
    try:
        file = (folder / name).open("a+")
    except OSError as error:
        raise LedgerError(f"cannot write to {folder}: {error.strerror}") from error
    with file:
        try:
            _take(file)
        except OSError as error:
            file.seek(0)
            raise LedgerError(
                f"{what or f'the run in {folder}'} is being run by process {file.read().strip() or 'another'}; stop "
                "it, or wait until it ends"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _take(file: IO[str]) -> None:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        time.sleep(0.1)  # who asks `is_held` has it for an instant
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(folder: Path, name: str = ".lock") -> bool | None:
    """Whether a process has the run of that folder; None where no lock was ever taken, or none can be looked at.

    Only other processes may ask: the system never refuses a lock to its own holder, and the holder
    loses it when it closes the file.
    """
    try:
        with open(os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK)) as file:  # noqa: PTH123 - no pipe is waited for
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


@contextlib.contextmanager
def only_session(store: Store, run: str) -> Iterator[None]:
    """On PostgreSQL, hold the run against processes on other machines and in other folders, too."""
    if store.engine.dialect.name != "postgresql":
        yield
        return
    with store.engine.connect() as connection:
        if not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(_number(run)))):
            raise LedgerError(
                f"run {run!r} in {store.place} is being run by another process; stop it, or wait until it ends"
            )
        connection.commit()
        try:
            yield
        finally:
            with contextlib.suppress(sa.exc.DBAPIError):  # a server that is gone holds nothing
                connection.scalar(sa.select(sa.func.pg_advisory_unlock(_number(run))))
            connection.invalidate()  # where that failed, the lock is still the connection's: not back into the pool


_MINE: set[Path] = set()
"""Files by which this process holds runs."""


@contextlib.contextmanager
def only_player(store: Store, run: str) -> Iterator[None]:
    """Hold a run that has no folder: by the server, or by a file beside its SQLite database."""
    path = _beside(store, run)
    if path is None:
        with only_session(store, run):
            yield
        return
    if path in _MINE:  # the system refuses no lock to the process that has it
        raise LedgerError(f"run {run!r} is already being run by this process; let it end first")
    with only_process(path.parent, path.name, f"run {run!r}"):
        _MINE.add(path)
        try:
            yield
        finally:
            _MINE.discard(path)


def is_played(store: Store, run: str) -> bool | None:
    """Whether a process plays a run that has no folder; None where that cannot be known."""
    path = _beside(store, run)
    if path is not None:
        return is_held(path.parent, path.name)
    high, low = divmod(_number(run) % 2**64, 2**32)
    query = sa.text(
        "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND classid = :high AND objid = :low)"
    )
    with store.read() as connection:
        return bool(connection.scalar(query, {"high": high, "low": low}))


def _beside(store: Store, run: str) -> Path | None:
    if store.engine.dialect.name != "sqlite":
        return None
    path = Path(store.place or "").absolute()
    return path.with_name(f".{path.name}.{hashlib.sha256(run.encode()).hexdigest()[:16]}.lock")


def _number(run: str) -> int:
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:8], signed=True)

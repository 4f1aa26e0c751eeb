"""One process a run: a lock that the operating system, or the database server, lets go of when its holder is gone."""

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger.store import Store


@contextlib.contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder, or refuse. A dead process holds nothing, so no lock is ever stale."""
    try:
        file = (folder / ".lock").open("a+")
    except OSError as error:
        raise LedgerError(f"cannot write to {folder}: {error.strerror}") from error
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            raise LedgerError(
                f"the run in {folder} is being run by process {file.read().strip() or 'another'}; required is that "
                "it ends first"
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


@contextlib.contextmanager
def only_session(store: Store, run: str) -> Iterator[None]:
    """On PostgreSQL, hold the run against processes on other machines and in other folders, too."""
    if store.engine.dialect.name != "postgresql":
        yield
        return
    number = int.from_bytes(hashlib.sha256(run.encode()).digest()[:8], signed=True)
    with store.engine.connect() as connection:
        if not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(number))):
            raise LedgerError(f"run {run!r} in {store.place} is being run by another process; required is that it ends")
        connection.commit()
        yield

"""Files that are there as a whole: at any moment the old one or the new one, never half of one."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from bara.errors import LedgerError


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a file to write to, which takes the place of `path` once it is whole; after an error `path` is as it was.

    Args:
        path: What to replace.
        durable: Wait until the disk has the content and the new name.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    if durable:
        _sync_folder(path.parent)


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write a text, part by part, so that at any moment there is the old file or the new one, never half of one."""
    try:
        with replacing(path) as file:
            file.writelines(part.encode() for part in parts)
    except OSError as error:
        raise LedgerError(f"cannot write {path}: {error.strerror}; the run goes on with `bara resume`") from error


def read_small(path: Path, most: int = 1 << 20) -> str:
    """The text of a plain file of at most so many bytes, as strangers' folders are read: no pipe is waited for."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes, at most {most:,} are read", str(path))
        return file.read(most).decode()


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)

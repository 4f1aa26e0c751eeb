"""Files that are there as a whole: at any moment the old one or the new one, never half of one."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from bara.errors import LedgerError

LARGEST = 1 << 28
"""Bytes of the largest file that is read at once: a result of a million rounds."""

SMALL = 1 << 20
"""Bytes of the largest that needs no more: a configuration, a receipt."""


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
    except OSError as error:
        if error.strerror:  # the name beside it is nobody's, and a write that fails names no file
            error.filename = str(path)
        raise
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
        raise LedgerError(f"cannot write {path}: {error.strerror}") from error


def read_whole(path: Path, most: int = LARGEST, *, plain: bool = True) -> str:
    """A file's text; of one without an end, like a device, no more than what nobody would have written.

    Args:
        path: Which.
        most: Bytes; more are refused.
        plain: Refuse what is no plain file, as in a stranger's folder; a pipe that the user names
            is waited for.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK * plain), "rb") as file:
        if plain and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most >> 20} MB")
    return content.decode()


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, so that a power cut takes none of them away with what is in them."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)

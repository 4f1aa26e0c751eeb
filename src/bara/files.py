"""Files that are there as a whole: at any moment the old one or the new one, never half of one."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from bara.errors import LedgerError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

LARGEST = 2**28
"""Bytes of the largest file that is read at once: a result of a million rounds."""


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
        error.filename = str(path)  # the name beside it is nobody's, and a write that fails names no file
        raise
    finally:
        beside.unlink(missing_ok=True)
    if durable:
        _sync_folder(path.parent)


def read_whole(path: "Path | Traversable") -> str:
    """A file's text; of one without an end, like a device, no more than what nobody would have written."""
    with path.open("rb") as file:
        content: bytes = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it has more than {LARGEST >> 20} MB")
    return content.decode()


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, so that a power cut takes none of them away with what is in them."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write a text, part by part, so that at any moment there is the old file or the new one, never half of one."""
    try:
        with replacing(path) as file:
            file.writelines(part.encode() for part in parts)
    except OSError as error:
        raise LedgerError(f"cannot write {path}: {error.strerror}") from error


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

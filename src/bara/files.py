"""Files that are replaced atomically: at any moment there is the old file or the new one."""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from bara.errors import ConfigError, LedgerError

LARGEST = 1 << 28
"""The size in bytes of the largest file that is read at once: a result of a million rounds."""

SMALL = 1 << 20
"""The size in bytes that suffices for small files: a configuration, a receipt."""


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` once it is written; after an error `path` is unchanged.

    A link at `path` is replaced, not followed.

    Args:
        path: The file to make or replace.
        durable: Whether to wait until the content and the new name are on the disk.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.unlink(missing_ok=True)
        with beside.open("xb") as file:  # a new file: never one that a link there leads to
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        if error.strerror:
            # The user knows `path`, not the temporary file; a failed write names no file at all.
            error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)
    if durable:
        _sync_folder(path.parent)


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write a text so that at any moment there is the old file or the new one, never half of one.

    Args:
        path: The file to make or replace.
        parts: The text, in pieces.
    """
    try:
        with replacing(path) as file:
            file.writelines(part.encode() for part in parts)
    except OSError as error:
        raise LedgerError(f"cannot write {path}: {error.strerror}") from error


def read_whole(path: Path, most: int = LARGEST, *, plain: bool = True) -> str:
    """Return a file's text; refuse files that are too large, such as devices that never end.

    Args:
        path: The file to read.
        most: The largest size that is accepted, in bytes.
        plain: Whether to refuse everything but regular files, as for a folder from a stranger;
            otherwise the file may be a pipe that the user named, whose writer is waited for.
    """
    flags = os.O_RDONLY
    if plain:
        flags |= os.O_NONBLOCK  # opening a pipe without a writer must not hang
    with os.fdopen(os.open(path, flags), "rb") as file:
        if plain and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most >> 20} MB")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 from byte {error.start} on; save it as UTF-8") from None


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents so that they survive a power cut."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        _sync_folder(path.parent)


def make_own_folder(path: Path) -> None:
    """Make a folder to write to; refuse a link in its place, which leads the files elsewhere."""
    if path.is_symlink():
        raise ConfigError(
            f"{str(path)!r} is a link, and nothing is written through it; remove it, or name "
            "another folder"
        )
    make_folder(path)


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)

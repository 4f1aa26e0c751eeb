"""Files that are there as a whole: at any moment the old one or the new one, never half of one."""

import contextlib
import os
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

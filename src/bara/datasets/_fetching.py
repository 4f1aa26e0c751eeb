"""Downloads of published datasets, checked by their checksums; a repeated one goes on."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bara.datasets._catalogue import Remote, entry
from bara.datasets._places import home
from bara.errors import DatasetError, MissingExtraError

CONNECT_AND_READ_SECONDS = (10, 60)
CHUNK = 2**16

Progress = Callable[[str, int, int], None]
"""A function that is told (file, bytes so far, bytes in all) while a download goes on."""


@dataclass(frozen=True)
class Fetched:
    """The outcome of a download.

    Attributes:
        name: The dataset.
        folder: The folder of its files; None for an embedded dataset, which has none.
        downloaded: The files that were downloaded.
        kept: The files that were there already, with the right checksum.
    """

    name: str
    folder: Path | None
    downloaded: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def fetch(
    name: str,
    path: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
    base_urls: Sequence[str] | None = None,
) -> Fetched:
    """Download a dataset's published files into ``<folder>/<name>/``.

    A file that is there and right is not downloaded again. One that arrives cut short or altered is
    thrown away and the next mirror tried; a file gets its name only when it is whole.

    Args:
        name: A dataset of the catalogue.
        path: The folder; if not given, ``$BARA_DATA``, or else the user's cache.
        progress: A function that is told (file, bytes so far, bytes in all) along the way.
        base_urls: Addresses to download from instead of the published mirrors.

    Raises:
        DatasetError: If no mirror has a file; the message names the file and says what each mirror
            answered.
        UnknownNameError: If there is no such dataset; the message suggests the nearest.
        MissingExtraError: If pooch is not installed.
    """
    wanted = entry(name)
    if wanted.embedded:
        return Fetched(name, None)
    pooch = _pooch()
    folder = home(path) / name
    show = progress or (lambda _file, _done, _total: None)
    mirrors = tuple(base_urls or wanted.mirrors)
    downloaded = []
    already_there = []
    for remote in wanted.remotes:
        if _is_right(pooch, folder, remote):
            already_there.append(remote.file)
        else:
            _download(pooch, folder, remote, mirrors, show)
            downloaded.append(remote.file)
    return Fetched(name, folder, tuple(downloaded), tuple(already_there))


def _pooch() -> Any:
    try:
        import pooch  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise MissingExtraError("downloading needs pooch: pip install 'bara-fl[sim]'") from error
    pooch.get_logger().setLevel(logging.WARNING)  # we show the progress ourselves
    return pooch


def _is_right(pooch: Any, folder: Path, remote: Remote) -> bool:
    file = folder / remote.file
    return file.is_file() and bool(pooch.file_hash(str(file)) == remote.sha256)


def _download(
    pooch: Any, folder: Path, remote: Remote, mirrors: Sequence[str], show: Progress
) -> None:
    """Download one file from the first mirror that sends it whole."""
    failures = []
    for mirror in mirrors:
        try:
            return _retrieve(pooch, folder, remote, mirror, show)
        except (OSError, ValueError) as error:  # what requests and pooch raise
            failures.append(f"{mirror}: {_reason(error)}")
    raise DatasetError(f"cannot fetch {remote.file} to {folder}: " + "; ".join(failures))


def _retrieve(pooch: Any, folder: Path, remote: Remote, mirror: str, show: Progress) -> None:
    meter = Meter(remote.file, remote.size, show)
    downloader = pooch.HTTPDownloader(
        progressbar=meter, chunk_size=CHUNK, timeout=CONNECT_AND_READ_SECONDS
    )
    url = f"{mirror.rstrip('/')}/{remote.file}"
    pooch.retrieve(
        url, f"sha256:{remote.sha256}", fname=remote.file, path=folder, downloader=downloader
    )
    # The data is public, but pooch downloads to a temporary file that only its owner may read.
    (folder / remote.file).chmod(0o644)


def _reason(error: BaseException) -> str:
    """Return the root cause of a failed download, without the libraries in between."""
    if isinstance(error, ValueError) and "hash" in str(error):
        return "what it sent is not the published file (cut short or altered); it was thrown away"
    cause = error.__cause__ or error.__context__
    while cause is not None:
        error = cause
        cause = error.__cause__ or error.__context__
    return f"{type(error).__name__}: {error}"


@dataclass
class Meter:
    """A progress bar as pooch wants one, which tells a function instead of drawing.

    Attributes:
        file: The file that is downloaded.
        size: How many bytes the file has.
        show: The function that is told.
        total: The size that the server announces; set by pooch, not used.
        done: How many bytes have come.
        told: What the function was told last; it is not told the same number twice.
    """

    file: str
    size: int
    show: Progress
    total: int = 0
    done: int = 0
    told: int = -1

    def update(self, came: int) -> None:
        """Count bytes that came; pooch counts whole chunks, so the last one may be less."""
        self.done = min(self.done + came, self.size)
        if self.done != self.told:
            self.told = self.done
            self.show(self.file, self.done, self.size)

    def reset(self) -> None:
        """Count from 0 again, as pooch asks before it reports the whole file at the end."""
        self.done = 0

    def close(self) -> None:
        """Do nothing: there is nothing to tidy up."""

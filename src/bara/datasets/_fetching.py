"""``fetch``: downloads a dataset from those who publish it, with checksums; run again, it goes on where it stopped."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bara.datasets._catalogue import Remote, entry
from bara.datasets._loading import home
from bara.errors import DatasetError, MissingExtraError

CONNECT_AND_READ_SECONDS = (10, 60)
CHUNK = 2**16

Progress = Callable[[str, int, int], None]
"""Told (file, bytes so far, bytes in all) as a download goes on."""


@dataclass(frozen=True)
class Fetched:
    """What a download did: which files came, which were there already.

    Attributes:
        name: The dataset.
        folder: Where its files are; None when it is embedded and has none.
        downloaded: The files that came.
        kept: The files that were there and right.
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
    """Downloads a dataset's published files into ``<folder>/<name>/``.

    A file that is there and right is not downloaded again. One that arrives cut short or altered is
    thrown away and the next mirror tried; a file gets its name only when it is whole.

    Args:
        name: Which dataset of the catalogue.
        path: The folder; if not given, ``$BARA_DATA``, or else the user's cache.
        progress: Told (file, bytes so far, bytes in all) as the download goes on.
        base_urls: Addresses to download from instead of the published mirrors.

    Raises:
        DatasetError: If a file could not be had from any mirror; names the file and says what each
            answered.
        UnknownNameError: If there is no such dataset; suggests the nearest.
        MissingExtraError: If pooch is not installed.
    """
    wanted = entry(name)
    if wanted.embedded:
        return Fetched(name, None)
    pooch, folder = _pooch(), home(path) / name
    show = progress or (lambda _file, _done, _total: None)
    mirrors = tuple(base_urls or wanted.mirrors)
    downloaded, kept = [], []
    for remote in wanted.remotes:
        if _is_right(pooch, folder, remote):
            kept.append(remote.file)
        else:
            _download(pooch, folder, remote, mirrors, show)
            downloaded.append(remote.file)
    return Fetched(name, folder, tuple(downloaded), tuple(kept))


def _pooch() -> Any:
    try:
        import pooch  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise MissingExtraError("downloading needs pooch: pip install 'bara-fl[sim]'") from error
    pooch.get_logger().setLevel(logging.WARNING)  # progress is shown by us
    return pooch


def _is_right(pooch: Any, folder: Path, remote: Remote) -> bool:
    file = folder / remote.file
    return file.is_file() and bool(pooch.file_hash(str(file)) == remote.sha256)


def _download(
    pooch: Any, folder: Path, remote: Remote, mirrors: Sequence[str], show: Progress
) -> None:
    """Tries one mirror after the other."""
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
    (folder / remote.file).chmod(
        0o644
    )  # public data; the temporary file it was is its owner's alone


def _reason(error: BaseException) -> str:
    """What went wrong in the end, without the libraries it passed through."""
    if isinstance(error, ValueError) and "hash" in str(error):
        return "what it sent is not the published file (cut short or altered); it was thrown away"
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return f"{type(error).__name__}: {error}"


@dataclass
class Meter:
    """Counts what pooch reports, in the form pooch wants its progress bars, and tells a function.

    Attributes:
        file: What is downloaded.
        size: How many bytes it has.
        show: The function that is told.
        total: What the server says it has; set by pooch, not used.
        done: How many bytes came.
        told: What the function was told last; it is not told the same twice.
    """

    file: str
    size: int
    show: Progress
    total: int = 0
    done: int = 0
    told: int = -1

    def update(self, came: int) -> None:
        """Counts bytes that came; pooch counts whole chunks, so the last one may be less."""
        self.done = min(self.done + came, self.size)
        if self.done != self.told:
            self.told = self.done
            self.show(self.file, self.done, self.size)

    def reset(self) -> None:
        """Starts the count again; pooch does so before it reports the whole at the end."""
        self.done = 0

    def close(self) -> None:
        """Nothing to tidy up."""

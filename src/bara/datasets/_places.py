"""The folders that are searched for datasets, in order."""

import os
from dataclasses import dataclass
from pathlib import Path

from bara.errors import DatasetError, MissingExtraError

VARIABLE = "BARA_DATA"
"""The environment variable that names a folder of datasets."""


@dataclass(frozen=True)
class SearchedFolder:
    """A folder that is searched for datasets, and the setting that names it."""

    folder: Path
    origin: str

    def __str__(self) -> str:
        """Return the setting and the folder, for messages."""
        return f"{self.origin} ({self.folder})"


def places(path: str | os.PathLike[str] | None = None) -> tuple[SearchedFolder, ...]:
    """Return every folder that is searched, in order; a given path comes first."""
    found = []
    if path:
        found.append(SearchedFolder(Path(path).expanduser(), "data.path"))
    variable = os.environ.get(VARIABLE)
    if variable:
        found.append(SearchedFolder(Path(variable).expanduser(), f"${VARIABLE}"))
    return (*found, *_cache())


def home(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that downloads go to: the first of the places."""
    found = places(path)
    if not found:
        raise MissingExtraError(
            f"there is no folder for datasets: set data.path or ${VARIABLE}, "
            "or pip install 'bara-fl[sim]' to use your cache"
        )
    return found[0].folder


def own_places(path: str | os.PathLike[str] | None = None) -> tuple[SearchedFolder, ...]:
    """Return every folder that is searched for a user's own files: the current one, too."""
    given = places(path)[:1] if path else ()
    return (*given, SearchedFolder(Path(), "here"), *places())


def whole_path(name: str, path: str | os.PathLike[str] | None = None) -> Path:
    """Return the absolute path of a table's file in the first folder that has it."""
    searched = own_places(path)
    files = [(one.folder / Path(name).expanduser()).absolute() for one in searched]
    for file in files:
        if file.exists():
            return file
    folders = ", ".join(map(str, searched))
    raise DatasetError(f"there is no table {str(files[0])!r} (looked in {folders})")


def _cache() -> list[SearchedFolder]:
    """Return the user's cache; without the extra that fills the cache, nothing."""
    try:
        from platformdirs import user_cache_path  # noqa: PLC0415  (an extra)
    except ImportError:
        return []
    return [SearchedFolder(user_cache_path("bara"), "the cache")]

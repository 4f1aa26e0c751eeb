"""Datasets by their names, found in the folders that are searched."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from bara.datasets._catalogue import CATALOGUE, certify, names
from bara.datasets._formats import STEMS, embedded_digits, find, npz_file, present
from bara.datasets._places import SearchedFolder, own_places, places
from bara.datasets._record import Dataset, Source, infer_classes
from bara.datasets._table_files import SiloTable, embedded_rand, find_tables, is_table
from bara.datasets._tables import Columns, load_table
from bara.errors import (
    BaraError,
    ConfigError,
    DatasetError,
    UnfitDatasetError,
    UnknownNameError,
)
from bara.plugins import Registry
from bara.text import nearest


def locate(name: str, path: str | os.PathLike[str] | None = None) -> Source:
    """Find a dataset in the first place and format that has it.

    Args:
        name: A name of the catalogue, or the name of any ``<name>.npz``; its ending is optional.
        path: A folder to look in first, or the ``.npz`` file itself.
    """
    name = name.removesuffix(".npz")
    if name in CATALOGUE and CATALOGUE[name].embedded:
        return embedded_digits()
    if path:
        single = _single(Path(path).expanduser())
        if single is not None:
            return single
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise UnknownNameError(
            f"{name!r} cannot be a dataset's name; {nearest(name.lower(), [*names()])}"
        )
    searched = places(path) if name in CATALOGUE else own_places(path)
    for place in searched:
        for source in find(place.folder, name):
            return source
    raise _missing(name, searched)


def locate_table(name: str, path: str | os.PathLike[str] | None = None) -> SiloTable:
    """Find a table of the catalogue in the first place that has it; a given path comes first."""
    if CATALOGUE[name].embedded:
        return embedded_rand()
    searched = places(path)
    for place in searched:
        for table in find_tables(place.folder, name):
            return table
    raise _missing(name, searched)


def _single(path: Path) -> Source | None:
    """Return the ``.npz`` file that a path names, or None if the path names a folder."""
    if not path.exists():
        raise UnfitDatasetError(f"data.path {path} does not exist")
    if path.is_file() and path.suffix != ".npz":
        raise UnfitDatasetError(f"data.path {path} must be a folder or an .npz file")
    return npz_file(path) if path.is_file() else None


def _missing(name: str, searched: tuple[SearchedFolder, ...]) -> UnknownNameError | DatasetError:
    where = f"looked in {', '.join(map(str, searched)) or 'no folder: none is named'}"
    if name not in CATALOGUE:
        return UnknownNameError(
            f"there is no dataset {name!r} and no {name}.npz ({where}); "
            f"{nearest(name.lower(), [*names()])}"
        )
    return DatasetError(
        f"{name} was not found. Get it with: bara data fetch {name} "
        f"({where}{_incomplete(name, searched)})"
    )


def _incomplete(name: str, searched: tuple[SearchedFolder, ...]) -> str:
    """Return the end of a message: which files are lacking in a folder that holds the others."""
    torchvision = CATALOGUE[name].torchvision
    if not torchvision:
        return ""
    for place in searched:
        for subfolder in (name, f"{torchvision}/raw", ""):
            folder = place.folder / subfolder
            there = present(folder)
            if 0 < len(there) < len(STEMS):
                lacking = [stem for array, stem in STEMS.items() if array not in there]
                return f"; {folder} lacks {', '.join(lacking)}"
    return ""


REGISTRY: Registry[Dataset] = Registry("dataset", {})
"""The functions that installed packages offer in the entry-point group ``bara.datasets``."""


def load(
    name: str = "digits",
    path: str | os.PathLike[str] | None = None,
    *,
    verify: bool = True,
    columns: Columns | None = None,
) -> Dataset:
    """Load a dataset by its name.

    Args:
        name: ``digits`` (inside scikit-learn, works offline), ``mnist``, ``fashion-mnist``,
            ``cifar10``, ``cifar100``; with real silos ``rand-hie`` and ``heart-disease``; the name
            of any ``<name>.npz`` with ``x_train``, ``y_train``, ``x_test``, ``y_test``; the file of
            a table (CSV, Parquet); or the import path ``pkg.module:function`` or the entry point of
            a function that returns a ``Dataset``.
        path: A folder to look in before ``$BARA_DATA`` and the user's cache, and for your own files
            before the current folder; or an ``.npz`` file itself.
        verify: True if a dataset of the catalogue must be, byte for byte, the published one.
        columns: The roles of a table's columns.

    Raises:
        DatasetError: If the dataset is missing (the message says which command gets it), damaged or
            malformed.
        UnknownNameError: If nothing is known by that name.
        MissingExtraError: If the dataset needs a package that is not installed.

    >>> digits = load("digits")
    >>> digits.x_train.shape, digits.x_test.shape, digits.classes
    ((1400, 8, 8), (397, 8, 8), 10)
    """
    name = name.removesuffix(".npz")
    if is_table(name) or (name in CATALOGUE and CATALOGUE[name].table):
        found = None if is_table(name) else locate_table(name, path)
        return load_table(name, path, found, columns or Columns(), verify=verify)
    if columns not in (None, Columns()):
        raise UnfitDatasetError(
            f"data.client, target and the like are set, but {name!r} is not a table"
        )
    if name not in CATALOGUE and is_own(name):
        return load_own(name)
    source = locate(name, path)
    arrays = source.read()
    if name not in CATALOGUE:
        return Dataset(name, *arrays, classes=infer_classes(arrays))
    version = certify(name, source, arrays) if verify else ""
    return Dataset(name, *arrays, classes=CATALOGUE[name].classes, version=version)


def require(name: str, path: str | os.PathLike[str] | None = None) -> None:
    """Refuse a missing dataset as ``load`` would, without reading anything.

    A user's own tables and functions are not looked for.

    Args:
        name: The dataset.
        path: A folder to look in first, or an ``.npz`` file itself.

    Raises:
        DatasetError: If the dataset is missing; the message says which command gets it.
        UnknownNameError: If nothing is known by that name.
        MissingExtraError: If the dataset needs a package that is not installed.
    """
    if name in CATALOGUE and CATALOGUE[name].table:
        locate_table(name, path)
    elif not is_table(name) and (name in CATALOGUE or not is_own(name)):
        locate(name, path)


def unvouched(
    name: str, path: str | os.PathLike[str] | None = None, *, verify: bool = True
) -> list[Path]:
    """Return the files of a dataset for which no published checksum vouches.

    None where the dataset is a table, whose digest stands in the configuration of a run, or comes
    from a function, or is missing.

    Args:
        name: The dataset.
        path: A folder to look in first, or an ``.npz`` file itself.
        verify: True if a dataset of the catalogue must be the published one.
    """
    name = name.removesuffix(".npz")
    if is_table(name) or (name in CATALOGUE and (verify or CATALOGUE[name].table)):
        return []
    if name not in CATALOGUE and is_own(name):
        return []
    try:
        source = locate(name, path)
    except BaraError:
        return []
    files = list(source.files.values()) or [source.path]
    return [file for file in files if file.is_file()]


def is_own(name: str) -> bool:
    """Return True if a name is a function's: an import path, or offered by an installed package."""
    return ":" in name or name in REGISTRY.names()


def load_own(name: str) -> Dataset:
    """Call the function of that name and check that it returns a dataset."""
    function = REGISTRY.factory(name)
    if not callable(function):
        raise ConfigError(f"dataset {name!r} is a {type(function).__name__}; it must be a function")
    made = _call(name, function)
    if not isinstance(made, Dataset):
        raise DatasetError(
            f"{name} returned a {type(made).__name__}; it must return a bara.datasets.Dataset"
        )
    return made


def _call(name: str, function: Callable[..., object]) -> object:
    try:
        return function()
    except BaraError:
        raise
    except Exception as error:
        raise DatasetError(
            f"dataset {name!r} failed with {type(error).__name__}: {error}"
        ) from error

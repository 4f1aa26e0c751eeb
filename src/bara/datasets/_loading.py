"""``load``: a dataset by its name, wherever and in whatever form it is."""

import os
from collections.abc import Callable

from bara.datasets._catalogue import CATALOGUE
from bara.datasets._checksums import certify
from bara.datasets._locating import locate
from bara.datasets._record import Dataset, infer_classes
from bara.errors import BaraError, ConfigError, DatasetError
from bara.plugins import Registry

REGISTRY: Registry[Dataset] = Registry("dataset", {})
"""The functions that installed packages offer in the entry-point group ``bara.datasets``."""


def load(name: str = "digits", path: str | os.PathLike[str] | None = None, *, verify: bool = True) -> Dataset:
    """Loads a dataset by its name.

    Args:
        name: ``digits`` (inside scikit-learn, works offline), ``mnist``, ``fashion-mnist``, ``cifar10``, ``cifar100``;
            the name of any ``<name>.npz`` with ``x_train``, ``y_train``, ``x_test``, ``y_test``; or the import path
            ``pkg.module:function`` or the entry point of a function that returns a ``Dataset``.
        path: A folder to look in before ``$BARA_DATA`` and the user's cache, or an ``.npz`` file itself.
        verify: Whether a dataset of the catalogue must be, byte for byte, the published one.

    Raises:
        DatasetError: If it is missing (the message says which command gets it), damaged or malformed.
        UnknownNameError: If nothing is known by that name.
        MissingExtraError: If it needs a package that is not installed.

    >>> digits = load("digits")
    >>> digits.x_train.shape, digits.x_test.shape, digits.classes
    ((1400, 8, 8), (397, 8, 8), 10)
    """
    if name not in CATALOGUE and is_own(name):
        return load_own(name)
    source = locate(name, path)
    arrays = source.read()
    if name not in CATALOGUE:
        return Dataset(name, *arrays, classes=infer_classes(arrays))
    version = certify(name, source, arrays) if verify else ""
    return Dataset(name, *arrays, classes=CATALOGUE[name].classes, version=version)


def is_own(name: str) -> bool:
    """Whether a name stands for a function: it is an import path, or an installed package offers it."""
    return ":" in name or name in REGISTRY.names()


def load_own(name: str) -> Dataset:
    """Calls the function of that name and checks that a dataset comes back.

    Raises:
        ConfigError: If there is no such module or function.
        DatasetError: If the function fails, or returns something else.
    """
    function = REGISTRY.factory(name)
    if not callable(function):
        raise ConfigError(f"dataset {name!r} is a {type(function).__name__}; it must be a function")
    made = _call(name, function)
    if not isinstance(made, Dataset):
        raise DatasetError(f"{name} returned a {type(made).__name__}; it must return a bara.datasets.Dataset")
    return made


def _call(name: str, function: Callable[..., object]) -> object:
    try:
        return function()
    except BaraError:
        raise
    except Exception as error:
        raise DatasetError(f"dataset {name!r} failed with {type(error).__name__}: {error}") from error

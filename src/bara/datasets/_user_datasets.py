"""A dataset of the user's own: a function that returns it, named by its import path or by an entry point."""

from collections.abc import Callable

from bara.datasets._record import Dataset
from bara.errors import BaraError, ConfigError, DatasetError
from bara.plugins import Registry

REGISTRY: Registry[Dataset] = Registry("dataset", {})
"""The functions that installed packages offer in the entry-point group ``bara.datasets``."""


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

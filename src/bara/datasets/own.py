"""A dataset of the user's own, named by the import path of a function that returns it."""

from importlib import import_module
from typing import Any

from bara.datasets.catalogue import nearest
from bara.datasets.record import Dataset
from bara.errors import BaraError, ConfigError, DatasetError, UnknownNameError


def load_own(name: str) -> Dataset:
    """Calls ``pkg.module:function`` and checks that a dataset comes back.

    Raises:
        ConfigError: If there is no such module or function.
        DatasetError: If the function fails, or returns something else.
    """
    made = _call(name, _function(name))
    if not isinstance(made, Dataset):
        raise DatasetError(f"{name} returned a {type(made).__name__}; it must return a bara.datasets.Dataset")
    return made


def _function(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    try:
        module = import_module(module_name)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"dataset {name!r}: cannot import {module_name!r}: {error}") from error
    if not callable(found := getattr(module, attribute, None)):
        functions = [
            word for word in vars(module) if callable(vars(module)[word]) and not word.startswith("_")
        ]
        raise UnknownNameError(f"{module_name} has no function {attribute!r}{nearest(attribute, functions)}")
    return found


def _call(name: str, function: Any) -> object:
    try:
        return function()
    except BaraError:
        raise
    except Exception as error:
        raise DatasetError(f"dataset {name!r} failed with {type(error).__name__}: {error}") from error

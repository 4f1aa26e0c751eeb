"""Public names that are imported when they are asked for, so that a package is light until it is used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazily(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__` (PEP 562); its modules are found, too.

    Args:
        package: Its name.
        modules: The public names, by the module of the package that has them.
    """
    places = {name: module for module, names in modules.items() for name in names}

    def find(name: str) -> Any:
        if name in places:
            return getattr(import_module(f"{package}.{places[name]}"), name)
        if not name.startswith("_") and find_spec(f"{package}.{name}"):
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted(places)

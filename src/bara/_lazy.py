"""Lazy imports: a package's public names are imported on first use, so that starting is fast."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazily(
    package: str, places: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a `__getattr__` and a `__dir__` for a package that import its names lazily (PEP 562).

    Args:
        package: The package's name.
        places: For each public name, the submodule that defines it.
    """

    def find(name: str) -> Any:
        if name in places:
            return getattr(import_module(f"{package}.{places[name]}"), name)
        is_public = not name.startswith("_")
        if is_public and find_spec(f"{package}.{name}"):  # a submodule
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted(places)

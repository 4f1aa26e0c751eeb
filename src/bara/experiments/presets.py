"""Presets: the paper's experiments as configurations by name, each a TOML file of its own beside this module."""

from importlib.resources import files
from importlib.resources.abc import Traversable

_FOLDER = files("bara.experiments").joinpath("presets")
_SUFFIX = ".toml"


def names() -> list[str]:
    """Every preset there is."""
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in _FOLDER.iterdir() if entry.name.endswith(_SUFFIX))


def preset(name: str) -> Traversable | None:
    """The file of a preset; None where there is none of that name.

    >>> preset("figures-digits").name
    'figures-digits.toml'
    """
    return _FOLDER.joinpath(name + _SUFFIX) if name in names() else None

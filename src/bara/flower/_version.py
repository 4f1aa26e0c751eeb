"""Which Flower releases this was tested with; another is refused when `bara.flower` is imported."""

from importlib.metadata import PackageNotFoundError, version

from bara.errors import MissingExtraError

SUPPORTED = ("1.41",)
"""The Flower releases this was tested with."""


def check_version(found: str | None) -> None:
    """Refuse a Flower whose messages and grids may behave otherwise.

    >>> check_version("1.12.0")
    Traceback (most recent call last):
    ...
    bara.errors.MissingExtraError: Flower 1.12.0 is installed; supported is 1.41: pip install 'bara-fl[flower]'
    """
    if found is None or ".".join(found.split(".")[:2]) not in SUPPORTED:
        there = "Flower is not installed" if found is None else f"Flower {found} is installed"
        raise MissingExtraError(f"{there}; supported is {', '.join(SUPPORTED)}: pip install 'bara-fl[flower]'")


def _installed() -> str | None:
    try:
        return version("flwr")
    except PackageNotFoundError:
        return None


check_version(_installed())

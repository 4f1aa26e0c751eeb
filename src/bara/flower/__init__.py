"""bara in a Flower app: `start` or `Silos` for the server, `answer_bids` for the clients."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from bara._lazy import lazily
from bara.errors import MissingExtraError

if TYPE_CHECKING:
    from bara.flower._bid_messages import Bid
    from bara.flower._bidders import (
        answer_bids,
        drawn,
        fixed,
        from_environment,
        from_file,
        per_sample,
    )
    from bara.flower._server import start
    from bara.flower._silos import Silos

__all__ = [
    "Bid",
    "Silos",
    "answer_bids",
    "drawn",
    "fixed",
    "from_environment",
    "from_file",
    "per_sample",
    "start",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        **dict.fromkeys(__all__, "_bidders"),
        "Bid": "_bid_messages",
        "Silos": "_silos",
        "start": "_server",
    },
)

SUPPORTED = ("1.38.0", "1.39.0", "1.40.0", "1.41.0", "1.42.0")
"""The Flower releases that bara is tested with, oldest first (`make test-flower-versions`)."""


def check_version(found: str | None) -> None:
    """Refuse a missing Flower, or a release whose messages and grids may behave differently.

    Args:
        found: The installed release; None if Flower is not installed.

    >>> check_version("1.9.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    bara.errors.MissingExtraError: Flower 1.9.0 is installed; bara works with 1.38 to 1.42: ...
    """
    supported = list(map(_minor, SUPPORTED))
    if found is None:
        problem = "Flower is not installed"
    elif _minor(found) not in supported:
        problem = f"Flower {found} is installed"
    else:
        return
    works = f"bara works with {supported[0]} to {supported[-1]}"
    raise MissingExtraError(f"{problem}; {works}: pip install 'bara-fl[flower]'")


def _minor(release: str) -> str:
    """Return the first two numbers of a release: `1.42` for `1.42.0`."""
    return ".".join(release.split(".")[:2])


def _installed() -> str | None:
    try:
        return version("flwr")
    except PackageNotFoundError:
        return None


check_version(_installed())

"""bara in a Flower app: `start` in its server_app.py, `answer_bids` and a bidder in its client_app.py."""

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

__all__ = [
    "Bid",
    "answer_bids",
    "drawn",
    "fixed",
    "from_environment",
    "from_file",
    "per_sample",
    "start",
]

__getattr__, __dir__ = lazily(
    __name__, {**dict.fromkeys(__all__, "_bidders"), "Bid": "_bid_messages", "start": "_server"}
)

SUPPORTED = ("1.38.0", "1.39.0", "1.40.0", "1.41.0", "1.42.0")
"""The Flower releases this is tested with, the oldest first (`make test-flower-versions`)."""


def check_version(found: str | None) -> None:
    """Refuse a Flower whose messages and grids may behave otherwise.

    >>> check_version("1.9.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    bara.errors.MissingExtraError: Flower 1.9.0 is installed; bara works with 1.38 to 1.42: ...
    """
    minors = [release.rpartition(".")[0] for release in SUPPORTED]
    if found is None or ".".join(found.split(".")[:2]) not in minors:
        there = "Flower is not installed" if found is None else f"Flower {found} is installed"
        works = f"bara works with {minors[0]} to {minors[-1]}"
        raise MissingExtraError(f"{there}; {works}: pip install 'bara-fl[flower]'")


def _installed() -> str | None:
    try:
        return version("flwr")
    except PackageNotFoundError:
        return None


check_version(_installed())

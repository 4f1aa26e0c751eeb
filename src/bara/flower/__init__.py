"""bara in a Flower app: `start` in its server_app.py, `answer_bids` and a bidder in its client_app.py."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from bara._lazy import lazily
from bara.errors import MissingExtraError

if TYPE_CHECKING:
    from bara.flower._bid_messages import Bid
    from bara.flower._bidders import answer_bids, drawn, fixed, from_environment, from_file, per_sample
    from bara.flower._server import start

__all__ = ["Bid", "answer_bids", "drawn", "fixed", "from_environment", "from_file", "per_sample", "start"]

__getattr__, __dir__ = lazily(
    __name__, {**dict.fromkeys(__all__, "_bidders"), "Bid": "_bid_messages", "start": "_server"}
)

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

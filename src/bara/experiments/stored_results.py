"""What a run came to, from its books alone: of runs that left no result, and of those that have not ended."""

from typing import Any

from bara.errors import ConfigError
from bara.ledger import Books
from bara.reports.result import Result, Summary
from bara.runs.config import Config

UNENDED = "it has not ended"
"""What stands for the reason why a run ended that did not."""


def result_of(books: Books) -> Result:
    """The run's result as far as it has come."""
    summary = Summary()
    for record in books.history():
        summary.tell(record)
    if not summary.has_begun:
        raise ConfigError(f"the run {books.name!r} has not begun: its books hold no round")
    return summary.result(books.ended() or UNENDED, **_identity(books))


def _identity(books: Books) -> dict[str, Any]:
    tree = books.opening.get("config") or {}
    if "allocator" not in tree:  # opened by a program that recorded no configuration
        return dict.fromkeys(("allocator", "mechanism", "dataset"), "not recorded") | {
            "seed": 0,
            "clients": 0,
        }
    return Config.parse(tree).identity()

"""bara in a Flower app: `start` in its server_app.py, `answer_bids` and a bidder in its client_app.py."""

from typing import TYPE_CHECKING, Any

from bara.federations.flower.bidders import answer_bids, drawn, fixed, from_environment, from_file, per_sample
from bara.federations.flower.sealed import Bid

if TYPE_CHECKING:
    from bara.flower.server import start

__all__ = ["Bid", "answer_bids", "drawn", "fixed", "from_environment", "from_file", "per_sample", "start"]


def __getattr__(name: str) -> Any:
    """The server's part, imported when it is asked for: clients that only bid need none of it."""
    if name == "start":
        from bara.flower.server import start  # noqa: PLC0415 - see above

        return start
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""bara in a Flower app: `start` in its server_app.py, `answer_bids` and a bidder in its client_app.py."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bara.flower import _version as _version  # refuses a Flower that was not tried

if TYPE_CHECKING:
    from bara.flower._bid_messages import Bid
    from bara.flower._bidders import answer_bids, drawn, fixed, from_environment, from_file, per_sample
    from bara.flower._server import start

__all__ = ["Bid", "answer_bids", "drawn", "fixed", "from_environment", "from_file", "per_sample", "start"]

_MODULES = {"Bid": "_bid_messages", "start": "_server"}


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: a client that only bids needs none of the server's part."""
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_MODULES.get(name, '_bidders')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""bara in a Flower app: `start` in its server_app.py, `answer_bids` and a bidder in its client_app.py."""

from typing import TYPE_CHECKING

from bara._lazy import lazily
from bara.flower import _version as _version  # refuses a Flower that was not tried

if TYPE_CHECKING:
    from bara.flower._bid_messages import Bid
    from bara.flower._bidders import answer_bids, drawn, fixed, from_environment, from_file, per_sample
    from bara.flower._server import start

__all__ = ["Bid", "answer_bids", "drawn", "fixed", "from_environment", "from_file", "per_sample", "start"]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "_bid_messages": ("Bid",),
        "_bidders": ("answer_bids", "drawn", "fixed", "from_environment", "from_file", "per_sample"),
        "_server": ("start",),
    },
)

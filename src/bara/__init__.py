"""bara decides, round by round, how much of a federation's money to spend on which participants.

The library in one breath: an `Allocator` makes an `Offer` before the bids are opened, a `Mechanism`
turns the `Bids` into a `Menu` and the offer into an `Award`, the federation trains, and both are
told the `RoundRecord`. A `Session` plays that loop and keeps its books; a `Market` is one round's
steps, without books or a federation.
"""

from typing import TYPE_CHECKING

from bara._lazy import lazily

if TYPE_CHECKING:
    from bara.allocators import ALLOCATORS
    from bara.errors import BaraError
    from bara.market import Market
    from bara.mechanisms import MECHANISMS
    from bara.protocols import Allocator, Capabilities, Federation, Mechanism, Requirements
    from bara.records import (
        Award,
        AwardedRound,
        Belief,
        Bids,
        Delivery,
        Evaluation,
        Evidence,
        Menu,
        Offer,
        Purse,
        RoundRecord,
        money,
        show_money,
    )
    from bara.reports.comparison import Comparison
    from bara.reports.forecast import Forecast
    from bara.reports.result import Result
    from bara.runs.config import Config
    from bara.runs.database import open_session
    from bara.runs.play import resume, run
    from bara.runs.session import Session
    from bara.studies.compare import compare
    from bara.studies.forecast import plan
    from bara.studies.stored import open  # noqa: A004 - bara.open

__version__ = "0.3.0"

__all__ = [
    "ALLOCATORS",
    "MECHANISMS",
    "Allocator",
    "Award",
    "AwardedRound",
    "BaraError",
    "Belief",
    "Bids",
    "Capabilities",
    "Comparison",
    "Config",
    "Delivery",
    "Evaluation",
    "Evidence",
    "Federation",
    "Forecast",
    "Market",
    "Mechanism",
    "Menu",
    "Offer",
    "Purse",
    "Requirements",
    "Result",
    "RoundRecord",
    "Session",
    "compare",
    "money",
    "open",
    "open_session",
    "plan",
    "resume",
    "run",
    "show_money",
]

_PLACES = {
    **dict.fromkeys(__all__, "records"),
    **dict.fromkeys(("resume", "run"), "runs.play"),
    "compare": "studies.compare",
    "plan": "studies.forecast",
    "open": "studies.stored",
    "Forecast": "reports.forecast",
    "Comparison": "reports.comparison",
    "Config": "runs.config",
    "Result": "reports.result",
    **dict.fromkeys(
        ("Allocator", "Capabilities", "Federation", "Mechanism", "Requirements"), "protocols"
    ),
    "ALLOCATORS": "allocators",
    "MECHANISMS": "mechanisms",
    "Market": "market",
    "Session": "runs.session",
    "BaraError": "errors",
    "open_session": "runs.database",
}
__getattr__, __dir__ = lazily(__name__, _PLACES)

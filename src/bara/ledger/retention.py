"""The retention rule `drop`: bids and menus are deleted once their round is settled.

Under `drop`, an allocator or mechanism that can save what it has learned (`Remembers`) is told
whole rounds, and its memory is stored after each. Any other is told rounds without bids and menu
from the start: if it reads them, it is refused at once, not only when the run is resumed.
"""

from dataclasses import replace
from typing import Any, Never, cast, final

from bara.errors import LedgerError
from bara.protocols import Allocator, Mechanism, Remembers
from bara.records import Bids, IntArray, RoundRecord


@final
class Dropped:
    """A placeholder for dropped bids or a dropped menu, which refuses to be read."""

    def __init__(self, what: str) -> None:
        self._what = what

    def _refuse(self, *_: Any) -> Never:
        raise LedgerError(
            f"the {self._what} of this round were dropped (ledger.retention is 'drop'); "
            "an allocator or mechanism that learns from them needs memory() and restore(), "
            "or ledger.retention = 'keep'"
        )

    __getitem__ = __len__ = __iter__ = __array__ = _refuse

    def __getattr__(self, name: str) -> Never:
        """Refuse to read any attribute; special methods are simply missing."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


DROPPED_BIDS = cast("Bids", Dropped("bids"))
DROPPED_COSTS = cast("IntArray", Dropped("menu's costs"))


def is_dropped(what: object) -> bool:
    """Return whether these bids, or this menu, were dropped."""
    return isinstance(what, Dropped)


def strip(record: RoundRecord) -> RoundRecord:
    """Return the round with its bids and its menu dropped."""
    stripped = replace(record.awarded, bids=DROPPED_BIDS, costs=DROPPED_COSTS, left_out=None)
    return replace(record, awarded=stripped)


@final
class Redacted:
    """An allocator or mechanism under `drop`, which sees bids and menus only if it `Remembers`."""

    def __init__(self, inner: Allocator | Mechanism) -> None:
        self.inner = inner
        for name in ("ask", "belief", "claims", "menu"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    def tell(self, record: RoundRecord) -> None:
        """Tell the allocator or mechanism about a round, stripped unless it `Remembers`."""
        if not isinstance(self.inner, Remembers):
            record = strip(record)
        self.inner.tell(record)

"""What stays of a round when bids and menus are dropped after settlement, and who may learn from what goes.

Under `drop`, an allocator or mechanism that can say what it has learned from bids and menus
(`Remembers`) is told whole rounds, and what it says is stored after each. One that cannot is shown,
from the first round on, only what stays; if it asks for the bids or the menu it is refused at once,
not when the run is resumed.
"""

from dataclasses import replace
from typing import Any, Never, cast, final

from bara.errors import LedgerError
from bara.protocols import Allocator, Mechanism, Remembers
from bara.records import Bids, IntArray, RoundRecord


@final
class Dropped:
    """Stands where bids or a menu were."""

    def __init__(self, what: str) -> None:
        self._what = what

    def _refuse(self, *_: Any) -> Never:
        raise LedgerError(
            f"the {self._what} of this round were dropped (ledger.retention is 'drop'); an allocator or mechanism that "
            "learns from them needs memory() and restore(), or ledger.retention = 'keep'"
        )

    __getitem__ = __len__ = __iter__ = __array__ = _refuse

    def __getattr__(self, name: str) -> Never:
        """Nothing of it can be read."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


DROPPED_BIDS = cast("Bids", Dropped("bids"))
DROPPED_COSTS = cast("IntArray", Dropped("menu's costs"))


def is_dropped(what: object) -> bool:
    """Whether bids or a menu are gone."""
    return isinstance(what, Dropped)


def strip(record: RoundRecord) -> RoundRecord:
    """The round as it is after its bids and its menu are dropped."""
    return replace(record, awarded=replace(record.awarded, bids=DROPPED_BIDS, costs=DROPPED_COSTS))


@final
class Redacted:
    """An allocator or mechanism under `drop`: all that it has, but it is told only what it may know."""

    def __init__(self, inner: Allocator | Mechanism) -> None:
        self.inner = inner
        for name in ("ask", "belief", "claims", "menu"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    def tell(self, record: RoundRecord) -> None:
        """Tell it what it may know."""
        self.inner.tell(record if isinstance(self.inner, Remembers) else strip(record))

"""What stays of a round when bids and menus are dropped after settlement, and who may learn from what goes.

Under `drop`, an allocator or mechanism that can say what it has learned from bids and menus (`Remembers`) is told
whole rounds, and what it says is stored after each. One that cannot is shown, from the first round on, only what
stays; if it asks for the bids or the menu it is refused at once, not when the run is resumed.
"""

from dataclasses import replace
from typing import Any, Never, cast, final

from bara.errors import LedgerError
from bara.protocols import Allocator, Believer, Mechanism, Remembers
from bara.records import Bids, IntArray, Menu, Offer, Purse, RoundRecord


@final
class Dropped:
    """Stands where bids or a menu were."""

    def __init__(self, what: str) -> None:
        self._what = what

    def _refuse(self, *_: Any) -> Never:
        raise LedgerError(
            f"the {self._what} of this round are dropped (ledger.retention is 'drop'); an allocator or mechanism that "
            "learns from them needs memory() and restore(), or a ledger that keeps them"
        )

    __getitem__ = __len__ = __iter__ = __array__ = _refuse

    def __getattr__(self, name: str) -> Never:
        """Nothing of it can be read."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


DROPPED_BIDS = cast("Bids", Dropped("bids"))
DROPPED_COSTS = cast("IntArray", Dropped("menu's costs"))


def strip(record: RoundRecord) -> RoundRecord:
    """The round as it is after its bids and its menu are dropped."""
    return replace(record, awarded=replace(record.awarded, bids=DROPPED_BIDS, costs=DROPPED_COSTS))


def _tell(learner: Allocator | Mechanism, record: RoundRecord) -> None:
    learner.tell(record if isinstance(learner, Remembers) else strip(record))


@final
class RedactedAllocator:
    """An allocator under `drop`."""

    def __init__(self, inner: Allocator) -> None:
        self._inner = inner
        if isinstance(inner, Believer):
            self.belief = inner.belief

    def ask(self, purse: Purse) -> Offer:
        """The allocator's own answer."""
        return self._inner.ask(purse)

    def tell(self, record: RoundRecord) -> None:
        """Tell it what it may know."""
        _tell(self._inner, record)


@final
class RedactedMechanism:
    """A mechanism under `drop`."""

    def __init__(self, inner: Mechanism) -> None:
        self._inner = inner

    @property
    def claims(self) -> frozenset[str]:
        """The mechanism's own."""
        return self._inner.claims

    def menu(self, bids: Bids) -> Menu:
        """The mechanism's own."""
        return self._inner.menu(bids)

    def tell(self, record: RoundRecord) -> None:
        """Tell it what it may know."""
        _tell(self._inner, record)

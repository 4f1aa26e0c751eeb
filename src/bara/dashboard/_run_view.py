"""A run as its page sees it: read once, then only what is new."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, final

from bara.dashboard._forecast import Extrapolation, Forecast, planned, told_outlook
from bara.errors import BaraError, LedgerError
from bara.ledger import Books
from bara.ledger.attention import Attention, attentions
from bara.ledger.progress import (
    ClosedRound,
    FailedDelivery,
    RoundDetails,
    State,
    add_totals,
    closed_rounds,
    failures,
    round_details,
    state,
)
from bara.ledger.statements import ClientTotal
from bara.reports.result import Result
from bara.runs.explanation import explain_round

PATIENCE = 3.0
"""Seconds that a page of many runs waits for one of them."""

LONGEST = 30.0
"""Seconds that a run's own page waits for it."""

FEW = 500
"""Rounds that are read again to explain one that follows them."""


@final
class RunView:
    """One run, grown round by round; several threads may ask at once.

    Args:
        name: Which, as its address says it.
        place: Its folder, as one writes it where the dashboard was started.
        books: Opens its books for reading.
        held: Whether a process has the run; None where that cannot be known.
        result: What it came to, once that is there.

    Attributes:
        state: Where it stood when it was last looked at.
        alone: Whether, then, no process had it.
        rounds: Its settled rounds.
        totals: What each client asked, was promised and was paid.
        failures: Who did not deliver, and why.
        newest: The newest round that was awarded, settled or not; None before the first.
        newest_words: That round, explained.
        needs: What needs a person.
        forecast: Where it is expected to end; None where it has ended, or too little is known.
        outlook: What the allocator last told about more money and its goal; None if it told
            nothing.
    """

    def __init__(
        self,
        name: str,
        place: str,
        books: Callable[[], Books],
        held: Callable[[], bool | None] = lambda: None,
        result: Callable[[], Result | None] = lambda: None,
    ) -> None:
        self.name = name
        self.place = place
        self.alone = False
        self.state: State | None = None
        self._held = held
        self._lock = threading.RLock()
        self._open = books
        self._result = result
        self._kept: tuple[str, float] | None = None
        self._looked = -math.inf

    @contextlib.contextmanager
    def held(self, patience: float = LONGEST) -> Iterator[None]:
        """Keep it as it is meanwhile; a stranger's record may be wrong in any way, each is a `LedgerError`.

        Args:
            patience: Seconds to wait for who has it now: explaining a round can take some.
        """
        if not self._lock.acquire(timeout=patience):
            raise LedgerError(f"the database of run {self.name!r} does not answer")
        try:
            yield
        except BaraError as error:
            raise LedgerError(str(error)) from error
        except Exception as error:
            raise LedgerError(f"cannot read the record of run {self.name!r}: {error!r}") from error
        finally:
            self._lock.release()

    def refresh(self, older_than: float = 0.0) -> bool:
        """Read what is new; whether there was anything.

        Args:
            older_than: Seconds; if the last look is more recent, it will do.
        """
        with self.held():
            if time.monotonic() - self._looked < older_than:
                return False
            # Before the books: a process that ends in between has closed them.
            alone, before = self._held() is False, self.alone
            self.alone = alone
            if self.state is None:
                self._forget()
            found = state(self.books)
            if (
                self.state is not None and found.head < self.state.head
            ):  # another run has taken its place
                self._forget()
            changed = self.state is None or found.head != self.state.head
            if changed:
                self._grow(found)
            self._looked = time.monotonic()
            return changed or alone != before

    @property
    def kept(self) -> tuple[str, float] | None:
        """Which model is taken home and how good it is, once the run has ended and left its result."""
        if self._kept is None and self.state is not None and self.state.ended is not None:
            result = self._result()
            self._kept = None if result is None else (str(result.kept), float(result.accuracy_kept))
        return self._kept

    @property
    def config(self) -> dict[str, Any]:
        """What the run was opened with."""
        return self.books.opening["config"]  # type: ignore[no-any-return]

    @property
    def engine(self) -> str:
        """Which federation was run."""
        return str(self.config.get("federation", {}).get("engine", ""))

    @property
    def max_rounds(self) -> int:
        """The deadline."""
        return self.books.purse.max_rounds

    def explained(self, number: int, *, past: bool = True) -> tuple[str, ...]:
        """A round in words; with what was learned in earlier rounds, where it is wanted and they are few."""
        with contextlib.suppress(BaraError):
            return explain_round(
                self.books, number, past=past and number <= FEW, what_if=False
            ).sentences
        return ()

    def _forget(self) -> None:
        self.books = self._open()
        self.state = None
        self.rounds: list[ClosedRound] = []
        self.totals = dict[str, ClientTotal]()
        self.failures: list[FailedDelivery] = []
        self.newest: RoundDetails | None = None
        self.newest_words: tuple[str, ...] = ()
        self.needs: list[Attention] = []
        self.forecast: Forecast | None = None
        self.outlook: dict[str, Any] | None = None
        self._kept = None
        self._extrapolation = Extrapolation(int(self.config.get("clients", {}).get("count", 2)))

    def _grow(self, found: State) -> None:
        last = self.rounds[-1].round if self.rounds else -1
        closed = found.closed  # what is settled while we read is for the next look
        new = closed_rounds(self.books, last, closed)
        failed = failures(self.books, last, closed)
        newest = round_details(self.books, closed + 1) or round_details(self.books, closed)
        add_totals(
            self.books, self.totals, new
        )  # the last that can fail: what was read counts once
        self.failures += failed
        self.rounds += new
        self.newest = newest
        self.needs = attentions(self.books)
        self.newest_words = () if newest is None else self.explained(newest.round, past=False)
        self.state = found
        self.forecast = self._look_ahead(closed) if found.ended is None else None
        self.outlook = None if newest is None else told_outlook(newest.belief)

    def _look_ahead(self, closed: int) -> Forecast | None:
        own = planned(None if self.newest is None else self.newest.belief)
        return own or self._extrapolation.forecast(self.rounds, self.max_rounds - closed)

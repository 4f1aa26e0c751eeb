"""A run as its page shows it: read once, and afterwards only what is new."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, final

from bara.dashboard._forecast import AccuracyForecast, Extrapolation, planned, told_outlook
from bara.errors import BaraError, LedgerError
from bara.ledger import Books
from bara.ledger.attention import Attention, attentions
from bara.ledger.decisions import Decision, decisions
from bara.ledger.run_state import (
    ClosedRound,
    FailedDelivery,
    RoundDetails,
    RunState,
    add_corrections,
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
"""Seconds that a page of many runs waits for each of them."""

LONGEST = 30.0
"""Seconds that a run's own page waits for the run."""

FEW = 500
"""The most earlier rounds that are read again to explain a round."""


@final
class RunView:
    """A view of one run that grows round by round and may be used by several threads.

    Args:
        name: The run's name, as in the address of its page.
        place: The words that name the run in a command.
        books: Opens the run's books for reading.
        held: Returns whether a process plays the run; None where that cannot be known.
        result: Returns the run's result, or None if there is none.

    Attributes:
        state: The state of the run at the last refresh; None before the first.
        played: Whether a process played the run at the last refresh; None where that cannot be
            known.
        changes: How many refreshes found something new.
        rounds: The settled rounds.
        totals: What each client asked, was promised and was paid.
        failures: The deliveries that failed, and why.
        newest: The newest round that was awarded, settled or not; None before the first.
        newest_words: The sentences that explain the newest round.
        needs: What needs a person.
        decisions: The commands that operators gave.
        forecast: The forecast of the final accuracy; None if the run has ended, or too little is
            known.
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
        self.played: bool | None = None
        self.changes = 0
        self.state: RunState | None = None
        self._held = held
        self._lock = threading.RLock()
        self._open = books
        self._result = result
        self._kept: tuple[str, float] | None = None
        self._looked = -math.inf

    @contextlib.contextmanager
    def held(self, patience: float = LONGEST) -> Iterator[None]:
        """Lock the view, and turn every error into a `LedgerError`.

        The record may be a stranger's, and hold anything.

        Args:
            patience: Seconds to wait for the lock; another thread may be explaining a round.
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

    def refresh(self, older_than: float = 0.0) -> None:
        """Read what is new.

        Args:
            older_than: Do nothing if the last refresh is at most this many seconds ago.
        """
        with self.held():
            if time.monotonic() - self._looked < older_than:
                return
            # Asked before the books are read: a process that ends in between has closed them.
            played = self._held()
            if self.state is None:
                self._forget()
            found = state(self.books)
            if self.state is not None and found.head < self.state.head:
                self._forget()  # another run has taken its place
            grown = self.state is None or found.head != self.state.head
            if grown:
                self._grow(found)
            changed = grown or played != self.played
            self.played = played
            self._looked = time.monotonic()
            if changed:
                self.changes += 1

    @property
    def over(self) -> bool:
        """True if no news can follow: the run has ended, and no process is writing its result."""
        return self.state is not None and self.state.ended is not None and not self.played

    @property
    def kept(self) -> tuple[str, float] | None:
        """The model that the run keeps and its accuracy; None until the run has left a result."""
        if self._kept is None and self.state is not None and self.state.ended is not None:
            result = self._result()
            if result is not None:
                self._kept = (str(result.kept), float(result.accuracy_kept))
        return self._kept

    @property
    def config(self) -> dict[str, Any]:
        """The configuration that the run was opened with."""
        config: dict[str, Any] = self.books.opening["config"]
        return config

    @property
    def engine(self) -> str:
        """The name of the federation's engine."""
        return str(self.config.get("federation", {}).get("engine", ""))

    @property
    def max_rounds(self) -> int:
        """The number of rounds at which the run ends."""
        return self.books.purse.max_rounds

    def explained(self, number: int, *, past: bool = True) -> tuple[str, ...]:
        """Return the sentences that explain a round; none if it cannot be explained.

        Args:
            number: The round.
            past: Also tell what the allocator had learned from earlier rounds, if they are few.
        """
        past = past and number <= FEW
        with contextlib.suppress(BaraError):
            return explain_round(self.books, number, past=past, what_if=False).sentences
        return ()

    def _forget(self) -> None:
        """Open the books anew and forget everything that was read."""
        self.books = self._open()
        self.state = None
        self.rounds: list[ClosedRound] = []
        self.totals = dict[str, ClientTotal]()
        self.failures: list[FailedDelivery] = []
        self.newest: RoundDetails | None = None
        self.newest_words: tuple[str, ...] = ()
        self.needs: list[Attention] = []
        self.decisions: list[Decision] = []
        self.forecast: AccuracyForecast | None = None
        self.outlook: dict[str, Any] | None = None
        self._kept = None
        self._extrapolation = Extrapolation(int(self.config.get("clients", {}).get("count", 2)))

    def _grow(self, found: RunState) -> None:
        """Add the rounds up to the found state."""
        last = self.rounds[-1].round if self.rounds else -1
        closed = found.closed  # rounds that are settled meanwhile are left to the next refresh
        new = closed_rounds(self.books, last, closed)
        failed = failures(self.books, last, closed)
        newest = round_details(self.books, closed + 1) or round_details(self.books, closed)
        # Changes the view only once nothing can fail any more, so that no round counts twice.
        add_totals(self.books, self.totals, new)
        add_corrections(self.books, self.totals, 0 if self.state is None else self.state.head)
        self.failures += failed
        self.rounds += new
        self.newest = newest
        self.needs = attentions(self.books)
        self.decisions = decisions(self.books)
        self.newest_words = ()
        belief = None
        if newest is not None:
            self.newest_words = self.explained(newest.round, past=False)
            belief = newest.belief
        self.state = found
        self.outlook = told_outlook(belief)
        self.forecast = None
        if found.ended is None:
            rounds_left = self.max_rounds - closed
            self.forecast = planned(belief) or self._extrapolation.forecast(
                self.rounds, rounds_left
            )

"""A session: one sitting of a run, from its beginning or from where its books say it stopped.

`bara run`, `bara resume`, a comparison's cells, a Flower server and your own loop all play a run through one of these:

    session = Session(allocator, mechanism, federation, books=books)
    for step in session.rounds():
        ...  # a round as awarded, promised in the books; then the same round, settled in the books
"""

from collections.abc import Iterator
from typing import Protocol, final

from bara.errors import LedgerError
from bara.faults import point
from bara.ledger import Books
from bara.ledger.retention import RedactedAllocator, RedactedMechanism
from bara.market import Market
from bara.protocols import Allocator, Federation, Mechanism, Remembers, Resumable, capabilities_of
from bara.records import AwardedRound, Purse, RoundRecord

Step = AwardedRound | RoundRecord
"""A round as awarded, or the same round as settled."""


class Learner(Protocol):
    """Whoever learns from settled rounds: a summary, an account."""

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round."""
        ...


@final
class Session:
    """Plays a run.

    Args:
        allocator: Decides how much a round may cost.
        mechanism: Decides who is recruited and what they are paid.
        federation: Bids and trains.
        purse: The budget and the deadline, where the run has no books.
        books: Where each step is recorded before it is handed on. The rounds in them are not played again: allocator,
            mechanism and federation are brought to where the last of them left off.
        learners: Told every settled round of the run, those of earlier sessions included.
    """

    def __init__(
        self,
        allocator: Allocator,
        mechanism: Mechanism,
        federation: Federation,
        *,
        purse: Purse | None = None,
        books: Books | None = None,
        learners: tuple[Learner, ...] = (),
    ) -> None:
        if (purse is None) == (books is None):
            raise TypeError("a session takes a purse, or books, which hold one")
        self._books = books
        self._federation = federation
        self._learners = learners
        self._remembering: dict[str, Remembers] = {}
        if books is not None and books.terms.retention == "drop":
            parts = {"allocator": allocator, "mechanism": mechanism}
            self._remembering = {part: one for part, one in parts.items() if isinstance(one, Remembers)}
            allocator, mechanism = RedactedAllocator(allocator), RedactedMechanism(mechanism)
        if books is None:
            self._market = Market(allocator, mechanism, federation, purse)  # type: ignore[arg-type] # see above
        else:
            self._market = Market(allocator, mechanism, federation, books.purse, books.before_round)
            self._market.ended = books.ended()

    @property
    def ended(self) -> str | None:
        """Why the run ended, once it has."""
        return self._market.ended

    def rounds(self) -> Iterator[Step]:
        """Replay the past, then play on: each step is in the books before it is yielded; at the end they are closed."""
        books = self._books
        for step in self._market.rounds() if books is None else self._market.rounds(self._replayed(), books.awarded()):
            if isinstance(step, RoundRecord):
                self._tell(step)
            if books is not None:
                self._record(books, step)
            yield step
        if books is not None:
            books.close(self._market.ended or "")

    def _record(self, books: Books, step: Step) -> None:
        if isinstance(step, RoundRecord):
            point("trained")
            books.record(step, {part: one.memory() for part, one in self._remembering.items()})
        else:
            books.record(step)

    def _tell(self, record: RoundRecord) -> None:
        for learner in self._learners:
            learner.tell(record)

    def _replayed(self) -> Iterator[RoundRecord]:
        """The settled rounds, as everybody is told them again; the federation is brought to where the last left it."""
        books, federation = self._books, self._federation
        assert books is not None  # noqa: S101 - for the type checker
        for part, one in self._remembering.items():
            if (memory := books.memory(part)) is not None:
                one.restore(memory)
        resumable = federation if isinstance(federation, Resumable) else None
        known = resumable.checkpoint(books.last_round()) if resumable else 0
        for record in books.history():
            self._tell(record)
            if resumable and record.awarded.award.n and record.round <= known:
                resumable.replay(record)
            elif record.awarded.award.n:
                self._train_again(record)
            yield record

    def _train_again(self, record: RoundRecord) -> None:
        if not capabilities_of(self._federation).repeatable:
            raise LedgerError(
                f"round {record.round} is settled, but there is no checkpoint of it; put the run's folder back"
            )
        if self._federation.train(record.round, record.awarded.award) != record.delivery:
            raise LedgerError(
                f"round {record.round}, trained again, comes to another result than the ledger has; the data and the "
                "kind of machine must be the same, or there must be a checkpoint"
            )

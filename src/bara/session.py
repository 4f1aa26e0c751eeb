"""A market that goes on from its books, and has each step in them before it is handed on."""

from collections.abc import Callable, Iterator
from typing import Any

from bara.errors import LedgerError
from bara.faults import point
from bara.ledger import Books
from bara.ledger.retention import RedactedAllocator, RedactedMechanism
from bara.market import Market
from bara.protocols import Allocator, Federation, Mechanism, Remembers, Resumable
from bara.records import AwardedRound, RoundRecord

Watch = Callable[[RoundRecord], None]
"""Is shown every settled round of the run, those of earlier sittings included."""


def sit(
    books: Books, allocator: Allocator, mechanism: Mechanism, federation: Federation
) -> tuple[Market, Callable[[Watch], Iterator[AwardedRound | RoundRecord]]]:
    """The market of a run that has books, and a function that plays it, given who watches."""
    if books.terms.retention == "drop":
        parts = {"allocator": allocator, "mechanism": mechanism}
        learners = {part: one for part, one in parts.items() if isinstance(one, Remembers)}
        _restore(books, learners)
        allocator, mechanism = RedactedAllocator(allocator), RedactedMechanism(mechanism)
    market = Market(allocator, mechanism, federation, books.purse, books.before_round)
    market.ended = books.ended()

    def play(watch: Watch) -> Iterator[AwardedRound | RoundRecord]:
        for step in market.rounds(_rebuilt(books, federation, watch), books.awarded()):
            if isinstance(step, RoundRecord):
                point("trained")
                watch(step)
            books.observe(step)
            yield step
        books.close(market.ended or "")

    return market, play


def _restore(books: Books, learners: dict[str, Remembers]) -> None:
    for part, learner in learners.items():
        if (memory := books.memory(part)) is not None:
            learner.restore(memory)

    def memories() -> dict[str, Any]:
        return {part: learner.memory() for part, learner in learners.items()}

    books.memories = memories


def _rebuilt(books: Books, federation: Federation, watch: Watch) -> Iterator[RoundRecord]:
    """The settled rounds; the federation is brought to where the last of them left it."""
    known = federation.checkpoint(books.last_round()) if isinstance(federation, Resumable) else 0
    for record in books.history():
        watch(record)
        if record.awarded.award.n and record.round <= known:
            federation.replay(record)  # type: ignore[attr-defined] # known is 0 where there is no such method
        elif record.awarded.award.n:
            _train_again(federation, record)
        yield record


def _train_again(federation: Federation, record: RoundRecord) -> None:
    if not getattr(federation, "repeatable", True):
        raise LedgerError(
            f"round {record.round} is settled, but there is no checkpoint of it; required is the run's folder as it was"
        )
    if federation.train(record.round, record.awarded.award) != record.delivery:
        raise LedgerError(
            f"round {record.round}, trained again, comes to another result than the ledger has; required are the same "
            "data and the same kind of machine, or a checkpoint"
        )

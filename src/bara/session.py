"""A session plays a run, from its beginning or from where its books say it stopped.

`bara run`, `bara resume`, a comparison's cells, a Flower server and your own loop all play a run through one of these:

    session = Session(allocator, mechanism, federation)
    for step in session.rounds(books):
        ...  # a round as awarded, promised in the books; then the same round, settled in the books
"""

from collections.abc import Callable, Iterable, Iterator
from typing import cast, final

from bara.errors import ConfigError, LedgerError
from bara.faults import point
from bara.ledger import Books
from bara.ledger.operators import check_place
from bara.ledger.retention import Redacted
from bara.market import Market
from bara.protocols import (
    Allocator,
    Federation,
    Forgets,
    Mechanism,
    Remembers,
    Resumable,
    capabilities_of,
    check_fit,
    name_of,
)
from bara.records import AwardedRound, Purse, RoundRecord

Step = AwardedRound | RoundRecord
"""A round as awarded, or the same round as settled."""


Learner = Callable[[RoundRecord], None]
"""Is told settled rounds: a summary's or an account's `tell`."""


@final
class Session:
    """Allocator, mechanism and federation of one run, refused where they do not fit together.

    Args:
        allocator: Decides how much a round may cost.
        mechanism: Decides who is recruited and what they are paid.
        federation: Bids and trains.

    Attributes:
        ended: Why the run ended, once it has.
    """

    def __init__(self, allocator: Allocator, mechanism: Mechanism, federation: Federation) -> None:
        check_fit(mechanism, federation)
        self.allocator = allocator
        self.mechanism = mechanism
        self.federation = federation
        self.ended: str | None = None

    def rounds(self, budget: Purse | Books, *learners: Learner) -> Iterator[Step]:
        """Play the run to its end; with books, replay their past first and record each step before it is handed on.

        Args:
            budget: The purse to spend; or the books of a run, which hold one.
            *learners: Told every settled round of the run, those of earlier sessions included.
        """
        self.ended = None
        if isinstance(budget, Purse):
            steps = self._played(Market(self.allocator, self.mechanism, self.federation, budget))
        else:
            steps = self._recorded(budget, learners)
        for step in steps:
            _tell(learners, step)
            yield step

    def _played(
        self, market: Market, past: Iterable[RoundRecord] = (), awarded: AwardedRound | None = None
    ) -> Iterator[Step]:
        yield from market.rounds(past, awarded)
        self.ended = market.ended

    def _recorded(self, books: Books, learners: tuple[Learner, ...]) -> Iterator[Step]:
        check_place(books)
        allocator, mechanism, remembering = self.allocator, self.mechanism, dict[str, Remembers]()
        if books.terms.retention == "drop":
            parts = {"allocator": allocator, "mechanism": mechanism}
            remembering = {part: one for part, one in parts.items() if isinstance(one, Remembers)}
            allocator, mechanism = cast("Allocator", Redacted(allocator)), cast("Mechanism", Redacted(mechanism))
        for part, one in remembering.items():
            if (memory := books.memory(part)) is not None:
                one.restore(memory)
        resumable = _resumable(self.federation)
        market = Market(allocator, mechanism, self.federation, books.purse, books.before_round)
        market.ended = books.ended()
        for step in self._played(market, self._replayed(books, resumable, learners), books.awarded()):
            if isinstance(step, RoundRecord):
                point("trained")
                memories = {part: one.memory() for part, one in remembering.items()}
                books.record(step, memories, resumable.sealed(step.round) if resumable else None)
            else:
                books.record(step)
            yield step
        books.close(market.ended or "")

    def _replayed(
        self, books: Books, resumable: Resumable | None, learners: tuple[Learner, ...]
    ) -> Iterator[RoundRecord]:
        """The settled rounds, which everybody is told again; the federation is brought to where the last left it."""
        known = resumable.checkpoint(books.last_round(), books.committed_checkpoint) if resumable else 0
        forgotten = [(client, before) for client, before in books.forgotten() if before > known]
        for record in books.history():
            _tell(learners, record)
            if resumable and record.awarded.award.n and record.round <= known:
                resumable.replay(record)
            elif record.awarded.award.n:
                forgotten = self._forget(forgotten, record.round)
                self._train_again(record)
            yield record
        self._forget(forgotten, books.last_round() + 1)

    def _forget(self, clients: list[tuple[str, int]], round: int) -> list[tuple[str, int]]:  # noqa: A002
        """Let the federation forget whom an operator had forgotten before that round; returns the later ones."""
        if isinstance(self.federation, Forgets):
            for client, before in clients:
                if before <= round:
                    self.federation.forget(client, before)
        return [one for one in clients if one[1] > round]

    def _train_again(self, record: RoundRecord) -> None:
        if not capabilities_of(self.federation).repeatable:
            raise LedgerError(
                f"round {record.round} is settled, but there is no checkpoint of it that the ledger commits to; put "
                "the run's folder back"
            )
        if self.federation.train(record.round, record.awarded.award) != record.delivery:
            raise LedgerError(
                f"round {record.round}, trained again, comes to another result than the ledger has; the data and the "
                "kind of machine must be the same, or there must be a checkpoint"
            )


def _resumable(federation: Federation) -> Resumable | None:
    """The federation, if it keeps checkpoints; half of a protocol would let silos train again unpaid."""
    if isinstance(federation, Resumable):
        return federation
    if hasattr(federation, "checkpoint"):
        raise ConfigError(
            f"{name_of(federation)} has `checkpoint`, but not all of `bara.protocols.Resumable`; add `sealed`, `replay`"
        )
    return None


def _tell(learners: tuple[Learner, ...], step: Step) -> None:
    if isinstance(step, RoundRecord):
        for learner in learners:
            learner(step)

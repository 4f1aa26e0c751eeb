"""The session: the one loop that plays a run, from its beginning or from where it stopped.

`bara run`, `bara resume`, a comparison's cells, a Flower server and your own loop all play a run
through a session. If you have a federation, an object that bids and trains, iterate over its
rounds:

    session = Session(allocator, mechanism, federation)
    for step in session.rounds(books):
        ...  # a round as awarded, promised in the books; then the same round, settled in the books

If you train elsewhere, hand in bids and deliveries (`bara.open_session` opens the books, too):

    session.begin(0.1)  # the initial model's accuracy
    while session.ask() and (award := session.award(bids)):  # promised in the books before you train
        session.settle(accuracy_after_training)
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import cast, final

from bara.errors import ConfigError, InvalidRecordError, LedgerError, PausedError
from bara.faults import point
from bara.ledger import Books
from bara.ledger.attention import Attention, Watch, attentions
from bara.ledger.notifications import Notifier
from bara.ledger.operators import check_place
from bara.ledger.retention import Redacted
from bara.market import Market
from bara.protocols import (
    Allocator,
    Capabilities,
    Federation,
    Forgets,
    Mechanism,
    Remembers,
    Resumable,
    capabilities_of,
    check_fit,
    name_of,
)
from bara.records import (
    Award,
    AwardedRound,
    Bids,
    Delivery,
    Evaluation,
    Evidence,
    Offer,
    Purse,
    RoundRecord,
)

Step = AwardedRound | RoundRecord
"""A round as awarded, or the same round as settled."""


Learner = Callable[[RoundRecord], None]
"""Called with every settled round: a summary's or an account's `tell`."""


@final
class OwnLoop:
    """A training system that hands in bids and deliveries itself, in the place of a federation.

    Args:
        protects: Its clients train with local differential privacy where the mechanism asks for it.
    """

    def __init__(self, *, protects: bool = False) -> None:
        self.capabilities = Capabilities(protects=protects, repeatable=False)


@final
class Session:
    """Allocator, mechanism and federation of one run, refused where they do not fit together.

    Args:
        allocator: Decides how much a round may cost.
        mechanism: Decides who is recruited and what they are paid.
        federation: Bids and trains; an `OwnLoop` where that is handed in from outside.

    Attributes:
        promised: The round that is promised and not settled, if there is one; an earlier session
            may have promised it.
    """

    def __init__(
        self, allocator: Allocator, mechanism: Mechanism, federation: Federation | OwnLoop
    ) -> None:
        check_fit(mechanism, federation)
        self.allocator = allocator
        self.mechanism = mechanism
        self.federation = federation
        self.promised: AwardedRound | None = None
        self._market: Market | None = None
        self._books: Books | None = None
        self._offer: Offer | None = None
        self._learners: tuple[Learner, ...] = ()
        self._remembering: dict[str, Remembers] = {}
        self._watch: Watch | None = None
        self._notifier: Notifier | None = None

    def rounds(self, budget: Purse | Books, *learners: Learner) -> Iterator[Step]:
        """Play the run to its end; yield each round as awarded and then as settled.

        With books, their past is replayed first, and each step is in them before it is yielded.

        Args:
            budget: The purse to spend; or the books of a run, which hold one.
            *learners: Called with every settled round, those of earlier sessions included.
        """
        federation = self.federation
        if isinstance(federation, OwnLoop):
            raise InvalidRecordError(
                "this session has no federation; ask, award and settle its rounds yourself"
            )
        self.start(budget, *learners)
        if not self._started.begun:
            yield self._begin(federation.evaluate())
        while self.ask() is not None:
            if self.promised is None:
                self.award(federation.bids(self.round))
            else:
                self.award()
            awarded = self.promised
            if awarded is None:
                return
            yield awarded
            delivery = None
            if awarded.award.n:
                delivery = federation.train(self.round, awarded.award)
            yield self.settle(delivery)

    # --- step by step ----------------------------------------------------------------------------

    def start(self, budget: Purse | Books, *learners: Learner) -> None:
        """Begin the run, or bring everybody to where its books say it stopped. A key other than theirs is refused.

        Args:
            budget: The purse to spend; or the books of a run, which hold one.
            *learners: Told every settled round of the run, those of earlier sessions included.
        """
        self.promised = None
        self._offer = None
        self._books = None
        self._learners = learners
        self._remembering = {}
        self._watch = None
        self._notifier = None
        if isinstance(budget, Purse):
            self._market = Market(self.allocator, self.mechanism, budget)
        else:
            self._resume(budget)

    def _resume(self, books: Books) -> None:
        """Bring everybody to where the books say that the run stopped."""
        books.check_key()
        check_place(books)
        allocator, mechanism = self._redacted(books)
        self._books = books
        if books.terms.notify is not None:
            self._watch = Watch(books.address)
            self._notifier = Notifier(books)
        market = Market(allocator, mechanism, books.purse, books.before_round)
        market.ended = books.ended()
        self._market = market
        for record in self._replayed(books):
            market.tell(record)
        self.promised = books.awarded()
        if self._notifier is not None and market.ended is None:
            self._notifier.tell(attentions(books))  # an earlier process may not have got it across

    @property
    def ended(self) -> str | None:
        """Why the run ended, once it has."""
        return None if self._market is None else self._market.ended

    @property
    def purse(self) -> Purse:
        """What is left to spend, and how long."""
        return self._started.purse

    @property
    def round(self) -> int:
        """The round that is to be played; 0 before the initial model is evaluated."""
        return self._started.purse.round if self._started.begun else 0

    @property
    def checkpoint(self) -> str | None:
        """What the last settled round was settled with as `checkpoint`: how to know your own saved model again."""
        return None if self._books is None else self._books.committed_checkpoint(self.round - 1)

    def begin(self, evaluation: Evaluation | float) -> RoundRecord | None:
        """Settle round 0: how good the initial model is. None where the books have it already."""
        if self._started.begun:
            return None
        return self._begin(_evaluation(evaluation))

    def _begin(self, evaluation: Evaluation) -> RoundRecord:
        return self._settled(self._started.begin(evaluation))

    def ask(self) -> Offer | None:
        """The offer of this round, made before its bids are opened; None where the run has ended (`ended` says why).

        Asked twice, the same answer. Raises `PausedError` where an operator has paused the run.
        """
        if not self._started.begun:
            raise InvalidRecordError(
                "the initial model is not evaluated yet; say begin(accuracy) first"
            )
        if self.promised is not None:
            return self.promised.offer
        with self._told_of_stops():
            self._offer = self._started.ask()
        if self._offer is None:
            self._close()
        return self._offer

    def award(self, bids: Bids | Mapping[str, float | str | Decimal] | None = None) -> Award | None:
        """Open the bids: who is recruited and what each is promised, stored before this returns.

        A round that is promised already, also by an earlier process, stays as it was promised,
        whatever is bid now. None where the money left cannot pay what the offer wants and that ends
        the run. Raises `PausedError` where the award waits for an operator's answer; call it again
        when there is one.

        Args:
            bids: Everybody's, or prices by client; None only for a round that is promised.
        """
        if self.promised is not None and self._books is not None:
            self.promised = (
                self._books.awarded() or self.promised
            )  # an operator may have answered since
        if self.promised is None:
            self.promised = self._opened(bids)
        if self.promised is None:
            self._close()
            return None
        if self._books is not None:
            with self._told_of_stops():
                self._books.record(self.promised)
        return self.promised.award

    def settle(
        self,
        delivery: Delivery | Evaluation | float | None = None,
        *,
        void: Mapping[str, str] = MappingProxyType({}),
        checkpoint: str | None = None,
    ) -> RoundRecord:
        """Settle the promised round, once: who delivered is paid, in the books, before this returns.

        Args:
            delivery: What came of it; or only how good the model is now, and all winners but those
                in `void` have delivered. None where nobody was recruited, and the model is as it
                was.
            void: Who did not deliver, and why: they are not paid.
            checkpoint: A digest of what you would go on from; `checkpoint` tells it after a
                restart.
        """
        if self.promised is None:
            raise InvalidRecordError("no round is promised; ask and award come before settle")
        award = self.promised.award
        if delivery is None and award.n:
            raise InvalidRecordError(
                f"round {self.round} has winners ({award.n}); say how good the model is now"
            )
        if delivery is None:
            delivery = self._started.unchanged()
        elif not isinstance(delivery, Delivery):
            delivered = {client: Evidence() for client in award.clients if client not in void}
            delivery = Delivery(_evaluation(delivery), delivered, void)
        return self._settled(self._started.settle(self.promised, delivery), checkpoint)

    def leave(self) -> None:
        """Wait a moment for what is being told to whom `ledger.notify` names; before the program ends."""
        if self._notifier is not None:
            self._notifier.finish()

    # --- behind them -----------------------------------------------------------------------------

    @property
    def _started(self) -> Market:
        if self._market is None:
            raise InvalidRecordError("the session has not started; say start(purse or books) first")
        return self._market

    def _opened(
        self, bids: Bids | Mapping[str, float | str | Decimal] | None
    ) -> AwardedRound | None:
        if self._offer is None and self.ask() is None:
            raise InvalidRecordError(
                f"the run has ended ({self.ended}); nobody is recruited any more"
            )
        if bids is None:
            raise InvalidRecordError(f"round {self.round} is not promised yet; hand in its bids")
        opened = bids if isinstance(bids, Bids) else Bids.of(bids)
        return self._started.award(cast("Offer", self._offer), opened)

    def _settled(self, record: RoundRecord, checkpoint: str | None = None) -> RoundRecord:
        """Put a settled round into the books, then tell those who learn."""
        if self._books is not None:
            point("trained")
            memories = {part: one.memory() for part, one in self._remembering.items()}
            resumable = _resumable(self.federation)
            saved = checkpoint if resumable is None else resumable.sealed(record.round)
            self._books.record(record, memories, saved)
        self.promised, self._offer = None, None
        for learner in self._learners:
            learner(record)
        if self._watch is not None and self._notifier is not None:
            self._watch.tell(record)
            self._notifier.tell(self._watch.needs())
        return record

    @contextlib.contextmanager
    def _told_of_stops(self) -> Iterator[None]:
        """Who is to be told what needs a person is told before the run stops for it."""
        try:
            yield
        except PausedError:
            if self._notifier is not None:
                self._notifier.tell_all()
            raise

    def _close(self) -> None:
        if self._books is None:
            return
        self._books.close(self.ended or "")
        if self._notifier is not None:
            self._notifier.tell([Attention("ended", f"the run ended: {self.ended}")])
            self.leave()

    def _redacted(self, books: Books) -> tuple[Allocator, Mechanism]:
        """Allocator and mechanism as far as the books' retention lets them know; what they learned from is restored."""
        if books.terms.retention != "drop":
            return self.allocator, self.mechanism
        parts = {"allocator": self.allocator, "mechanism": self.mechanism}
        self._remembering = {part: one for part, one in parts.items() if isinstance(one, Remembers)}
        for part, one in self._remembering.items():
            if (memory := books.memory(part)) is not None:
                one.restore(memory)
        return cast("Allocator", Redacted(self.allocator)), cast(
            "Mechanism", Redacted(self.mechanism)
        )

    def _replayed(self, books: Books) -> Iterator[RoundRecord]:
        """Yield the settled rounds again, and bring the federation to where the last left it."""
        resumable = _resumable(self.federation)
        known = 0
        if resumable is not None:
            known = resumable.checkpoint(books.last_round(), books.committed_checkpoint)
        forgotten = [(client, before) for client, before in books.forgotten() if before > known]
        for record in books.history():
            for learner in self._learners:
                learner(record)
            if self._watch is not None:
                self._watch.tell(record)
            has_winners = bool(record.awarded.award.n)
            if resumable is not None and has_winners and record.round <= known:
                resumable.replay(record)
            elif has_winners and not isinstance(self.federation, OwnLoop):
                forgotten = self._forget(forgotten, record.round)
                self._train_again(record, self.federation)
            yield record
        self._forget(forgotten, books.last_round() + 1)

    def _forget(self, clients: list[tuple[str, int]], round: int) -> list[tuple[str, int]]:
        """Forget the clients that an operator had forgotten before that round; return the others."""
        if isinstance(self.federation, Forgets):
            for client, before in clients:
                if before <= round:
                    self.federation.forget(client, before)
        return [(client, before) for client, before in clients if before > round]

    def _train_again(self, record: RoundRecord, federation: Federation) -> None:
        if not capabilities_of(federation).repeatable:
            raise LedgerError(
                f"round {record.round} is settled, but the checkpoint that the ledger commits to is missing; restore "
                "the run's folder"
            )
        if federation.train(record.round, record.awarded.award) != record.delivery:
            raise LedgerError(
                f"round {record.round}, trained again, gives a different result from the ledger's; use the same data "
                "and the same kind of machine, or restore the checkpoint"
            )


def _resumable(federation: Federation | OwnLoop) -> Resumable | None:
    """The federation, if it keeps checkpoints; half of a protocol would let silos train again unpaid."""
    if isinstance(federation, Resumable):
        return federation
    if hasattr(federation, "checkpoint"):
        raise ConfigError(
            f"{name_of(federation)} has `checkpoint`, but not all of `bara.protocols.Resumable`; add `sealed` and "
            "`replay`"
        )
    return None


def _evaluation(given: Evaluation | float) -> Evaluation:
    return given if isinstance(given, Evaluation) else Evaluation(given)

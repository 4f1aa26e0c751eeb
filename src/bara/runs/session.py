"""The session: the one loop that plays a run, from its beginning or from where its books stop.

`bara run`, `bara resume`, the cells of a comparison, a Flower server and programs of your own all
play their runs through a `Session`. There are two ways to use one.

With a federation, an object that bids and trains, iterate over the rounds. Each round is yielded
twice, both times after it is stored in the books: as awarded, before anyone trains, and as settled:

    session = Session(allocator, mechanism, federation)
    for step in session.rounds(books):
        print(step)

With a training system of your own, hand in the bids and say how good each new model is.
`bara.open_session` opens the books and starts the session:

    with bara.open_session("spring", config) as session:
        session.begin(0.1)  # the accuracy of the initial model
        while session.ask() is not None:
            award = session.award(bids)  # promised in the books before you train
            if award is None:
                break
            session.settle(accuracy_after_training)
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, cast, final

from bara.errors import ConfigError, InvalidRecordError, LedgerError, PausedError
from bara.faults import point
from bara.ledger import Books
from bara.ledger.attention import Attention, Watch, attentions
from bara.ledger.notifications import Notifier
from bara.ledger.operators import check_place, pause
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
    Limits,
    Offer,
    Purse,
    RoundRecord,
)
from bara.text import UNSTORABLE

Step = AwardedRound | RoundRecord
"""A round as awarded, or the same round as settled."""


Learner = Callable[[RoundRecord], None]
"""A function that is called with every settled round, such as the `tell` of a summary."""


@final
class OwnLoop:
    """A stand-in for the federation of a program that hands in bids and deliveries itself.

    Args:
        protects: Whether the program's clients train with local differential privacy if the
            mechanism asks for it.
    """

    def __init__(self, *, protects: bool = False) -> None:
        self.capabilities = Capabilities(protects=protects, repeatable=False)


@final
class Session:
    """A run in play: an allocator, a mechanism and a federation, taken through its rounds.

    Call `rounds` to play the whole run, or `start`, `begin`, and then `ask`, `award` and `settle`
    for each round. With books, every step is stored before its method returns, so that a new
    session with the same books goes on where this one stopped, and nobody is paid twice.

    Args:
        allocator: Decides how much a round may cost.
        mechanism: Decides who is recruited and what they are paid.
        federation: Bids and trains; an `OwnLoop` if your program hands in bids and deliveries.
        limits: The limits to what clients say of themselves in their bids; None for those that
            follow from what the others say.

    Attributes:
        promised: The round that is awarded and not settled yet, or None; an earlier session may
            have awarded it.

    Raises:
        ConfigError: If the mechanism requires what the federation cannot do.
    """

    def __init__(
        self,
        allocator: Allocator,
        mechanism: Mechanism,
        federation: Federation | OwnLoop,
        limits: Limits | None = None,
    ) -> None:
        check_fit(mechanism, federation)
        self._limits = limits
        self.allocator = allocator
        self.mechanism = mechanism
        self.federation = federation
        self.promised: AwardedRound | None = None
        self._unpromised: AwardedRound | None = None  # awarded, but perhaps not in the books yet
        self._unsettled = False  # whether the last settlement may not be in the books
        self._started_market: Market | None = None
        self._books: Books | None = None
        self._offer: Offer | None = None
        self._learners: tuple[Learner, ...] = ()
        self._remembering: dict[str, Remembers] = {}
        self._watch: Watch | None = None
        self._notifier: Notifier | None = None

    def rounds(self, budget: Purse | Books, *learners: Learner) -> Iterator[Step]:
        """Play the run to its end; yield each round as awarded and again as settled.

        Round 0, the evaluation of the initial model, is only settled. Rounds that the books already
        hold are restored, not played and not yielded again. Each new step is in the books before it
        is yielded.

        Args:
            budget: The purse to spend, for a run that stores nothing; or the books of a run, which
                hold its purse.
            *learners: Called with every settled round, including those of earlier sessions.
        """
        federation = self.federation
        if isinstance(federation, OwnLoop):
            raise InvalidRecordError(
                "this session has no federation; ask, award and settle its rounds yourself"
            )
        self.start(budget, *learners)
        if not self._market.begun:
            yield self._begin(_evaluation(federation.evaluate()))
        while self.ask() is not None:
            if self.promised is None:
                self.award(self._bids_of(federation))
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
        """Start the run, or restore it to where its books stop.

        `rounds` and `bara.open_session` do this for you.

        Args:
            budget: The purse to spend, for a run that stores nothing; or the books of a run, which
                hold its purse.
            *learners: Called with every settled round, including those of earlier sessions.

        Raises:
            LedgerError: If the books were opened with another key or are a copy, or if the
                federation cannot be brought to where they stop.
            InvalidRecordError: If allocator and mechanism have learned from rounds in this session
                already; after an error, only a new session can play on.
        """
        if self._started_market is not None and self._started_market.begun:
            raise InvalidRecordError(
                "this session has been started before, and would teach its allocator and mechanism "
                "the same rounds twice; make a new session of new ones, and it goes on where the "
                "books stop"
            )
        self.promised = None
        self._unpromised = None
        self._unsettled = False
        self._offer = None
        self._books = None
        self._learners = learners
        self._remembering = {}
        self._watch = None
        self._notifier = None
        if isinstance(budget, Purse):
            self._started_market = Market(
                self.allocator, self.mechanism, budget, limits=self._limits
            )
        else:
            self._restore(budget)

    def _restore(self, books: Books) -> None:
        """Bring allocator, mechanism, federation and learners to where the books stop."""
        books.check_key()
        check_place(books)
        books.write_receipt()  # an earlier process may have died before its last receipt
        books.guide(self.mechanism)
        allocator, mechanism = self._redacted(books)
        self._books = books
        if books.terms.notify is not None:
            self._watch = Watch(books.address)
            self._notifier = Notifier(books)
        market = Market(allocator, mechanism, books.purse, books.before_round, self._limits)
        market.ended = books.ended()
        self._started_market = market
        for record in self._replayed(books):
            market.tell(record)
        self.promised = books.awarded()
        if self._notifier is not None and market.ended is None:
            # An earlier process may have stopped before its notifications arrived.
            self._notifier.tell(attentions(books))

    @property
    def ended(self) -> str | None:
        """The reason why the run ended; None while it goes on."""
        if self._started_market is None:
            return None
        return self._started_market.ended

    @property
    def purse(self) -> Purse:
        """The money and the rounds that are left."""
        return self._market.purse

    @property
    def round(self) -> int:
        """The number of the round to be played; 0 until the initial model is evaluated."""
        if not self._market.begun:
            return 0
        return self._market.purse.round

    @property
    def checkpoint(self) -> str | None:
        """The digest that the last round was settled with, to recognize your saved model by."""
        if self._books is None:
            return None
        return self._books.committed_checkpoint(self.round - 1)

    def begin(self, evaluation: Evaluation | float) -> RoundRecord | None:
        """Settle round 0, the evaluation of the initial model; None if the books hold it already.

        Args:
            evaluation: The evaluation of the initial model, or only its accuracy.
        """
        if self._market.begun:
            return None
        return self._begin(_evaluation(evaluation))

    def _begin(self, evaluation: Evaluation) -> RoundRecord:
        return self._settled(self._market.begin(evaluation))

    def ask(self) -> Offer | None:
        """Return this round's offer, made before bids are opened; None once the run has ended.

        `ended` then says why. Asking more than once before the award does no harm.

        Raises:
            PausedError: If an operator has paused the run.
        """
        if not self._market.begun:
            raise InvalidRecordError(
                "the initial model is not evaluated yet; say begin(accuracy) first"
            )
        awarded = self.promised or self._unpromised
        if awarded is not None:
            return awarded.offer
        with self._notified_of_pauses():
            self._offer = self._market.ask()
        if self._offer is None:
            self._close()
        return self._offer

    def award(self, bids: Bids | Mapping[str, float | str | Decimal] | None = None) -> Award | None:
        """Open the bids; return who is recruited and what each is promised.

        With books, the award is stored before this method returns. A round that was awarded before,
        even by an earlier process, keeps its award, whatever is bid now. Returns None if the run
        ends here, because the money left cannot pay what the offer wants.

        Args:
            bids: The bids of all clients, or each client's price by its name, of which bad ones are
                left out (see `promised.left_out`); None only for a round that was awarded before.

        Raises:
            PausedError: If the award must wait for an operator's answer; call `award` again once
                there is one.
        """
        awarded = self.promised or self._unpromised
        if awarded is None:
            awarded = self._awarded(bids)
        elif self._books is not None:
            # An operator may have answered, or a call that failed may have stored the award.
            awarded = self._books.awarded() or awarded
        if awarded is None:
            self._close()
            return None
        if self._books is not None:
            self._unpromised = awarded
            try:
                with self._notified_of_pauses():
                    self._books.record(awarded)
            except PausedError:  # it is stored, and waits for an answer
                self._promise(awarded)
                raise
        self._promise(awarded)
        return awarded.award

    def settle(
        self,
        delivery: Delivery | Evaluation | float | None = None,
        *,
        void: Mapping[str, str] = MappingProxyType({}),
        checkpoint: str | None = None,
    ) -> RoundRecord:
        """Settle the awarded round: every winner that delivered is paid, exactly once.

        With books, the payments are stored before this method returns. If it fails because the
        books could not be written, call it again: nothing was learned from the round, and a round
        that was stored all the same is not stored twice.

        Args:
            delivery: What came of the training; or only the new model's evaluation or accuracy,
                which says that all winners delivered except those in `void`. None for a round
                without winners, which leaves the model as it was.
            void: The winners that did not deliver, each with the reason; they are not paid. Ignored
                if `delivery` is a whole `Delivery`, which has its own.
            checkpoint: A digest of the model that you have saved; after a restart, the property
                `checkpoint` returns it.
        """
        if self.promised is None:
            raise InvalidRecordError("no round is promised; ask and award come before settle")
        award = self.promised.award
        if delivery is None and award.n:
            raise InvalidRecordError(
                f"round {self.round} has winners ({award.n}); say how good the model is now"
            )
        if delivery is None:
            delivery = self._market.unchanged()
        elif not isinstance(delivery, Delivery):
            delivered = {client: Evidence() for client in award.clients if client not in void}
            delivery = Delivery(_evaluation(delivery), delivered, void)
        return self._settled(self._market.settle(self.promised, delivery), checkpoint)

    def leave(self) -> None:
        """Wait a moment for notifications that are still being sent, before the program ends.

        `ledger.notify` names the command or URL that they go to.
        """
        if self._notifier is not None:
            self._notifier.finish()

    # --- helpers ---------------------------------------------------------------------------------

    @property
    def _market(self) -> Market:
        """The market of a started session."""
        if self._started_market is None:
            raise InvalidRecordError("the session has not started; say start(purse or books) first")
        return self._started_market

    def _bids_of(self, federation: Federation) -> Bids:
        """Return the round's bids; a federation that needs a person first pauses the run."""
        with self._notified_of_pauses():
            try:
                return federation.bids(self.round)
            except PausedError as paused:
                if self._books is not None:  # nobody gave a command
                    pause(self._books, by="bara", reason=UNSTORABLE.sub("?", str(paused)))
                raise

    def _awarded(
        self, bids: Bids | Mapping[str, float | str | Decimal] | None
    ) -> AwardedRound | None:
        """Award this round to the bids; None if the offer's shortfall ends the run."""
        offer = self._offer
        if offer is None:
            offer = self.ask()
        if offer is None:
            raise InvalidRecordError(
                f"the run has ended ({self.ended}); nobody is recruited any more"
            )
        if bids is None:
            raise InvalidRecordError(f"round {self.round} is not promised yet; hand in its bids")
        if not isinstance(bids, Bids):
            bids = Bids.opened(bids)
        return self._market.award(offer, bids)

    def _promise(self, awarded: AwardedRound) -> None:
        """Note that a round is promised in the books, if there are any."""
        self.promised = awarded
        self._unpromised = None

    def _settled(self, record: RoundRecord, checkpoint: str | None = None) -> RoundRecord:
        """Store a settled round in the books, then tell everybody who learns from it, once."""
        if self._books is not None:
            record = self._stored(record, self._books, checkpoint)
        self._market.tell(record)
        self.promised = None
        self._offer = None
        for learner in self._learners:
            learner(record)
        if self._watch is not None and self._notifier is not None:
            self._watch.tell(record)
            self._notifier.tell(self._watch.needs())
        return record

    def _stored(self, record: RoundRecord, books: Books, checkpoint: str | None) -> RoundRecord:
        """Store a settled round, unless a call that failed has stored it; return it as stored."""
        if self._unsettled:
            delivery = books.delivery(record.round)
            if delivery is not None:
                books.write_receipt()
                self._unsettled = False
                return replace(record, delivery=delivery)
        point("trained")
        memories = {role: _memory_after(record, part) for role, part in self._remembering.items()}
        resumable = _resumable(self.federation)
        if resumable is not None:
            checkpoint = resumable.sealed(record.round)
        self._unsettled = True
        books.record(record, memories, checkpoint)
        self._unsettled = False
        return record

    @contextlib.contextmanager
    def _notified_of_pauses(self) -> Iterator[None]:
        """Send notifications of whatever needs a person before a pause stops the run."""
        try:
            yield
        except PausedError:
            if self._notifier is not None:
                self._notifier.tell_all()
            raise

    def _close(self) -> None:
        """Store in the books why the run ended, and notify people of it."""
        if self._books is None:
            return
        self._books.close(self.ended or "")
        if self._notifier is not None:
            self._notifier.tell([Attention("ended", f"the run ended: {self.ended}")])
            self.leave()

    def _redacted(self, books: Books) -> tuple[Allocator, Mechanism]:
        """Return allocator and mechanism as the market may use them under the books' retention.

        If bids and menus are dropped, what was learned from them is restored from the books.
        """
        if books.terms.retention != "drop":
            return self.allocator, self.mechanism
        for role, part in (("allocator", self.allocator), ("mechanism", self.mechanism)):
            if isinstance(part, Remembers):
                self._remembering[role] = part
                memory = books.memory(role)
                if memory is not None:
                    part.restore(memory)
        allocator = cast("Allocator", Redacted(self.allocator))
        mechanism = cast("Mechanism", Redacted(self.mechanism))
        return allocator, mechanism

    def _replayed(self, books: Books) -> Iterator[RoundRecord]:
        """Yield the settled rounds while bringing federation and learners to where they end."""
        resumable = _resumable(self.federation)
        restored = 0  # the last round that the federation's checkpoint includes
        if resumable is not None:
            restored = resumable.checkpoint(books.last_round(), books.committed_checkpoint)
        forgotten = [(client, before) for client, before in books.forgotten() if before > restored]
        for record in books.history():
            for learner in self._learners:
                learner(record)
            if self._watch is not None:
                self._watch.tell(record)
            has_winners = bool(record.awarded.award.n)
            if resumable is not None and has_winners and record.round <= restored:
                resumable.replay(record)
            elif has_winners and not isinstance(self.federation, OwnLoop):
                forgotten = self._forget(forgotten, record.round)
                self._train_again(record, self.federation)
            yield record
        self._forget(forgotten, books.last_round() + 1)

    def _forget(self, clients: list[tuple[str, int]], round: int) -> list[tuple[str, int]]:
        """Forget each client whose first round without it has come; return the other clients."""
        others = []
        for client, before in clients:
            if before > round:
                others.append((client, before))
            elif isinstance(self.federation, Forgets):
                self.federation.forget(client, before)
        return others

    def _train_again(self, record: RoundRecord, federation: Federation) -> None:
        """Train a settled round again, without paying anybody; refuse a different result."""
        if not capabilities_of(federation).repeatable:
            raise LedgerError(
                f"round {record.round} is settled, but the checkpoint that the ledger commits to "
                "is missing; restore the run's folder"
            )
        if federation.train(record.round, record.awarded.award) != record.delivery:
            raise LedgerError(
                f"round {record.round}, trained again, gives a different result from the ledger's; "
                "use the same data and the same kind of machine, or restore the checkpoint"
            )


def _memory_after(record: RoundRecord, part: Remembers) -> Any:
    """Return what an allocator or mechanism will remember once it is told a round.

    A copy is told, because the round is not stored yet.
    """
    told = deepcopy(part)
    cast("Mechanism", told).tell(record)
    return told.memory()


def _resumable(federation: Federation | OwnLoop) -> Resumable | None:
    """Return the federation if it saves checkpoints, else None; refuse half of the protocol."""
    if isinstance(federation, Resumable):
        return federation
    if hasattr(federation, "checkpoint"):  # its silos would train settled rounds again, unpaid
        raise ConfigError(
            f"{name_of(federation)} has `checkpoint`, but not all of `bara.protocols.Resumable`; "
            "add `sealed` and `replay`"
        )
    return None


def _evaluation(given: Evaluation | float) -> Evaluation:
    if isinstance(given, Evaluation):
        return given
    return Evaluation(given)

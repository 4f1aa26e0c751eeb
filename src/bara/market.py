"""The market: the one loop that joins allocator, mechanism and federation (paper's steps 1 to 4, Algorithm 1).

Each round is yielded twice: first as awarded, so that the promise can be stored before anyone
trains, then as settled. The loop knows protocols only, and can go on from stored records and a
stored award.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from bara.errors import InvalidOfferError, InvalidRecordError, OverspentError
from bara.protocols import Allocator, Believer, Federation, Mechanism, name_of
from bara.records import AwardedRound, Bids, Delivery, Evaluation, Offer, Purse, RoundRecord
from bara.text import counted


class Backoff:
    """Keeps clients that did not deliver away for a growing number of rounds: 1, 2, 4, ... until they deliver."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._until: dict[str, int] = {}

    def tell(self, record: RoundRecord) -> None:
        """Learn who failed and who came back."""
        for client in record.delivery.delivered:
            self._failures.pop(client, None)
        for client in record.delivery.failed:
            failures = self._failures.get(client, 0)
            self._until[client] = record.round + 2 ** min(failures, 30)
            self._failures[client] = failures + 1

    def away(self, round_number: int) -> set[str]:
        """Who may not take part in that round."""
        return {client for client, last in self._until.items() if round_number <= last}


def check_award(awarded: AwardedRound, bids: Bids, mechanism: Mechanism) -> None:
    """Refuse an award that nobody may promise, whoever wrote the mechanism, before it is stored.

    That amounts are whole and within the purse, the records see to themselves.

    Args:
        awarded: The round as the mechanism would have it.
        bids: The bids as they were opened.
        mechanism: Whose award it is, and what it claims.
    """
    award, name, show = awarded.award, name_of(mechanism), awarded.purse.show
    if award.cost > awarded.offer.cap(award.n):
        raise OverspentError(
            f"mechanism {name} awards {show(award.cost)} to {counted(award.n, 'client')}; the offer for that "
            f"many is at most {show(awarded.offer.cap(award.n))}"
        )
    rational, unit = "individually-rational" in mechanism.claims, awarded.purse.unit
    for client, payment in zip(award.clients, award.payments, strict=True):
        if payment % unit:
            raise InvalidRecordError(
                f"mechanism {name} pays {client!r} {show(payment)}; it must be a whole multiple of "
                f"{show(unit)}, which the bids carry as their unit"
            )
        place = bisect_left(bids.clients, client)  # they are sorted
        if place == len(bids) or bids.clients[place] != client:
            raise InvalidRecordError(
                f"mechanism {name} recruits {client!r}, which did not bid in this round"
            )
        if rational and payment < (asked := int(bids.prices[place])):
            raise InvalidRecordError(
                f"mechanism {name} pays {client!r} {show(payment)}, less than the {show(asked)} it asks; "
                "the mechanism claims 'individually-rational', so it must not"
            )


class Market:
    """Plays a federation's rounds under a budget.

    Args:
        allocator: Decides how much a round may cost.
        mechanism: Decides who is recruited and what they are paid.
        federation: Bids and trains; None where both are handed in from outside (`begin`, `ask`,
            `award`, `settle`).
        purse: The budget and the deadline.
        before_round: Shown the purse before each offer; returns the one to play with, which an
            operator may have topped up, or raises to stop between rounds.
    """

    def __init__(
        self,
        allocator: Allocator,
        mechanism: Mechanism,
        federation: Federation | None,
        purse: Purse,
        before_round: Callable[[Purse], Purse] = lambda purse: purse,
    ) -> None:
        if purse.round != 1:
            raise InvalidRecordError(
                f"a market must open with round 1, got round {purse.round}; hand it the past as history"
            )
        self.purse = purse
        self.ended: str | None = None
        """Why the market ended, once it has."""
        self._allocator = allocator
        self._mechanism = mechanism
        self._federation = federation
        self._before_round = before_round
        self._backoff = Backoff()
        self._evaluation: Evaluation | None = None

    @property
    def begun(self) -> bool:
        """Whether the initial model is evaluated."""
        return self._evaluation is not None

    def rounds(
        self, history: Iterable[RoundRecord] = (), awarded: AwardedRound | None = None
    ) -> Iterator[AwardedRound | RoundRecord]:
        """Yield each round as awarded and then as settled; round 0, the initial evaluation, comes settled.

        Args:
            history: Settled rounds of an earlier session, from round 0 on; they are told, not
                yielded.
            awarded: The promise that session had stored but not settled; the round is trained as
                promised.
        """
        for record in history:
            self.tell(record)
        if not self.begun:
            yield self.begin(self._trains.evaluate())
        while (this := awarded or self._award()) is not None:
            awarded = None
            yield this
            yield self.settle(this, self.train(this))

    def begin(self, evaluation: Evaluation) -> RoundRecord:
        """Round 0: the initial model, evaluated."""
        return self.tell(RoundRecord.initial(self.purse, evaluation))

    def ask(self) -> Offer | None:
        """Step 1: the offer, before bids are opened; None where the run has ended, and `ended` says why."""
        if self.ended is not None:  # in an earlier session: what is bid since changes nothing
            return None
        if not self.purse.rounds_left:
            self.ended = "the deadline is reached"
            return None
        self.purse = self._before_round(self.purse)
        offer = self._allocator.ask(self.purse)
        if not isinstance(offer, Offer):
            raise InvalidOfferError(
                f"{type(self._allocator).__name__}.ask must return an Offer, got {offer!r}"
            )
        if offer.stopped:
            self.ended = offer.reason or "the allocator stopped"
            return None
        return offer

    def award(self, offer: Offer, bids: Bids) -> AwardedRound | None:
        """Step 2: the menu of the sealed bids and the award; None where the offer's shortfall ends the run."""
        bids = bids.without(self._backoff.away(self.purse.round)).in_units_of(self.purse.unit)
        belief = self._allocator.belief() if isinstance(self._allocator, Believer) else None
        awarded = AwardedRound.of(self.purse, offer, self._mechanism.menu(bids), belief)
        if awarded.award.fell_short and offer.shortfall == "stop":
            self.ended = "the money left cannot pay what the allocator wants"
            return None
        check_award(awarded, bids, self._mechanism)
        return awarded

    def train(self, awarded: AwardedRound) -> Delivery:
        """Steps 3 and 4, by the federation; a round that recruits nobody leaves the model as it is."""
        if awarded.award.n:
            return self._trains.train(awarded.purse.round, awarded.award)
        return self.unchanged()

    def unchanged(self) -> Delivery:
        """What comes of a round that recruits nobody."""
        return Delivery(self._evaluation)  # type: ignore[arg-type] # round 0 has set it

    def settle(self, awarded: AwardedRound, delivery: Delivery) -> RoundRecord:
        """The round as it ended, of which allocator and mechanism are told."""
        return self.tell(awarded.settle(delivery))

    def tell(self, record: RoundRecord) -> RoundRecord:
        """Let everybody learn from a settled round."""
        self._allocator.tell(record)
        self._mechanism.tell(record)
        self._backoff.tell(record)
        self._evaluation = record.evaluation
        self.purse = record.purse_after
        return record

    def _award(self) -> AwardedRound | None:
        offer = self.ask()
        return None if offer is None else self.award(offer, self._trains.bids(self.purse.round))

    @property
    def _trains(self) -> Federation:
        if self._federation is None:
            raise InvalidRecordError(
                "this market has no federation; hand in evaluation, bids and deliveries yourself"
            )
        return self._federation

"""The market: the steps of one round (ask, award, settle) and the checks on them.

The market joins allocator and mechanism (the paper's steps 1 and 2 of Algorithm 1). It has no loop
and no federation: `bara.runs.session` plays the rounds, stores each promise before anyone trains,
and hands the market what came of the training.
"""

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from bara.errors import InvalidOfferError, InvalidRecordError, OverspentError
from bara.mechanisms.client_cap import ClientCap
from bara.protocols import Allocator, Believer, Mechanism, name_of
from bara.records import (
    TIE,
    AwardedRound,
    Bids,
    Delivery,
    Evaluation,
    LeftOut,
    Limits,
    Offer,
    Purse,
    RoundRecord,
)
from bara.text import counted

BACKS_OFF = "it failed before and backs off"
"""Why the market leaves a client out of a round."""


class Backoff:
    """The clients that did not deliver, kept away for 1, 2, 4, ... rounds until they deliver."""

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}
        self._until: dict[str, int] = {}

    def tell(self, record: RoundRecord) -> None:
        """Learn from a settled round which clients failed and which came back."""
        for client in record.delivery.delivered:
            self._failures.pop(client, None)
        for client in record.delivery.failed:
            failures = self._failures.get(client, 0)
            self._until[client] = record.round + 2 ** min(failures, 30)
            self._failures[client] = failures + 1

    def away(self, round_number: int) -> set[str]:
        """Return the clients that may not take part in that round."""
        return {client for client, last in self._until.items() if round_number <= last}


def strangers(mechanism: Mechanism, bids: Bids) -> dict[str, str]:
    """Return the clients that the run's register does not hold, each with the reason."""
    return mechanism.strangers(bids) if isinstance(mechanism, ClientCap) else {}


def beyond_limits(bids: Bids, purse: Purse, limits: Limits) -> dict[str, str]:
    """Return the clients whose bids may not take part in a round, each with the reason.

    No mechanism is shown a price that the whole budget cannot pay, nor a number that a client
    cannot be believed: one absurd bid would decide the round for everybody else. No client can gain
    by being left out for its price, because nobody is ever paid more than the budget.

    Args:
        bids: The bids.
        purse: The purse before the round.
        limits: The limits to the bids' columns.
    """
    reasons: dict[str, str] = {}
    for name, values in bids.columns.items():
        if name != TIE:
            for place, reason in limits.exceeded(name, values).items():
                reasons[bids.clients[place]] = reason
    for place in np.flatnonzero(bids.prices > purse.total).tolist():
        asked = purse.show(int(bids.prices[place]))
        reasons[bids.clients[place]] = (
            f"it asks {asked}, more than the whole budget, {purse.show(purse.total)}"
        )
    return reasons


def check_offer(allocator: Allocator, offer: object) -> None:
    """Refuse what is not an offer, whoever wrote the allocator."""
    if isinstance(offer, Offer):
        return
    hint = "bara.Offer.spend(bara.money(AMOUNT)) spends up to an amount"
    raise InvalidOfferError(
        f"{type(allocator).__name__}.ask must return an Offer, got {offer!r}; {hint}, "
        "bara.Offer.recruit(N) recruits N clients"
    )


def check_award(awarded: AwardedRound, bids: Bids, mechanism: Mechanism) -> None:
    """Refuse an award that must not be promised, whoever wrote the mechanism, before it is stored.

    The records themselves check that amounts are whole and within the purse.

    Args:
        awarded: The round as the mechanism would award it.
        bids: The bids as they were opened.
        mechanism: The mechanism that made the award, with the properties it claims.
    """
    award = awarded.award
    name = name_of(mechanism)
    show = awarded.purse.show
    most = awarded.offer.cap(award.n)
    if award.cost > most:
        raise OverspentError(
            f"mechanism {name} awards {show(award.cost)} to {counted(award.n, 'client')}; the "
            f"offer for that many is at most {show(most)}"
        )
    is_rational = "individually-rational" in mechanism.claims
    unit = awarded.purse.unit
    for client, payment in zip(award.clients, award.payments, strict=True):
        if payment % unit:
            raise InvalidRecordError(
                f"mechanism {name} pays {client!r} {show(payment)}; it must be a whole multiple of "
                f"{show(unit)}, which the bids carry as their unit"
            )
        place = bisect_left(bids.clients, client)  # clients are sorted
        if place == len(bids) or bids.clients[place] != client:
            raise InvalidRecordError(
                f"mechanism {name} recruits {client!r}, which did not bid in this round"
            )
        asked = int(bids.prices[place])
        if is_rational and payment < asked:
            raise InvalidRecordError(
                f"mechanism {name} pays {client!r} {show(payment)}, less than the {show(asked)} it "
                "asks; the mechanism claims 'individually-rational', so it must not"
            )


class Market:
    """The steps of a run, in their order: begin once; then ask, award and settle each round.

    `begin` and `settle` return a record that nobody knows yet: store it, then `tell` it once.

    Args:
        allocator: Decides how much a round may cost.
        mechanism: Decides who is recruited and what they are paid.
        purse: The budget and the deadline.
        before_round: Called with the purse before each offer; returns the purse to play with,
            which an operator may have topped up, or raises to stop between rounds.
        limits: The limits to what clients say of themselves in their bids.
    """

    def __init__(
        self,
        allocator: Allocator,
        mechanism: Mechanism,
        purse: Purse,
        before_round: Callable[[Purse], Purse] = lambda purse: purse,
        limits: Limits | None = None,
    ) -> None:
        if purse.round != 1:
            raise InvalidRecordError(
                f"a market must open with round 1, got round {purse.round}; tell it the past rounds"
            )
        self.purse = purse
        self.ended: str | None = None
        """The reason why the run ended, once it has."""
        self._allocator = allocator
        self._mechanism = mechanism
        self._before_round = before_round
        self._limits = Limits() if limits is None else limits
        self._backoff = Backoff()
        self._evaluation: Evaluation | None = None

    @property
    def begun(self) -> bool:
        """True once the initial model is evaluated."""
        return self._evaluation is not None

    def begin(self, evaluation: Evaluation) -> RoundRecord:
        """Settle round 0: the evaluation of the initial model."""
        return RoundRecord.initial(self.purse, evaluation)

    def ask(self) -> Offer | None:
        """Make this round's offer before bids are opened; None once the run has ended."""
        if self.ended is not None:  # a run that has ended stays so, whatever is bid since
            return None
        if not self.purse.rounds_left:
            self.ended = "the deadline is reached"
            return None
        self.purse = self._before_round(self.purse)
        offer = self._allocator.ask(self.purse)
        check_offer(self._allocator, offer)
        if offer.stopped:
            self.ended = offer.reason or "the allocator stopped"
            return None
        return offer

    def award(self, offer: Offer, bids: Bids) -> AwardedRound | None:
        """Turn the sealed bids into an award; None where the offer's shortfall ends the run."""
        away = self._backoff.away(self.purse.round)
        opened = bids.in_units_of(self.purse.unit)
        present = opened.without(away)
        unknown = strangers(self._mechanism, present)
        known = present.without(unknown)  # what a stranger says sets no limit for the others
        beyond = beyond_limits(known, self.purse, self._limits)
        bids = known.without(beyond)
        belief = None
        if isinstance(self._allocator, Believer):
            belief = self._allocator.belief()
        menu = self._mechanism.menu(bids)
        reasons = {**dict.fromkeys(away, BACKS_OFF), **unknown, **beyond, **menu.left_out}
        left_out = LeftOut.of(opened, reasons)
        awarded = AwardedRound.of(self.purse, offer, menu, belief, left_out)
        if awarded.award.fell_short and offer.shortfall == "stop":
            self.ended = "the money left cannot pay what the allocator wants"
            return None
        check_award(awarded, bids, self._mechanism)
        return awarded

    def unchanged(self) -> Delivery:
        """Return the delivery of a round that recruits nobody: the model as it was."""
        return Delivery(self._evaluation)  # type: ignore[arg-type] # round 0 has set it

    def settle(self, awarded: AwardedRound, delivery: Delivery) -> RoundRecord:
        """Settle an awarded round."""
        return awarded.settle(delivery)

    def tell(self, record: RoundRecord) -> None:
        """Let allocator, mechanism and back-off learn from a settled round, once it is stored."""
        self._allocator.tell(record)
        self._mechanism.tell(record)
        self._backoff.tell(record)
        self._evaluation = record.evaluation
        self.purse = record.purse_after

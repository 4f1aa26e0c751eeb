"""Rounds as awarded and as settled, with evaluations, deliveries and the allocator's belief."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from bara.errors import InvalidRecordError, OverspentError
from bara.records.bids import Bids, IntArray
from bara.records.menus import Menu
from bara.records.offers import Award, Offer, Purse
from bara.text import storable


@dataclass(frozen=True)
class Evaluation:
    """The quality of the global model, measured on data that the server holds.

    Every attribute but `accuracy` is None where it is not known.

    Attributes:
        accuracy: A fraction in [0, 1], on which decisions are based.
        loss: The mean loss on the same data.
        test_accuracy: The accuracy to report, if decisions are based on separate validation data.
        test_loss: The loss to report, if decisions are based on separate validation data.
        samples: The number of samples on which the accuracy was measured; the more, the more it can
            be trusted.
        metric: The quantity that was measured, if that is not a fraction (an RMSE, say) and had to
            be converted into `accuracy`.
    """

    accuracy: float
    loss: float | None = None
    test_accuracy: float | None = None
    test_loss: float | None = None
    samples: int | None = None
    metric: float | None = None

    def __post_init__(self) -> None:
        """Refuse an accuracy that is not a fraction (a percentage, say) and an infinite loss."""
        _check(self, _FRACTION, "accuracy", "test_accuracy")
        _check(self, _FINITE, "loss", "test_loss", "metric")
        _check(self, _COUNT, "samples")
        if self.accuracy is None:
            raise InvalidRecordError("accuracy must be a fraction in [0, 1], got None")

    @property
    def reported_accuracy(self) -> float:
        """The accuracy that tables and figures show: on test data, if there are any."""
        return self.accuracy if self.test_accuracy is None else self.test_accuracy

    @property
    def reported_loss(self) -> float | None:
        """The loss that tables and figures show: on test data, if there are any."""
        return self.loss if self.test_loss is None else self.test_loss


@dataclass(frozen=True)
class Evidence:
    """The measurements that the server took of one client's delivery; None where it took none.

    Attributes:
        samples: The number of samples that the client trained on.
        loss_before: The loss on the client's own data of the global model that it received.
        loss_after: The loss on the client's own data of the model that it returned.
        seconds: The time from sending the model to receiving the reply.
        bytes_sent: The bytes sent to the client.
        bytes_received: The bytes received from the client.
    """

    samples: int | None = None
    loss_before: float | None = None
    loss_after: float | None = None
    seconds: float | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None

    def __post_init__(self) -> None:
        """Refuse NaN and infinity, which would ruin all that a mechanism has learned."""
        _check(self, _FINITE, *self.__dataclass_fields__)


@dataclass(frozen=True)
class Shapley:
    """The Shapley values of the clients whose updates made a round's model, as estimated.

    Attributes:
        values: Each client's share of what the model gained in the round, on reported data.
        errors: The standard error of each value, from the orders of clients that were drawn.
        evaluations: How many models the server evaluated for it.
    """

    values: Mapping[str, float]
    errors: Mapping[str, float]
    evaluations: int


@dataclass(frozen=True)
class Delivery:
    """The outcome of an award: which winners delivered, and the model that resulted.

    Attributes:
        evaluation: The evaluation of the model after the round.
        delivered: The clients that delivered, each with the evidence of its delivery.
        void: The clients that did not deliver, each with the reason.
        ages: The number of updates remembered from earlier rounds that also went into the model, by
            their age in rounds.
        forgotten: The clients whose remembered updates were dropped before this round.
        blameless: The void clients that did not fail, because they were never asked to train or
            because no update at all was accepted. They are not paid either, but may bid again at
            once.
        contributions: For each client, how much better the model is on reported data because of the
            client's remembered update. For reports only: no payment depends on it.
        shapley: Each client's share of what the model gained; None where it was not estimated.
            For reports only, too.
    """

    evaluation: Evaluation
    delivered: Mapping[str, Evidence] = field(default_factory=dict)
    void: Mapping[str, str] = field(default_factory=dict)
    ages: Mapping[int, int] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()
    blameless: tuple[str, ...] = ()
    contributions: Mapping[str, float] = field(default_factory=dict)
    shapley: Shapley | None = None

    def __post_init__(self) -> None:
        """Freeze the mappings, and make reasons, which clients may have written, storable."""
        reasons = {client: storable(str(reason)) for client, reason in self.void.items()}
        mappings: dict[str, Mapping[Any, Any]] = {
            "delivered": self.delivered,
            "void": reasons,
            "ages": self.ages,
            "contributions": self.contributions,
        }
        for name, value in mappings.items():
            object.__setattr__(self, name, MappingProxyType(dict(value)))
        not_void = set(self.blameless) - reasons.keys()
        if not_void:
            raise InvalidRecordError(
                f"client {min(not_void)!r} is blameless, but not void; "
                "only a void client can be blameless"
            )

    @property
    def failed(self) -> tuple[str, ...]:
        """The clients that should have delivered and did not."""
        return tuple(client for client in self.void if client not in self.blameless)

    @classmethod
    def complete(cls, award: Award, evaluation: Evaluation) -> Self:
        """Make the delivery of an award whose winners all delivered."""
        return cls(evaluation, {client: Evidence() for client in award.clients})


def taken_home(models: Mapping[str, Evaluation]) -> str:
    """Return the name of the model to keep: the best on validation data, by loss or else accuracy.

    Without separate validation data (as in the paper) nothing can be selected: the final model is
    kept.

    Args:
        models: The evaluations by name, `final` among them; of equally good ones, the first wins.
    """
    if models["final"].test_accuracy is None:
        return "final"
    losses = {name: one.loss for name, one in models.items() if one.loss is not None}
    if len(losses) < len(models):  # losses can be compared only if every model has one
        return max(models, key=lambda name: models[name].accuracy)
    return min(losses, key=lambda name: losses[name])


@dataclass(frozen=True)
class Plan:
    """The plan of an allocator for the money left: a main phase, then an end phase.

    Attributes:
        main_n: Clients per round in the main phase.
        main_rounds: The expected number of rounds in the main phase.
        end_n: Clients per round in the end phase.
        end_rounds: The number of rounds in the end phase.
        spend: The expected cost of both phases, in micro-units.
        accuracy: The expected final accuracy.
        low: The accuracy that the final one exceeds with a probability of 95 %.
        high: The accuracy that the final one stays below with a probability of 95 %.
    """

    main_n: int
    main_rounds: float
    end_n: int
    end_rounds: int
    spend: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Prospect:
    """The accuracy of the kept model that a sum of money is expected to buy.

    Attributes:
        spend: What the whole run would cost, in micro-units.
        accuracy: The expected accuracy.
        low: The fifth percentile of the accuracy.
        high: The ninety-fifth percentile of the accuracy.
    """

    spend: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class MoneyOutlook:
    """The forecast of an allocator: what more money would buy, and whether the goal can be reached.

    Attributes:
        prospects: What the run would achieve at different total costs, from stopping now to
            spending twice the money that is left.
        enough: The total cost of the run at which the goal is reached, in micro-units; None if no
            cost considered is enough.
        chance: The probability that the kept model reaches the target if the allocator follows its
            plan; None without a target.
        sure: The probability that the model kept now has already reached the target; None without a
            target.
        out_of_reach: Whether the allocator believes that the target cannot be reached with the
            money and the rounds left.
    """

    prospects: tuple[Prospect, ...]
    enough: int | None = None
    chance: float | None = None
    sure: float | None = None
    out_of_reach: bool = False


@dataclass(frozen=True)
class Belief:
    """The current belief of an allocator, for logs, reports and the dashboard.

    Attributes:
        stage: What the allocator is doing now, in its own words.
        arms: The numbers of clients per round that the allocator considers.
        mean: For each arm, the expected final accuracy.
        deviation: For each arm, the standard deviation of the final accuracy.
        estimate: The final accuracy estimated from the last round alone; None if not estimated.
        plan: What to do with the money left; None if the allocator does not plan.
        outlook: What more money would buy; None if the allocator cannot tell.
    """

    stage: str
    arms: tuple[int, ...] = ()
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    estimate: float | None = None
    plan: Plan | None = None
    outlook: MoneyOutlook | None = None


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The bids that did not take part in their round.

    Attributes:
        bids: The bids, those excepted that cannot be read or paid.
        reasons: Why each bid was left out, by client; also of the clients that are not in `bids`.
    """

    bids: Bids
    reasons: Mapping[str, str]

    @classmethod
    def of(cls, opened: Bids, reasons: Mapping[str, str]) -> Self | None:
        """Find those who bid among the clients that may not take part; None if nobody did.

        Args:
            opened: All opened bids.
            reasons: Why clients may not take part, by client.
        """
        found = {client: reasons[client] for client in opened.clients if client in reasons}
        if not found and not opened.left_out:
            return None
        others = set(opened.clients) - found.keys()
        return cls(opened.without(others), {**opened.left_out, **found})


@dataclass(frozen=True, eq=False)
class AwardedRound:
    """A round as promised, which is stored before any client trains.

    Attributes:
        purse: The purse before the round.
        offer: The allocator's offer, made before the bids were opened.
        bids: The opened bids that took part.
        costs: The costs on the menu: `costs[n - 1]` is what n clients would have cost.
        award: The winners and their payments.
        belief: The allocator's belief when it made the offer; None if it states none.
        privacy: The privacy budget that each winner spends by delivering; None if the bids have no
            column `epsilon`.
        left_out: The opened bids that did not take part, and why; None if all did.
    """

    purse: Purse
    offer: Offer
    bids: Bids
    costs: IntArray
    award: Award
    belief: Belief | None = None
    privacy: Mapping[str, float] | None = None
    left_out: LeftOut | None = None

    def __post_init__(self) -> None:
        """Refuse an award that the purse cannot pay."""
        if self.award.cost > self.purse.left:
            raise OverspentError(
                f"round {self.purse.round} promises {self.purse.show(self.award.cost)}; at most "
                f"{self.purse.show(self.purse.left)} is left in the purse"
            )

    @classmethod
    def of(
        cls,
        purse: Purse,
        offer: Offer,
        menu: Menu,
        belief: Belief | None = None,
        left_out: LeftOut | None = None,
    ) -> Self:
        """Make the round in which an offer is met from a menu."""
        award = menu.award(offer, purse)
        privacy = _privacy(menu.bids, award)
        return cls(purse, offer, menu.bids, menu.costs, award, belief, privacy, left_out)

    @property
    def opened(self) -> Bids:
        """All bids of the round, those included that did not take part."""
        if self.left_out is None:
            return self.bids
        return self.bids.joined(self.left_out.bids)

    def settle(self, delivery: Delivery) -> "RoundRecord":
        """Return the settled round, once the delivery is known."""
        return RoundRecord(self, delivery)


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """A settled round, which allocators and mechanisms are told to learn from.

    Attributes:
        awarded: The round as promised.
        delivery: Which winners delivered, and the model that resulted.
    """

    awarded: AwardedRound
    delivery: Delivery

    def __post_init__(self) -> None:
        """Refuse a delivery that does not account for exactly the winners."""
        winners = set(self.awarded.award.clients)
        delivered = set(self.delivery.delivered)
        void = set(self.delivery.void)
        both = delivered & void
        if both:
            raise InvalidRecordError(
                f"client {min(both)!r} is both delivered and void; it must be one of them"
            )
        strangers = (delivered | void) - winners
        if strangers:
            raise InvalidRecordError(
                f"client {min(strangers)!r} is delivered or void, but was not recruited"
            )
        missing = winners - delivered - void
        if missing:
            raise InvalidRecordError(
                f"client {min(missing)!r} was recruited; "
                "it must have a delivery, or a reason why it has none"
            )

    @classmethod
    def initial(cls, purse: Purse, evaluation: Evaluation) -> Self:
        """Make round 0, in which only the initial model is evaluated and nobody is recruited."""
        before = replace(purse, round=0)
        no_bids = Bids.of({})
        awarded = AwardedRound(before, Offer.skip(), no_bids, no_bids.prices, Award())
        return cls(awarded, Delivery(evaluation))

    @property
    def round(self) -> int:
        """The number of the round; 0 is the evaluation of the initial model."""
        return self.awarded.purse.round

    @property
    def n(self) -> int:
        """The number of clients that took part: recruited and delivered."""
        return len(self.delivery.delivered)

    @property
    def payments(self) -> dict[str, int]:
        """The payment of each client that delivered, in micro-units."""
        award = self.awarded.award
        promised = zip(award.clients, award.payments, strict=True)
        delivered = self.delivery.delivered
        return {client: payment for client, payment in promised if client in delivered}

    @property
    def paid(self) -> int:
        """The sum that the round cost in the end, in micro-units."""
        return sum(self.payments.values())

    @property
    def evaluation(self) -> Evaluation:
        """The evaluation of the model after the round."""
        return self.delivery.evaluation

    @property
    def purse_after(self) -> Purse:
        """The purse for the next round."""
        return self.awarded.purse.after(self.paid)


_FINITE = (-sys.float_info.max, sys.float_info.max, "a finite number")
_FRACTION = (0, 1, "a fraction in [0, 1]")
_COUNT = (1, sys.maxsize, "at least 1")


def _check(record: object, required: tuple[float, float, str], *names: str) -> None:
    """Convert numpy's numbers into Python's own; refuse numbers out of range. None is let through.

    Args:
        record: The record whose attributes to check.
        required: The smallest and the largest number allowed, and both in words, for errors.
        *names: The names of the attributes.
    """
    low, high, words = required
    for name in names:
        value = getattr(record, name)
        plain = value.item() if isinstance(value, np.generic) else value
        if plain is not None:
            is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
            if not (is_number and low <= plain <= high):
                raise InvalidRecordError(f"{name} must be {words}, got {value}")
        object.__setattr__(record, name, plain)


def _privacy(bids: Bids, award: Award) -> dict[str, float] | None:
    """Return the privacy budget that each winner bids; None if the bids have none."""
    if "epsilon" not in bids.columns:
        return None
    budgets = dict(zip(bids.clients, bids.columns["epsilon"].tolist(), strict=True))
    return {client: budgets[client] for client in award.clients}

"""What a round taught: evaluations, deliveries, the allocator's belief, and the record that joins them."""

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
from bara.text import UNSTORABLE


@dataclass(frozen=True)
class Evaluation:
    """How good the global model is, on data the server holds.

    Attributes:
        accuracy: A fraction in [0, 1]; decisions are made on it.
        loss: The mean loss, where it is known.
        test_accuracy: The accuracy to report, where decisions use a separate validation part.
        test_loss: The loss to report, likewise.
        samples: How many samples the accuracy was measured on, where that is known; it says how far
            to trust it.
        metric: What the accuracy stands for, as it was measured, where that is no fraction (an
            RMSE).
    """

    accuracy: float
    loss: float | None = None
    test_accuracy: float | None = None
    test_loss: float | None = None
    samples: int | None = None
    metric: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no accuracy (a per cent figure, say) and a loss that is not finite."""
        _check(self, _FRACTION, "accuracy", "test_accuracy")
        _check(self, _FINITE, "loss", "test_loss", "metric")
        _check(self, _COUNT, "samples")
        if self.accuracy is None:
            raise InvalidRecordError("accuracy must be a fraction in [0, 1], got None")

    @property
    def reported_accuracy(self) -> float:
        """The accuracy that tables and figures show."""
        return self.accuracy if self.test_accuracy is None else self.test_accuracy

    @property
    def reported_loss(self) -> float | None:
        """The loss that tables and figures show."""
        return self.loss if self.test_loss is None else self.test_loss


@dataclass(frozen=True)
class Evidence:
    """What the server saw of one client's delivery.

    Attributes:
        samples: How much data it trained on, where that is known.
        loss_before: Its loss on its own data with the global model it was sent.
        loss_after: The same with the model it returned.
        seconds: From sending it the model to its reply, where that was measured.
        bytes_sent: How much it was sent.
        bytes_received: How much it sent back.
    """

    samples: int | None = None
    loss_before: float | None = None
    loss_after: float | None = None
    seconds: float | None = None
    bytes_sent: int | None = None
    bytes_received: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is not finite: mechanisms learn from it, and one NaN would spoil all that they know."""
        _check(self, _FINITE, *self.__dataclass_fields__)


@dataclass(frozen=True)
class Delivery:
    """What came of an award.

    Attributes:
        evaluation: The model afterwards.
        delivered: Who delivered, and what the server saw of it.
        void: Who did not, and why.
        ages: How many updates of earlier rounds the model was made of, too, by their age in rounds.
        forgotten: Whose remembered updates were let go before this round.
        blameless: Who of the void did not fail: they were never asked to train, or nobody's update
            was taken. They are not paid, and do not back off.
        contributions: What the model is better by, on reported data, for each remembered update in
            it; for reports alone, nothing is paid by it.
    """

    evaluation: Evaluation
    delivered: Mapping[str, Evidence] = field(default_factory=dict)
    void: Mapping[str, str] = field(default_factory=dict)
    ages: Mapping[int, int] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()
    blameless: tuple[str, ...] = ()
    contributions: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze the mappings; of a reason, which may be a stranger's, keep what a ledger can hold."""
        reasons = {
            client: UNSTORABLE.sub("\ufffd", str(reason)) for client, reason in self.void.items()
        }
        frozen: dict[str, Mapping[Any, Any]] = {
            "delivered": self.delivered,
            "void": reasons,
            "ages": self.ages,
        }
        frozen["contributions"] = self.contributions
        for name, value in frozen.items():
            object.__setattr__(self, name, MappingProxyType(dict(value)))
        if strangers := set(self.blameless) - reasons.keys():
            raise InvalidRecordError(
                f"client {min(strangers)!r} is blameless, but not void; only a void client can be blameless"
            )

    @property
    def failed(self) -> tuple[str, ...]:
        """Who should have delivered and did not."""
        return tuple(client for client in self.void if client not in self.blameless)

    @classmethod
    def complete(cls, award: Award, evaluation: Evaluation) -> Self:
        """Every winner delivered."""
        return cls(evaluation, {client: Evidence() for client in award.clients})


def taken_home(models: Mapping[str, Evaluation]) -> str:
    """Which of the models is kept: the one whose loss (or else accuracy) is best on validation; the last, of equals.

    Where decisions are made on the same data that are reported (the paper), nothing is selected:
    the last one counts.
    """
    final = models["final"]
    if final.test_accuracy is None:
        return "final"
    if any(one.loss is None for one in models.values()):
        return max(models, key=lambda name: models[name].accuracy)
    return min(models, key=lambda name: models[name].loss or 0.0)


@dataclass(frozen=True)
class Plan:
    """What an allocator that plans ahead means to do with what is left.

    Attributes:
        main_n: Clients per round it means to recruit until the end phase.
        main_rounds: For so many rounds.
        end_n: Clients per round in the end phase.
        end_rounds: How long that is.
        spend: What it expects to spend on both, in micro-units.
        accuracy: The final accuracy it expects.
        low: The final accuracy it expects to exceed with 95 % probability.
        high: The one it expects to stay below with 95 % probability.
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
    """What a sum of money is expected to buy: the accuracy of the kept model, nine times in ten between low and high.

    Attributes:
        spend: What the run will have cost in all, in micro-units.
        accuracy: Expected.
        low: The fifth percentile.
        high: The ninety-fifth.
    """

    spend: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class MoneyOutlook:
    """What more money would buy, and what an allocator makes of the goal it was given.

    Attributes:
        prospects: What the run comes to if it costs so much in all, from stopping now to twice the
            money that is left.
        enough: What the run has to cost in all for the goal, in micro-units; None where no sum
            considered is enough.
        chance: How sure it is that the kept model reaches the target, once it has followed its
            plan; None without one.
        sure: How sure it is that the model kept now has reached the target; None without one.
        out_of_reach: Whether it believes that the target cannot be reached with the money and the
            rounds left.
    """

    prospects: tuple[Prospect, ...]
    enough: int | None = None
    chance: float | None = None
    sure: float | None = None
    out_of_reach: bool = False


@dataclass(frozen=True)
class Belief:
    """What an allocator believes, for logs, reports and the dashboard.

    Attributes:
        stage: What it is doing now, in its own words.
        arms: The numbers of clients it considers.
        mean: For each arm, the final accuracy it expects.
        deviation: For each arm, how unsure it is.
        estimate: Its estimate of the final accuracy from the last round alone, if it made one.
        plan: What it means to do with what is left, if it plans.
        outlook: What more money would buy, if it can tell.
    """

    stage: str
    arms: tuple[int, ...] = ()
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    estimate: float | None = None
    plan: Plan | None = None
    outlook: MoneyOutlook | None = None


@dataclass(frozen=True, eq=False)
class AwardedRound:
    """A round as promised: stored before anyone trains.

    Attributes:
        purse: What there was to spend.
        offer: What the allocator said before the bids were opened.
        bids: The opened bids that took part.
        costs: The menu: what each n would have cost.
        award: Who was recruited at what price.
        belief: What the allocator believed, if it tells.
        privacy: The privacy budget each winner spends by delivering, where bids carry one
            (`epsilon`).
    """

    purse: Purse
    offer: Offer
    bids: Bids
    costs: IntArray
    award: Award
    belief: Belief | None = None
    privacy: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Refuse a promise that the purse cannot keep."""
        if self.award.cost > self.purse.left:
            raise OverspentError(
                f"round {self.purse.round} promises {self.purse.show(self.award.cost)}; at most "
                f"{self.purse.show(self.purse.left)} is left in the purse"
            )

    @classmethod
    def of(cls, purse: Purse, offer: Offer, menu: Menu, belief: Belief | None = None) -> Self:
        """The round that an offer buys from a menu."""
        award = menu.award(offer, purse)
        return cls(purse, offer, menu.bids, menu.costs, award, belief, _privacy(menu.bids, award))

    def settle(self, delivery: Delivery) -> "RoundRecord":
        """The round as it ended."""
        return RoundRecord(self, delivery)


@dataclass(frozen=True, eq=False)
class RoundRecord:
    """A settled round; allocators and mechanisms learn from it through `tell`."""

    awarded: AwardedRound
    delivery: Delivery

    def __post_init__(self) -> None:
        """Refuse a delivery that does not account for exactly the winners."""
        winners = set(self.awarded.award.clients)
        delivered, void = set(self.delivery.delivered), set(self.delivery.void)
        if delivered & void:
            raise InvalidRecordError(
                f"client {min(delivered & void)!r} is both delivered and void; it must be one of them"
            )
        if stranger := (delivered | void) - winners:
            raise InvalidRecordError(
                f"client {min(stranger)!r} is delivered or void, but was not recruited"
            )
        if silent := winners - delivered - void:
            raise InvalidRecordError(
                f"client {min(silent)!r} was recruited; it must have a delivery, or a reason why it has none"
            )

    @classmethod
    def initial(cls, purse: Purse, evaluation: Evaluation) -> Self:
        """Round 0: nobody recruited, nothing paid, the initial model evaluated."""
        before = replace(purse, round=0)
        nobody = Bids.of({})
        return cls(
            AwardedRound(before, Offer.skip(), nobody, nobody.prices, Award()), Delivery(evaluation)
        )

    @property
    def round(self) -> int:
        """Its number; 0 is the initial evaluation."""
        return self.awarded.purse.round

    @property
    def n(self) -> int:
        """How many clients took part: recruited and delivered."""
        return len(self.delivery.delivered)

    @property
    def payments(self) -> dict[str, int]:
        """What each client that delivered was paid."""
        award = self.awarded.award
        owed = zip(award.clients, award.payments, strict=True)
        return {client: payment for client, payment in owed if client in self.delivery.delivered}

    @property
    def paid(self) -> int:
        """What the round cost in the end."""
        return sum(self.payments.values())

    @property
    def evaluation(self) -> Evaluation:
        """The model after the round."""
        return self.delivery.evaluation

    @property
    def purse_after(self) -> Purse:
        """What is left for the next round."""
        return self.awarded.purse.after(self.paid)


_FINITE = (-sys.float_info.max, sys.float_info.max, "a finite number")
_FRACTION = (0, 1, "a fraction in [0, 1]")
_COUNT = (1, sys.maxsize, "at least 1")


def _check(record: object, required: tuple[float, float, str], *names: str) -> None:
    """Keep numpy's numbers as Python's own; refuse what is no such number, where it is known at all."""
    low, high, words = required
    for name in names:
        value = getattr(record, name)
        plain = value.item() if isinstance(value, np.generic) else value
        number = isinstance(plain, int | float) and not isinstance(plain, bool)
        if plain is not None and not (number and low <= plain <= high):
            raise InvalidRecordError(f"{name} must be {words}, got {value}")
        object.__setattr__(record, name, plain)


def _privacy(bids: Bids, award: Award) -> dict[str, float] | None:
    if "epsilon" not in bids.columns:
        return None
    budgets = dict(zip(bids.clients, bids.columns["epsilon"].tolist(), strict=True))
    return {client: budgets[client] for client in award.clients}

"""The summary of a run: collected round by round, and turned into the run's result."""

import math
from array import array
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from statistics import fmean
from types import MappingProxyType
from typing import Any

from bara.clients.bidding import Bidders
from bara.errors import ConfigError, InvalidRecordError
from bara.ledger import Books
from bara.ledger.retention import is_dropped
from bara.mechanisms.client_cap import UNKNOWN
from bara.records import (
    AwardedRound,
    Belief,
    Bids,
    Evaluation,
    Purse,
    RoundRecord,
    json_money,
    taken_home,
)
from bara.reports.contributions import Contributions, ShapleyScores
from bara.reports.result import UNENDED, Result
from bara.runs.config import Config


class Summary:
    """A few numbers of every round of a run, so that the rounds themselves need not stay in memory.

    Args:
        bidders: The bidders whose strategic clients' profit is counted; None to count none.
        keeps_bids: False if the ledger drops bids, so that what losers asked is not told either.

    Attributes:
        profit: The strategic clients' payments less their costs, over the rounds in which they
            were paid, in micro-units.
    """

    def __init__(self, bidders: Bidders | None = None, *, keeps_bids: bool = True) -> None:
        self.bidders = bidders
        self._asks = _LastAsks() if keeps_bids else None
        self.profit = 0
        self._payments: Counter[str] = Counter()
        self._contributions = Contributions()
        self._shapley = ShapleyScores()
        self._purse: Purse | None = None
        self._samples: int | None = None
        self._columns = _Columns()

    @property
    def has_begun(self) -> bool:
        """True once a round was added."""
        return self._purse is not None

    def tell(self, record: RoundRecord) -> None:
        """Add a settled round."""
        self._payments.update(record.payments)
        self._contributions.tell(record.delivery.contributions)
        self._shapley.tell(record.delivery.shapley)
        self._columns.tell(record)
        self._purse = record.purse_after
        if is_dropped(record.awarded.bids):
            self._asks = None
        if self._asks is not None:
            self._asks.tell(record.awarded)
        self._samples = record.evaluation.samples
        if record.round:  # a round's record holds the belief after the round before it
            self._columns.believe(record.awarded.belief)
        if self.bidders is not None:
            self._count_profit(record, self.bidders)

    def result(
        self,
        ended: str,
        belief: Belief | None = None,
        models: Mapping[str, Evaluation] = MappingProxyType({}),
        **identity: Any,
    ) -> Result:
        """Make the run's result.

        Args:
            ended: Why the run ended.
            belief: The allocator's belief after the last round; None if it states none.
            models: The evaluation of each saved model, of which the best is kept; may be empty.
            **identity: The other fields of `Result`.
        """
        if self._purse is None:
            raise InvalidRecordError("a run that has played no round has no result")
        self._columns.believe(belief)
        kept = "final"
        accuracy_kept = math.nan
        if models:
            kept = taken_home(models)
            accuracy_kept = models[kept].reported_accuracy
        accuracies = self._columns.accuracy
        amounts = json_money(
            budget=self._purse.total,
            spent=self._purse.spent,
            payments=dict(self._payments.most_common()),
            never_paid=None if self._asks is None else self._asks.without(self._payments),
        )
        return Result(
            **amounts,
            currency=self._purse.currency,
            rounds=self._purse.round - 1,
            ended=ended,
            accuracy_final=accuracies[-1],
            accuracy_kept=accuracy_kept,
            accuracy_last10=fmean(accuracies[1:][-10:] or accuracies),
            accuracy_best=max(accuracies),
            history=self._columns.history(),
            contributions=self._contributions.summary(),
            shapley=self._shapley.summary(),
            belief=None if belief is None else asdict(belief),
            kept=kept,
            samples=self._samples,
            models={name: _scores(one) for name, one in models.items()},
            **identity,
        )

    def _count_profit(self, record: RoundRecord, bidders: Bidders) -> None:
        paid = record.payments
        if not paid:
            return
        costs = dict(zip(bidders.clients, bidders.costs(record.round).tolist(), strict=True))
        for client in bidders.strategic:
            if client in paid:
                self.profit += paid[client] - costs[client]


class _LastAsks:
    """The price that each client asked last."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        self._newest = Bids.of({})

    def tell(self, awarded: AwardedRound) -> None:
        """Take in the bids of a round, of those who were left out, too, but not of strangers."""
        bids = awarded.bids
        if bids.clients != self._newest.clients:  # mostly, the same clients bid again
            self._note_newest()
        self._newest = bids
        if awarded.left_out is not None:
            others = awarded.left_out.bids
            for client, price in zip(others.clients, others.prices.tolist(), strict=True):
                if awarded.left_out.reasons[client] != UNKNOWN:
                    self._asked[client] = price

    def without(self, paid: Collection[str]) -> dict[str, int]:
        """Return the last price of each client that is not among those paid, the lowest first."""
        self._note_newest()
        unpaid = {client: price for client, price in self._asked.items() if client not in paid}
        return dict(sorted(unpaid.items(), key=lambda item: (item[1], item[0])))

    def _note_newest(self) -> None:
        prices = self._newest.prices.tolist()
        self._asked.update(zip(self._newest.clients, prices, strict=True))


class _Columns:
    """The numbers of a run's rounds, in compact arrays: a long run has millions of them."""

    def __init__(self) -> None:
        self.accuracy = array("d")
        self._n = array("q")
        self._paid = array("q")
        self._loss = array("d")
        self._remembered = array("q")
        self._age = array("d")
        self._oldest = array("q")
        self._estimate = array("d")
        self._forecast = (array("d"), array("d"), array("d"))

    def tell(self, record: RoundRecord) -> None:
        """Add a settled round."""
        ages = record.delivery.ages
        remembered = sum(ages.values())
        total_age = sum(age * count for age, count in ages.items())
        loss = record.evaluation.reported_loss
        self._n.append(record.n)
        self._paid.append(record.paid)
        self._remembered.append(remembered)
        self._age.append(total_age / max(remembered, 1))
        self._oldest.append(max(ages, default=0))
        self.accuracy.append(record.evaluation.reported_accuracy)
        self._loss.append(math.nan if loss is None else loss)

    def believe(self, belief: Belief | None) -> None:
        """Add the allocator's belief after the round that was added last."""
        estimate = math.nan
        forecast = (math.nan, math.nan, math.nan)
        if belief is not None:
            if belief.estimate is not None:
                estimate = belief.estimate
            if belief.plan is not None:
                forecast = (belief.plan.low, belief.plan.accuracy, belief.plan.high)
        self._estimate.append(estimate)
        for column, value in zip(self._forecast, forecast, strict=True):
            column.append(value)

    def history(self) -> list[dict[str, Any]]:
        """Return the rounds as `Result.history` has them."""
        rounds = []
        for number, paid in enumerate(self._paid):
            loss = self._loss[number]
            entry: dict[str, Any] = {
                "round": number,
                "n": self._n[number],
                **json_money(cost=paid),
                "accuracy": self.accuracy[number],
                "loss": None if math.isnan(loss) else loss,
            }
            if self._remembered[number]:
                entry["remembered"] = self._remembered[number]
                entry["age"] = self._age[number]
                entry["oldest"] = self._oldest[number]
            if math.isfinite(self._estimate[number]):
                entry["estimate"] = self._estimate[number]
            forecast = [column[number] for column in self._forecast]
            if math.isfinite(forecast[0]):
                entry["forecast"] = forecast
            rounds.append(entry)
        return rounds


def _scores(evaluation: Evaluation) -> dict[str, float]:
    scores = {"accuracy": evaluation.reported_accuracy, "loss": evaluation.reported_loss or 0.0}
    if evaluation.test_accuracy is not None:
        scores["validated"] = evaluation.accuracy
    return scores


def result_of(books: Books) -> Result:
    """Make the result of a run from its books alone, even if the run has not ended."""
    summary = Summary()
    for record in books.history():
        summary.tell(record)
    if not summary.has_begun:
        raise ConfigError(f"the run {books.name!r} has not begun: its books hold no round")
    return summary.result(books.ended() or UNENDED, **_identity(books))


_NOT_IN_BOOKS = (
    "kept",
    "accuracy_kept",
    "models",
    "belief",
    "privacy",
    "lying",
    "setting",
    "varied",
    "share",
    "tuned",
    "made_by",
)
"""The fields of a result that books do not hold."""


def completed(of_books: Result, stored: Result) -> Result:
    """Add to a result made from the books what only the run's own file of its result holds.

    Whatever the books hold, money above all, is believed from nowhere else.
    """
    added = {name: getattr(stored, name) for name in _NOT_IN_BOOKS}
    history = list(of_books.history)
    if len(stored.history) == len(history):  # books end before the belief after the last round
        last = stored.history[-1]
        history[-1] = dict(history[-1])
        for key in ("estimate", "forecast"):
            if key in last:
                history[-1][key] = last[key]
    return replace(of_books, history=history, **added)


def _identity(books: Books) -> dict[str, Any]:
    """Return the fields of a result that the configuration of the run decides."""
    tree = books.opening.get("config") or {}
    if "allocator" in tree:
        return Config.parse(tree).identity()
    unknown = "not recorded"  # the program that opened the run stored no configuration
    return {
        "allocator": unknown,
        "mechanism": unknown,
        "dataset": unknown,
        "seed": 0,
        "clients": 0,
    }

"""What a run came to, in the words that JSON, tables and reports share."""

import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from bara.clients.bidding import Bidders
from bara.errors import ConfigError, InvalidRecordError
from bara.experiments.views import Plotted, view
from bara.files import read_whole
from bara.records import Belief, Evaluation, Purse, RoundRecord, json_money, taken_home, tell_money
from bara.reports.contributions import Contributions
from bara.server.metrics import metric_title
from bara.text import counted


@dataclass(frozen=True, repr=False)
class Result(Plotted):
    """One finished run. Amounts are decimal numbers in the budget's unit, exact as text in what ends in `_exact`.

    Attributes:
        allocator: Which, with its options, as one writes it on the command line.
        mechanism: Which, likewise.
        dataset: What was learned.
        seed: Where everything random came from.
        clients: How many there were.
        budget: The whole budget.
        spent: What was paid.
        rounds: How many rounds were played.
        ended: Why the run ended.
        accuracy_final: The accuracy of the final model.
        accuracy_last10: The mean over the last ten rounds.
        accuracy_best: The best round's.
        payments: What each client was paid in all.
        history: The rounds: round, n, cost, accuracy, loss; where updates are remembered,
            `remembered`, how many of earlier rounds the model was made of, and their mean `age` in
            rounds; and, where the allocator tells, `estimate` (the final accuracy it estimated from
            that round alone) and `forecast` (low, mean and high of its plan then).
        belief: What the allocator believed at the end, where it tells.
        kept: Which model is taken home, by its validation loss: `final`, `average` or `best`.
        accuracy_kept: Its accuracy; unless given, that of the final model.
        models: How good each of them is, where there are several.
        metric: What `accuracy_*` and `accuracy` are (`training.metric`): accuracy, or another
            fraction that rises.
        contributions: What the model is better by for each client's updates, over rounds: mean,
            low, high, rounds (`bara.reports.contributions`); None where it was not measured.
        privacy: What privacy each client has spent (`bara.runs.privacy_account`); None where none
            is traded.
        lying: What strategic bidding earned (see `bara.runs.play`), or None where nobody lies.
        setting: Which setting of a suite it was, or None outside of one.
        varied: What was varied beside the allocator, by key (`training.memory`).
        share: Which part of the configured budget it was given, where several were tried.
        currency: What amounts are in, by its code of ISO 4217; None for units of no currency.
        target: The accuracy that was to be reached; None without one.
        samples: How many samples decisions were made on; None where that is not known.
        budget_exact: The whole budget; None in results of earlier versions, as for the next two.
        spent_exact: What was paid.
        payments_exact: What each client was paid in all.
        folder: Where the run is, if it was kept; no part of what it came to.
    """

    allocator: str
    mechanism: str
    dataset: str
    seed: int
    clients: int
    budget: float
    spent: float
    rounds: int
    ended: str
    accuracy_final: float
    accuracy_last10: float
    accuracy_best: float
    payments: dict[str, float] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    belief: dict[str, Any] | None = None
    kept: str = "final"
    accuracy_kept: float = math.nan
    models: dict[str, dict[str, float]] = field(default_factory=dict)
    lying: dict[str, Any] | None = None
    contributions: dict[str, dict[str, Any]] | None = None
    metric: str = "accuracy"
    privacy: dict[str, dict[str, float]] | None = None
    setting: str | None = None
    varied: dict[str, Any] = field(default_factory=dict)
    share: float | None = None
    currency: str | None = None
    target: float | None = None
    samples: int | None = None
    budget_exact: str | None = None
    spent_exact: str | None = None
    payments_exact: dict[str, str] | None = None
    folder: Path | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Where nothing was selected, the final model is kept."""
        if math.isnan(self.accuracy_kept):
            object.__setattr__(self, "accuracy_kept", self.accuracy_final)

    @property
    def variant(self) -> str | None:
        """What was varied beside the allocator in short: `memory=off`; None where nothing was."""
        return told(self.varied)

    @property
    def measure(self) -> str:
        """What people read of its metric: accuracy, AUC, ..."""
        return metric_title(self.metric)

    @property
    def name(self) -> str:
        """What tables and figures of a comparison call it: the allocator, and what else was varied."""
        return self.allocator if self.variant is None else f"{self.allocator}, {self.variant}"

    def to_frame(self) -> Any:
        """A pandas frame with a line for each round."""
        from bara.reports.frames import frame, round_rows  # noqa: PLC0415 - which knows this module

        return frame(round_rows([self]))

    def __repr__(self) -> str:
        """What it is, in a line."""
        what = ", ".join([self.dataset, f"{self.name} on {self.mechanism}", f"seed {self.seed}"])
        spent = f"{tell_money(self.spent, self.currency)} in {counted(self.rounds, 'round')}"
        return f"<Result: {what}: {self.measure} {100 * self.accuracy_kept:.1f} % for {spent}>"

    def _repr_html_(self) -> str:
        return str(view("html:run_in_short")(self))

    def to_json(self, *, history: bool = True) -> dict[str, Any]:
        """A plain tree; without the rounds where they are not wanted."""
        wanted = {key: value for key, value in vars(self).items() if value is not None}
        wanted = {
            key: value
            for key, value in wanted.items()
            if key != "folder" and (value or key != "varied")
        }
        return (
            wanted if history else {key: value for key, value in wanted.items() if key != "history"}
        )


def told(varied: Mapping[str, Any]) -> str | None:
    """What was varied, in short; None where nothing was.

    >>> told({"training.memory": "off", "mechanism": "fair"})
    'memory=off, mechanism=fair'
    """
    return ", ".join(f"{short_key(key)}={value}" for key, value in varied.items()) or None


def short_key(key: str) -> str:
    """A key in short: `memory` for `training.memory`, `mechanism` for `mechanism.name`.

    >>> short_key("training.memory"), short_key("data.name")
    ('memory', 'data')
    """
    section, _, last = key.rpartition(".")
    return section.rpartition(".")[2] if last == "name" and section else last


class Summary:
    """Adds a run up round by round, so that none of its rounds need be kept: of each, a few numbers are.

    Args:
        bidders: Whose strategic clients' profit to count; None for nobody's.
    """

    def __init__(self, bidders: Bidders | None = None) -> None:
        self.bidders = bidders
        self.profit = 0
        """Payments less costs of the strategic clients over all rounds they were paid for, in micro-units."""
        self._payments: Counter[str] = Counter()
        self._n, self._paid = array("q"), array("q")
        self._accuracy, self._loss = array("d"), array("d")
        self._remembered, self._age = array("q"), array("d")
        self._estimate = array("d")
        self._forecast = array("d"), array("d"), array("d")
        self._contributions = Contributions()
        self._purse: Purse | None = None
        self._samples: int | None = None

    @property
    def has_begun(self) -> bool:
        """Whether it was told of any round."""
        return self._purse is not None

    def tell(self, record: RoundRecord) -> None:
        """Add a settled round."""
        self._payments.update(record.payments)
        self._n.append(record.n)
        self._paid.append(record.paid)
        self._contributions.tell(record.delivery.contributions)
        ages = record.delivery.ages
        self._remembered.append(sum(ages.values()))
        self._age.append(
            sum(age * count for age, count in ages.items()) / max(self._remembered[-1], 1)
        )
        self._accuracy.append(record.evaluation.reported_accuracy)
        self._loss.append(
            math.nan if record.evaluation.reported_loss is None else record.evaluation.reported_loss
        )
        self._purse = record.purse_after
        self._samples = record.evaluation.samples
        if record.round:  # the belief a round begins with is what the one before it taught
            self._believe(record.awarded.belief)
        if self.bidders is not None:
            self._count_profit(record, self.bidders)

    def result(
        self,
        ended: str,
        belief: Belief | None = None,
        models: Mapping[str, Evaluation] = MappingProxyType({}),
        **identity: Any,
    ) -> Result:
        """What the run came to.

        Args:
            ended: Why it ended.
            belief: What the allocator believes after the last round.
            models: What may be taken home.
            **identity: The result's other fields.
        """
        if self._purse is None:
            raise InvalidRecordError("a run that has played no round has no result")
        self._believe(belief)
        kept = taken_home(models) if models else "final"
        return Result(
            **json_money(
                budget=self._purse.total,
                spent=self._purse.spent,
                payments=dict(self._payments.most_common()),
            ),
            currency=self._purse.currency,
            rounds=self._purse.round - 1,
            ended=ended,
            accuracy_final=self._accuracy[-1],
            accuracy_kept=models[kept].reported_accuracy if models else math.nan,
            accuracy_last10=fmean(self._accuracy[1:][-10:] or self._accuracy),
            accuracy_best=max(self._accuracy),
            history=self._history(),
            contributions=self._contributions.summary(),
            belief=None if belief is None else asdict(belief),
            kept=kept,
            samples=self._samples,
            models={name: _scores(one) for name, one in models.items()},
            **identity,
        )

    def _believe(self, belief: Belief | None) -> None:
        """Put down what the round told last made the allocator believe."""
        plan = belief.plan if belief else None
        self._estimate.append(
            math.nan if belief is None or belief.estimate is None else belief.estimate
        )
        told = (plan.low, plan.accuracy, plan.high) if plan else (math.nan,) * 3
        for column, value in zip(self._forecast, told, strict=True):
            column.append(value)

    def _history(self) -> list[dict[str, Any]]:
        columns = zip(self._n, self._paid, self._accuracy, self._loss, strict=True)
        rounds: list[dict[str, Any]] = [
            {
                "round": number,
                "n": n,
                **json_money(cost=paid),
                "accuracy": accuracy,
                "loss": _known(loss),
            }
            for number, (n, paid, accuracy, loss) in enumerate(columns)
        ]
        for entry, remembered, age in zip(rounds, self._remembered, self._age, strict=True):
            entry.update({"remembered": remembered, "age": age} if remembered else {})
        for entry, estimate, *forecast in zip(rounds, self._estimate, *self._forecast, strict=True):
            entry.update({"estimate": estimate} if math.isfinite(estimate) else {})
            entry.update({"forecast": forecast} if math.isfinite(forecast[0]) else {})
        return rounds

    def _count_profit(self, record: RoundRecord, bidders: Bidders) -> None:
        paid = record.payments
        costs = (
            dict(zip(bidders.clients, bidders.costs(record.round).tolist(), strict=True))
            if paid
            else {}
        )
        self.profit += sum(
            paid[client] - costs[client] for client in bidders.strategic if client in paid
        )


def _scores(evaluation: Evaluation) -> dict[str, float]:
    return {"accuracy": evaluation.reported_accuracy, "loss": evaluation.reported_loss or 0.0}


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


COLUMNS = (
    *("setting", "allocator", "variant", "mechanism", "dataset", "seed", "budget", "metric"),
    *(
        "accuracy_final",
        "accuracy_kept",
        "accuracy_last10",
        "accuracy_best",
        "spent",
        "rounds",
        "ended",
    ),
)
"""What a table of runs says of each."""


def read_result(path: Path) -> Result:
    """What a run left in that file."""
    try:
        result = Result(**_of_today(json.loads(read_whole(path))))
        fmean(entry["accuracy"] for entry in (*result.history, {"accuracy": result.accuracy_final}))
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise ConfigError(f"{str(path)!r} does not hold a run's result: {error}") from None
    return result


def _of_today(tree: dict[str, Any]) -> dict[str, Any]:
    """What was varied was a text once."""
    if "variant" in tree:
        pairs = re.split(r", (?=\w+=)", tree.pop("variant"))
        tree["varied"] = dict(pair.split("=", 1) for pair in pairs)
    return tree


def measure_of(results: Sequence[Result]) -> str:
    """What people read of the metric that the results have in common, or of each."""
    return ", ".join(dict.fromkeys(result.measure for result in results)) or "accuracy"


def by_setting(results: Sequence[Result]) -> dict[str | None, list[Result]]:
    """The results of each setting of a suite, in the order in which they came; None for those of no suite."""
    settings: dict[str | None, list[Result]] = {}
    for result in results:
        settings.setdefault(result.setting, []).append(result)
    return settings

"""What a run came to, in the words that JSON, tables and reports share."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from bara.errors import InvalidRecordError
from bara.records import RoundRecord, decimal_money


@dataclass(frozen=True)
class Result:
    """One finished run. Amounts are decimal numbers in the budget's unit.

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
        history: The rounds: round, n, cost, accuracy, loss.
        models: How good the models kept beside the final one are, where any are.
        privacy: What privacy each client has spent (see `bara.experiments.accounting`), or None where none is traded.
        lying: What strategic bidding earned (see `bara.experiments.runner`), or None where nobody lies.
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
    models: dict[str, dict[str, float]] = field(default_factory=dict)
    lying: dict[str, float] | None = None
    privacy: dict[str, dict[str, float]] | None = None

    def to_json(self, *, history: bool = True) -> dict[str, Any]:
        """A plain tree; without the rounds where they are not wanted."""
        tree = asdict(self)
        if not history:
            del tree["history"]
        return {key: value for key, value in tree.items() if value is not None}


def summarise(records: Sequence[RoundRecord], ended: str, **identity: Any) -> Result:
    """The result of a run from its settled rounds."""
    if not records:
        raise InvalidRecordError("a run without a round has no result")
    accuracies = [record.evaluation.reported_accuracy for record in records]
    payments: Counter[str] = Counter()
    for record in records:
        payments.update(record.payments)
    return Result(
        spent=decimal_money(records[-1].purse_after.spent),
        rounds=records[-1].round,
        ended=ended,
        accuracy_final=accuracies[-1],
        accuracy_last10=fmean(accuracies[1:][-10:] or accuracies),
        accuracy_best=max(accuracies),
        payments={client: decimal_money(paid) for client, paid in payments.most_common()},
        history=[round_json(record) for record in records],
        **identity,
    )


def round_json(record: RoundRecord) -> dict[str, Any]:
    """A settled round, short: what history shows."""
    return {
        "round": record.round,
        "n": record.n,
        "cost": decimal_money(record.paid),
        "accuracy": record.evaluation.reported_accuracy,
        "loss": record.evaluation.reported_loss,
    }

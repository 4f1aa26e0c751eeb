"""The result of a run, in the words that JSON, tables and reports share."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bara.errors import ConfigError
from bara.files import read_whole
from bara.records import tell_money
from bara.server.metrics import metric_title
from bara.text import counted

UNENDED = "it has not ended"
"""What the result of a run gives as the reason for its end before the run has ended."""


class Plotted:
    """A run or a comparison that draws itself."""

    @property
    def figures(self) -> list[str]:
        """The names that `plot` takes."""
        from bara.reports.charts import charts_of  # noqa: PLC0415 - which knows this module

        return [chart.name for chart in charts_of(self)]  # type: ignore[arg-type] # one of the two

    def plot(
        self, name: str | None = None, *, columns: int = 1, ax: Any = None, zero: bool = False
    ) -> Any:
        """Draw a figure of the report (see `figures`), or all of them side by side.

        Args:
            name: The figure; None for all.
            columns: How many columns of a two-column page the figure is wide.
            ax: Matplotlib's axes to draw the one figure into, instead of a new figure.
            zero: True for axes of values that begin at zero; otherwise they fit the data.
        """
        from bara.reports.drawings import plot  # noqa: PLC0415 - it needs matplotlib, an extra

        return plot(self, name, columns=columns, ax=ax, zero=zero)  # type: ignore[arg-type] # as above


FEW = 5
"""How many clients are the few of whom it is told what share of the money they got."""


@dataclass(frozen=True, repr=False)
class Result(Plotted):
    """The result of one run.

    Amounts are decimal numbers in the budget's unit; fields that end in `_exact` hold them as text.

    Attributes:
        allocator: The allocator with its options, as one writes it on the command line.
        mechanism: The mechanism, likewise.
        dataset: The name of the data.
        seed: The seed that everything random derives from.
        clients: How many clients there were.
        budget: The whole budget.
        spent: How much of it was paid.
        rounds: How many rounds were played.
        ended: Why the run ended.
        accuracy_final: The accuracy of the final model.
        accuracy_last10: The mean over the last ten rounds.
        accuracy_best: The accuracy of the best round.
        payments: The sum that each client was paid.
        history: The rounds: round, n, cost, accuracy, loss. Where updates are remembered, also
            `remembered`, the number of updates from earlier rounds in the model, `age`, their mean
            age in rounds, and `oldest`, the age of the oldest. Where the allocator tells, also
            `estimate` (the final accuracy that it estimated from that round alone) and `forecast`
            (low, mean and high of its plan).
        belief: What the allocator believed at the end, where it tells.
        kept: The model that is kept, by its validation loss: `final`, `average` or `best`.
        accuracy_kept: The accuracy of the kept model; of the final model unless given.
        models: Accuracy and loss of each model that could be kept, where there are several; where
            these are of test data, also `validated`, the accuracy on validation data.
        metric: The metric that `accuracy_*` and `accuracy` hold (`training.metric`): accuracy, or
            another fraction that rises.
        contributions: By how much each client's updates made the model better, over rounds: mean,
            low, high, rounds (`bara.reports.contributions`); None where it was not measured.
        shapley: Each client's mean share of what a round's model gained, with its margin
            (`bara.reports.contributions`), and how many evaluations that took; None where it was
            not estimated.
        privacy: The privacy that each client has spent (`bara.runs.privacy_account`); None where
            no privacy is traded.
        lying: What strategic bidding earned (see `bara.runs.play`); None where all bids are honest.
        setting: The setting of a suite; None outside of a suite.
        varied: The keys that were varied beside the allocator, with their values here.
        share: The share of the configured budget that the run was given, where several were tried.
        tuned: The keys that were tuned for this line of a comparison, with their values.
        currency: The ISO 4217 code of all amounts; None for units of no currency.
        target: The accuracy that was to be reached; None without a target.
        samples: The number of samples decisions were made on; None where that is not known.
        budget_exact: The whole budget; None in results of 0.1, as for the next two.
        spent_exact: How much of it was paid.
        payments_exact: The sum that each client was paid.
        never_paid: The price that each client that was never paid asked last; None where bids are
            dropped, and in results of 0.2.
        never_paid_exact: The same as text.
        made_by: The fingerprints of what made a result that was stored, by name: bara's version,
            the code of plug-ins, objects, data; None in results that were not, and before 0.3.
        folder: The run's folder, if it has one.
        reused: True where a comparison found the result in its folder, and ran nothing.

    Results that differ in the last three alone are equal.
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
    shapley: dict[str, Any] | None = None
    metric: str = "accuracy"
    privacy: dict[str, dict[str, float]] | None = None
    setting: str | None = None
    varied: dict[str, Any] = field(default_factory=dict)
    share: float | None = None
    tuned: dict[str, Any] = field(default_factory=dict)
    currency: str | None = None
    target: float | None = None
    samples: int | None = None
    budget_exact: str | None = None
    spent_exact: str | None = None
    payments_exact: dict[str, str] | None = None
    never_paid: dict[str, float] | None = None
    never_paid_exact: dict[str, str] | None = None
    made_by: dict[str, str] | None = field(default=None, compare=False)
    folder: Path | None = field(default=None, compare=False)
    reused: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        """Keep the final model where none was selected."""
        if math.isnan(self.accuracy_kept):
            object.__setattr__(self, "accuracy_kept", self.accuracy_final)

    @property
    def variant(self) -> str | None:
        """The values that were varied, in short: `memory=off`; None where nothing was varied."""
        return in_short(self.varied)

    def share_of_most_paid(self, count: int) -> float:
        """Return the share of all payments that went to the `count` clients that were paid most."""
        amounts = sorted(self.payments.values(), reverse=True)
        return sum(amounts[:count]) / max(sum(amounts), 1e-6)

    @property
    def validated(self) -> float:
        """The accuracy of the kept model on validation data, by which tuning chooses."""
        if self.kept in self.models:
            scores = self.models[self.kept]
            return scores.get("validated", scores["accuracy"])
        return float(self.history[-1]["accuracy"])

    @property
    def measure(self) -> str:
        """The title of the metric: accuracy, AUC, ..."""
        return metric_title(self.metric)

    @property
    def name(self) -> str:
        """The name in tables and figures: the allocator, and what else was varied."""
        return self.allocator if self.variant is None else f"{self.allocator}, {self.variant}"

    def to_frame(self) -> Any:
        """Return a pandas frame with a line for each round."""
        from bara.reports.frames import frame, round_rows  # noqa: PLC0415 - as above

        return frame(round_rows([self]))

    def __repr__(self) -> str:
        """Describe the run in a line."""
        what = ", ".join([self.dataset, f"{self.name} on {self.mechanism}", f"seed {self.seed}"])
        spent = f"{tell_money(self.spent, self.currency)} in {counted(self.rounds, 'round')}"
        return f"<Result: {what}: {self.measure} {100 * self.accuracy_kept:.1f} % for {spent}>"

    def _repr_html_(self) -> str:
        from bara.reports.html import run_in_short  # noqa: PLC0415 - which knows this module

        return run_in_short(self)

    def to_json(self, *, history: bool = True) -> dict[str, Any]:
        """Return the result as a plain tree, with or without its rounds."""
        tree = {}
        for key, value in vars(self).items():
            if (
                value is None
                or key in ("folder", "reused")
                or (key in ("varied", "tuned") and not value)
            ):
                continue
            if key != "history" or history:
                tree[key] = value
        return tree


def in_short(varied: Mapping[str, Any]) -> str | None:
    """Name what was varied, in short; None where nothing was.

    >>> in_short({"training.memory": "off", "mechanism": "fair"})
    'memory=off, mechanism=fair'
    """
    return ", ".join(f"{short_key(key)}={value}" for key, value in varied.items()) or None


def short_key(key: str) -> str:
    """Shorten a key: `memory` for `training.memory`, `mechanism` for `mechanism.name`.

    >>> short_key("training.memory"), short_key("data.name")
    ('memory', 'data')
    """
    section, _, last = key.rpartition(".")
    return section.rpartition(".")[2] if last == "name" and section else last


COLUMNS = (
    "setting",
    "allocator",
    "variant",
    "mechanism",
    "dataset",
    "seed",
    "budget",
    "metric",
    "accuracy_final",
    "accuracy_kept",
    "accuracy_last10",
    "accuracy_best",
    "spent",
    "rounds",
    "ended",
)
"""The columns of a table of runs."""


def read_result(path: Path) -> Result:
    """Read the result that a run left in a file."""
    try:
        tree = json.loads(read_whole(path))
        result = Result(**_of_today(tree))
        accuracies = [entry["accuracy"] for entry in result.history]
        math.fsum([*accuracies, result.accuracy_final])  # all of them must be numbers
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise ConfigError(f"{str(path)!r} does not hold a run's result: {error}") from None
    return result


def _of_today(tree: dict[str, Any]) -> dict[str, Any]:
    """Read what was varied from the text that version 0.1 wrote."""
    if "variant" in tree:
        pairs = re.split(r", (?=\w+=)", tree.pop("variant"))
        tree["varied"] = dict(pair.split("=", 1) for pair in pairs)
    return tree


def varied_keys(results: Sequence[Result]) -> list[str]:
    """Return the keys that were varied in any of the results."""
    keys: dict[str, None] = {}
    for result in results:
        keys |= dict.fromkeys(result.varied)
    return list(keys)


def measure_of(results: Sequence[Result]) -> str:
    """Name the metric that the results have in common, or all of their metrics."""
    measures = dict.fromkeys(result.measure for result in results)
    return ", ".join(measures) or "accuracy"


def by_setting(results: Sequence[Result]) -> dict[str | None, list[Result]]:
    """Group results by the setting of their suite, in their order; None for those of no suite."""
    settings: dict[str | None, list[Result]] = {}
    for result in results:
        settings.setdefault(result.setting, []).append(result)
    return settings

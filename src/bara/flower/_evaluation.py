"""The evaluation of models: on clients through the strategy, by the server's function, or both."""

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from bara.errors import ConfigError, TrainingError
from bara.flower._bid_collection import connected
from bara.flower._exchange import ask
from bara.flower._options import AppOptions, Better, ServerOptions
from bara.flower._strategies import evaluating, metric_key
from bara.flower._updates import form_of
from bara.records import Evaluation
from bara.text import counted

EvaluateFunction = Callable[[int, ArrayRecord], MetricRecord | None]
"""The type of the argument `evaluate_fn` of `Strategy.start`."""

Metrics = MetricRecord | None

RISING = ("acc", "accuracy", "auc", "aucpr", "auroc", "dice", "f1", "iou", "precision", "recall")
"""The endings of words in a metric's name by which it is a fraction that rises."""

FALLING = ("deviance", "entropy", "err", "error", "loss", "mae", "mape", "mse", "nll", "perplexity")
"""The endings of words in a metric's name by which it is better when lower."""

log = logging.getLogger("flwr")


@final
@dataclass(frozen=True)
class Measure:
    """The metric that decisions are based on.

    Attributes:
        name: The metric's name.
        better: Whether it is better when `lower` or `higher`; None for a fraction that rises.
    """

    name: str
    better: Better | None


def find_measure(reported: Collection[str], options: AppOptions) -> Measure | None:
    """Return the metric to base decisions on; None if the name or the direction is not clear.

    It is the one that the options name; else `accuracy`; else the only one that is reported, losses
    left out if there is anything else.

    Args:
        reported: The names of the metrics that the app reports.
        options: What the app's configuration says of the metric.

    >>> find_measure(["num-examples", "eval_loss", "eval_acc"], AppOptions())
    Measure(name='eval_acc', better=None)
    >>> find_measure(["test_loss"], AppOptions())
    Measure(name='test_loss', better='lower')
    >>> find_measure(["score"], AppOptions()) is None
    True
    """
    name = options.accuracy
    if name is None and "accuracy" in reported:
        name = "accuracy"
    if name is None:
        metrics = [one for one in reported if one != "num-examples"]
        others = [one for one in metrics if not _has_word(one, FALLING)]
        candidates = others or metrics
        if len(candidates) != 1:
            return None
        [name] = candidates
    elif name not in reported:
        return None
    better = options.better
    if better is None and _has_word(name, FALLING):
        better = "lower"
    if better is None and options.accuracy is None and not _has_word(name, RISING):
        return None
    return Measure(name, better)


def _has_word(name: str, endings: tuple[str, ...]) -> bool:
    """Return whether a word of the name ends like that: `val_loss`, `valLoss` and `mlogloss` do."""
    return any(word.endswith(endings) for word in re.split(r"[^a-z0-9]+", name.lower()))


@final
class Evaluator:
    """An evaluator of models that works as Flower's loop does and fills Flower's result.

    If both the server and the clients report the metric that decides, the server's value counts.
    A metric that cannot be read ends the run before anybody works; once clients have worked, the
    last accuracy stands instead.

    Args:
        grid: The grid of the clients that evaluate, if the strategy asks any.
        strategy: Chooses the clients that evaluate and aggregates their metrics.
        function: The server's own evaluation; None if the server has no data.
        config: The configuration sent with evaluation messages.
        options: Which metric decides, and how long clients may take.
        result: Flower's result, where metrics are recorded.
        last: The latest evaluation in an earlier session; used for a model that nobody evaluates.
    """

    def __init__(
        self,
        grid: Grid,
        strategy: Strategy,
        function: EvaluateFunction | None,
        config: ConfigRecord,
        options: ServerOptions,
        result: Result,
        last: Evaluation | None = None,
    ) -> None:
        self._grid = grid
        self._strategy = strategy
        self._function = function
        self._config = config
        self._options = options
        self._result = result
        self._last = last or Evaluation(0.0)
        self._measure: Measure | None = None
        self._warned = False
        self._begun = False

    @property
    def name(self) -> str | None:
        """The metric that decides; None while it is not clear."""
        return None if self._measure is None else self._measure.name

    def begin(self, model: ArrayRecord) -> Measure | None:
        """Evaluate the initial model and find the metric; None if it is not clear yet.

        The server is asked first, as by Flower. Clients are asked only if the server does not
        report the metric and the allocator looks at it: first one of them, because the run may have
        to be refused, then the others.

        Raises:
            ConfigError: when the allocator needs the metric and it is not clear which one it is.
        """
        by_server: Metrics = None
        by_clients: Metrics = None
        if self._function is not None:
            by_server = self._function(0, model)
        note_metrics(self._result.evaluate_metrics_serverapp, 0, by_server, "MetricRecord")
        self._measure = find_measure(_numbers(by_server), self._options)
        if self._measure is None and not self._options.blind:
            by_clients = self._by_clients(0, model, by_server)
            reported = {**_numbers(by_server), **_numbers(by_clients)}
            self._measure = find_measure(reported, self._options)
            if self._measure is None and (by_server or by_clients):
                raise _unclear(reported, self._options.accuracy)
        named = self._options.accuracy
        if self._measure is None and named is not None:
            self._measure = find_measure([named], self._options)
        self._decided(0, by_server, by_clients)
        self._begun = True
        return self._measure

    def __call__(self, round: int, model: ArrayRecord) -> Evaluation:
        """Evaluate and record the model after a round; round 0 is the initial model."""
        if round == 0:
            if not self._begun:
                self.begin(model)
            return self._last
        by_server: Metrics = None
        by_clients = self._by_clients(round, model)
        if self._function is not None:
            by_server = self._function(round, model)
        note_metrics(self._result.evaluate_metrics_serverapp, round, by_server, "MetricRecord")
        return self._decided(round, by_server, by_clients)

    def _decided(self, round: int, by_server: Metrics, by_clients: Metrics) -> Evaluation:
        """Return the evaluation that the metrics come to, the last one if there are none."""
        from_server = _numbers(by_server)
        from_clients = _numbers(by_clients)
        self._find_late({**from_server, **from_clients})
        deciding = from_clients or from_server
        if self.name in from_server:
            deciding = from_server
        if deciding:  # an empty record says no more than None
            self._last = self._read_or_last(round, deciding)
        elif not self._options.blind:
            log.warning(
                "bara: nobody evaluated the model of round %d; the last accuracy, %g, stands",
                round,
                self._last.accuracy,
            )
        return self._last

    def measure(self, round: int, model: ArrayRecord) -> Evaluation:
        """Evaluate any model without recording it, by the server's own function if there is one."""
        if self._function is not None:
            metrics = self._function(round, model)
        else:
            metrics = self._on_clients(round, model)
        numbers = _numbers(metrics)
        if not numbers:
            return self._last
        self._find_late(numbers)
        return self._read(round, numbers)

    def _find_late(self, reported: Collection[str]) -> None:
        """Find the metric in a later round; how one is mapped must stand in the configuration."""
        if self._measure is None:
            found = find_measure(reported, self._options)
            if found is not None and found.better == self._options.better:
                self._measure = found

    def _read_or_last(self, round: int, metrics: Mapping[str, float]) -> Evaluation:
        """Return what the metrics say; if nothing decides by them, they need not be finite."""
        try:
            return self._read(round, metrics)
        except TrainingError as error:
            if not self._options.blind:
                raise
            self._warn(f"{error}; the last accuracy, {self._last.accuracy:g}, stands")
            return self._last

    def _read(self, round: int, metrics: Mapping[str, float]) -> Evaluation:
        name = self.name
        broken = {}
        for key in (name, "loss", "test-accuracy", "test-loss"):
            value = None if key is None else metrics.get(key)
            if value is not None and not math.isfinite(value):
                broken[key] = value
        if broken:
            raise TrainingError(f"round {round}: the model's metrics must be finite, got {broken}")
        accuracy = self._last.accuracy
        metric = None
        test_accuracy = None
        try:
            if name is None or name not in metrics:
                raise self._undecided(metrics)
            accuracy = self._fraction(name, metrics[name])
            if "test-accuracy" in metrics:
                test_accuracy = self._fraction("test-accuracy", metrics["test-accuracy"])
            if self._measure is not None and self._measure.better is not None:
                metric = float(metrics[name])
        except ConfigError as error:
            if round == 0 and not self._options.blind:
                raise
            self._warn(f"{error}; until then the last accuracy, {accuracy:g}, stands")
        return Evaluation(
            accuracy,
            metrics.get("loss"),
            test_accuracy=test_accuracy,
            test_loss=metrics.get("test-loss"),
            metric=metric,
            samples=_count(metrics.get("num-examples")),
        )

    def _undecided(self, reported: Collection[str]) -> ConfigError:
        """Return why no metric decides: none is clear, or it is found too late to be mapped."""
        found = find_measure(reported, self._options)
        if found is None or self._measure is not None:
            return _unclear(reported, self._options.accuracy)
        return ConfigError(
            f"log and report follow {found.name}, of which {found.better} is better, only in a run "
            f"that begins with bara.federation.accuracy = {found.name!r}"
        )

    def _warn(self, text: str) -> None:
        """Log a warning; where the allocator looks at no metric, only the first."""
        if not (self._options.blind and self._warned):
            log.warning("bara: %s", text)
        self._warned = True

    def _fraction(self, name: str, value: float) -> float:
        """Return the metric as an accuracy in [0, 1].

        A metric of any size is mapped so that the accuracy's log-odds are the logarithm of the
        metric if `higher` is better, and minus that logarithm if `lower` is better.
        """
        better = None if self._measure is None else self._measure.better
        if better is None and 0 <= value <= 1:
            return value
        if better == "higher":
            odds = max(value, 0.0)
            return odds / (1.0 + odds)
        if better == "lower" and (value >= 0 or self._options.blind):
            return 1.0 / (1.0 + max(value, 0.0))
        if better:
            raise ConfigError(
                f"the metric {name!r} must be at least 0, got {value:g}; shift it, or use an "
                "allocator that does not look at it (even, fixed), without an extrapolated memory"
            )
        raise ConfigError(
            f"the metric {name!r} must be in [0, 1], got {value:g}; or set "
            "bara.federation.better to lower or higher"
        )

    def _by_clients(self, round: int, model: ArrayRecord, by_server: Metrics = None) -> Metrics:
        metrics = self._on_clients(round, model, by_server)
        note_metrics(
            self._result.evaluate_metrics_clientapp, round, metrics, "Aggregated MetricRecord"
        )
        return metrics

    def _on_clients(self, round: int, model: ArrayRecord, by_server: Metrics = None) -> Metrics:
        nodes = list(self._grid.get_node_ids())
        if self._function is None and not self._options.blind:
            nodes = list(connected(self._grid, self._options))
        if not nodes:
            return None
        size = sum(math.prod(array.shape) for array in model.values())
        if round == 0 and size == 0:
            return None  # a model of trees, none of which has grown yet
        with evaluating(self._strategy, len(nodes)):
            messages = list(
                self._strategy.configure_evaluate(round, model, self._config, self._grid)
            )
        if self._function is None and not messages and not self._options.blind:
            raise ConfigError(
                "nothing evaluates the model: give `start` an evaluate_fn, the strategy a "
                "fraction_evaluate above 0, or use an allocator that looks at no metric (even, "
                "fixed), without an extrapolated memory"
            )
        told: list[Message] = []
        if round == 0:
            told = self._tried(messages[:1], by_server)
            messages = messages[1:]
        answers = ask(self._grid, messages, self._options.evaluate_seconds)
        told += answers.told.values()
        if not told:
            return None
        replies = self._believable(round, told)
        if not replies:
            return None
        return self._strategy.aggregate_evaluate(round, replies)

    def _believable(self, round: int, replies: list[Message]) -> list[Message]:
        """Return the replies without those of single clients that would spoil or rule the mean.

        If no reply can be used, none is returned; of the initial model all are, because what comes
        of them says what is wrong with the app.
        """
        key = metric_key(self._strategy)
        usable = [reply for reply in replies if self._is_usable(reply, key)]
        forms = Counter(_form(reply) for reply in usable)
        if usable:
            usual, _ = forms.most_common(1)[0]
            usable = [reply for reply in usable if _form(reply) == usual]
        if usable and key is not None:
            weights = np.array([_metrics(reply)[key] for reply in usable], np.float64)
            excessive = self._options.keeping.limits.exceeded("num-examples", weights)
            usable = [reply for place, reply in enumerate(usable) if place not in excessive]
        if len(usable) < len(replies):
            log.warning(
                "bara: round %d: the evaluations of %s are not counted: metrics must be finite, "
                "named and shaped as the others', and %s within its limit "
                "(bara.limits.num-examples)",
                round,
                counted(len(replies) - len(usable), "client"),
                key or "num-examples",
            )
        if round == 0:
            return usable or replies
        return usable

    def _is_usable(self, reply: Message, key: str | None) -> bool:
        """Return whether a client's metrics are numbers that can go into a mean."""
        metrics = _metrics(reply)
        if not all(np.isfinite(value).all() for value in metrics.values()):
            return False
        measure = self._measure or find_measure(_numbers(metrics), self._options)
        if measure is not None and measure.better is None and not self._options.blind:
            deciding = metrics.get(measure.name, 0.0)
            if not 0 <= np.min(deciding) <= 1:
                return False
        return key is None or _numbers(metrics).get(key, 0) > 0

    def _tried(self, messages: list[Message], by_server: Metrics) -> list[Message]:
        """Let one client evaluate; refuse the run if what it reports is not clear."""
        told = list(ask(self._grid, messages, self._options.evaluate_seconds).told.values())
        if told:
            reported = self._strategy.aggregate_evaluate(0, told)
            every = {**_numbers(by_server), **_numbers(reported)}
            self._measure = find_measure(every, self._options)
            if self._measure is None:
                raise _unclear(every, self._options.accuracy)
            if math.isfinite(every[self._measure.name]):
                self._fraction(self._measure.name, every[self._measure.name])
        return told


def _metrics(reply: Message) -> Mapping[str, Any]:
    """Return the metrics in a client's evaluation; none unless there is exactly one record."""
    records = list(reply.content.metric_records.values())
    return records[0] if len(records) == 1 else {}


def _numbers(metrics: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the metrics that are single numbers; nothing can be decided by a list of them."""
    reported = metrics or {}
    return {name: value for name, value in reported.items() if isinstance(value, int | float)}


def _form(reply: Message) -> tuple[Any, ...]:
    """Return what strategies want to be the same in all replies: the names, and lists' lengths."""
    return (*reply.content.metric_records, form_of(_metrics(reply)))


def _unclear(reported: Collection[str], named: str | None) -> ConfigError:
    """Return the refusal of metrics among which none can be decided on.

    Args:
        reported: The names of the metrics that the app reports.
        named: The metric that the configuration names, if any.
    """
    problem = "it is not clear which metric to decide on"
    if named is not None:
        problem = f"bara.federation.accuracy is {named!r}, no number that the app reports"
    names = ", ".join(sorted(set(reported) - {"num-examples"})) or "no single number"
    return ConfigError(
        f"{problem}; the app reports {names}: set bara.federation.accuracy to one of these and, "
        "unless it is a fraction that rises, bara.federation.better to lower or higher; or use an "
        "allocator that looks at no metric (even, fixed), without an extrapolated memory"
    )


def _count(samples: Any) -> int | None:
    """Return the number of samples behind an evaluation; None unless it is a valid number."""
    if isinstance(samples, int | float) and 1 <= samples < math.inf:
        return int(samples)
    return None


def note_metrics(place: dict[int, MetricRecord], round: int, metrics: Metrics, what: str) -> None:
    """Record metrics and log them, both as Flower does.

    Args:
        place: The records of Flower's result to add to.
        round: The round that the metrics belong to.
        metrics: The metrics; None is neither recorded nor logged.
        what: The label of the metrics in the log line.
    """
    if metrics is not None:
        log.info("\t└──> %s: %s", what, metrics)
        place[round] = metrics

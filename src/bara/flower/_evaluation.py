"""The evaluation of models: on clients through the strategy, by the server's function, or both."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from bara.errors import ConfigError, TrainingError
from bara.flower._bid_collection import connected
from bara.flower._exchange import ask
from bara.flower._options import ServerOptions
from bara.flower._strategies import metric_key
from bara.records import Evaluation
from bara.text import counted

EvaluateFunction = Callable[[int, ArrayRecord], MetricRecord | None]
"""The type of the argument `evaluate_fn` of `Strategy.start`."""

Metrics = MetricRecord | None

log = logging.getLogger("flwr")


@final
class Evaluator:
    """An evaluator of models that works as Flower's loop does and fills Flower's result.

    If both the server and the clients report the metric that decides, the server's value counts.

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

    def __call__(self, round: int, model: ArrayRecord) -> Evaluation:
        """Evaluate and record the model after a round; round 0 is the initial model.

        For the initial model, Flower asks the server alone; the clients are asked only if the
        server does not report the metric that decides.
        """
        by_clients: Metrics = None
        by_server: Metrics = None
        if round > 0:
            by_clients = self._by_clients(round, model)
        if self._function is not None:
            by_server = self._function(round, model)
        note_metrics(self._result.evaluate_metrics_serverapp, round, by_server, "MetricRecord")
        server_decides = by_server is not None and self._options.accuracy in by_server
        if round == 0 and not server_decides:
            by_clients = self._by_clients(round, model)
        deciding = by_server if server_decides else by_clients or by_server
        if deciding:  # an empty record says no more than None
            self._last = self._read(round, deciding)
        else:
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
        return self._read(round, metrics) if metrics else self._last

    def _read(self, round: int, metrics: Mapping[str, Any]) -> Evaluation:
        deciding = self._options.accuracy
        broken = {}
        for key in (deciding, "loss", "test-accuracy", "test-loss"):
            value = metrics.get(key)
            if isinstance(value, float) and not math.isfinite(value):
                broken[key] = value
        if broken:
            raise TrainingError(
                f"round {round}: the model's metrics must be finite, got {broken}; nobody is paid"
            )
        if deciding not in metrics:
            raise ConfigError(
                f"the evaluation must report {deciding!r}, from evaluate_fn or from the clients, "
                f"got {sorted(metrics)}"
            )
        accuracy = self._fraction(deciding, metrics[deciding])
        test_accuracy = metrics.get("test-accuracy")
        if test_accuracy is not None:
            test_accuracy = self._fraction("test-accuracy", test_accuracy)
        return Evaluation(
            accuracy,
            metrics.get("loss"),
            test_accuracy=test_accuracy,
            test_loss=metrics.get("test-loss"),
            metric=None if self._options.better is None else float(metrics[deciding]),
            samples=_count(metrics.get("num-examples")),
        )

    def _fraction(self, name: str, value: float) -> float:
        """Return the metric as an accuracy in [0, 1].

        A metric of any size is mapped so that the accuracy's log-odds are the logarithm of the
        metric if `higher` is better, and minus that logarithm if `lower` is better.
        """
        better = self._options.better
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
                "allocator that does not look at it (even, fixed)"
            )
        raise ConfigError(
            f"the metric {name!r} must be in [0, 1], got {value:g}; or set "
            "bara.federation.better to lower or higher"
        )

    def _by_clients(self, round: int, model: ArrayRecord) -> Metrics:
        metrics = self._on_clients(round, model)
        note_metrics(
            self._result.evaluate_metrics_clientapp, round, metrics, "Aggregated MetricRecord"
        )
        return metrics

    def _on_clients(self, round: int, model: ArrayRecord) -> Metrics:
        if self._function is None:
            connected(self._grid, self._options)  # otherwise a strategy could wait forever
        elif not list(self._grid.get_node_ids()):
            return None
        size = sum(math.prod(array.shape) for array in model.values())
        if round == 0 and size == 0:
            return None  # a model of trees, none of which has grown yet
        messages = list(self._strategy.configure_evaluate(round, model, self._config, self._grid))
        if self._function is None and not messages:
            raise ConfigError(
                "nothing evaluates the model: give `start` an evaluate_fn, or the strategy a "
                "fraction_evaluate above 0"
            )
        answers = ask(self._grid, messages, self._options.evaluate_seconds)
        if not messages:
            return None
        replies = self._believable(round, list(answers.told.values()))
        return self._strategy.aggregate_evaluate(round, replies)

    def _believable(self, round: int, replies: list[Message]) -> list[Message]:
        """Return the replies without those of single clients that would spoil or rule the mean.

        If no reply can be used, all are returned: what comes of them says what is wrong.
        """
        key = metric_key(self._strategy)
        usable = [reply for reply in replies if self._is_usable(reply, key)]
        forms = Counter(_form(reply) for reply in usable)
        if not usable:
            return replies
        usual, _ = forms.most_common(1)[0]
        usable = [reply for reply in usable if _form(reply) == usual]
        if key is not None:
            weights = np.array([_metrics(reply)[key] for reply in usable], np.float64)
            excessive = self._options.keeping.limits.exceeded("num-examples", weights)
            usable = [reply for place, reply in enumerate(usable) if place not in excessive]
        if len(usable) < len(replies):
            log.warning(
                "bara: round %d: the evaluations of %s are not counted: metrics must be finite, "
                "those of the others' names, and %s within its limit (bara.limits.num-examples)",
                round,
                counted(len(replies) - len(usable), "client"),
                key or "num-examples",
            )
        return usable or replies

    def _is_usable(self, reply: Message, key: str | None) -> bool:
        """Return whether a client's metrics are numbers that can go into a mean."""
        metrics = _metrics(reply)
        if not all(np.isfinite(value).all() for value in metrics.values()):
            return False
        deciding = metrics.get(self._options.accuracy, 0.0)
        is_fraction = self._options.better is not None or 0 <= np.min(deciding) <= 1
        return is_fraction and (key is None or np.min(metrics.get(key, 0)) > 0)


def _metrics(reply: Message) -> Mapping[str, Any]:
    """Return the metrics in a client's evaluation; none unless there is exactly one record."""
    records = list(reply.content.metric_records.values())
    return records[0] if len(records) == 1 else {}


def _form(reply: Message) -> tuple[Any, ...]:
    """Return the names of records and metrics; strategies want them to be the same in all."""
    return (*reply.content.metric_records, frozenset(_metrics(reply)))


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

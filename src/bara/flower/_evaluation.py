"""How good a model is: by the strategy's evaluation on clients, by the server's own function, or by both."""

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any, final

from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from bara.errors import ConfigError, TrainingError
from bara.flower._bid_collection import connected
from bara.flower._exchange import ask
from bara.flower._options import ServerOptions
from bara.records import Evaluation

EvaluateFunction = Callable[[int, ArrayRecord], MetricRecord | None]
"""What `Strategy.start` takes as `evaluate_fn`."""

Metrics = MetricRecord | None

log = logging.getLogger("flwr")


@final
class Evaluator:
    """Evaluates models as Flower's loop does, and writes what it learns into Flower's result.

    Args:
        grid: Where clients evaluate, if the strategy has them do so.
        strategy: Has them evaluate.
        function: The server's own evaluation; None where it has no data. Where both tell the metric
            that decides, the server's counts.
        config: Sent with evaluation messages.
        options: Which metric decides, and how long clients may take.
        result: Where metrics are written down.
        last: What was known of the model before; it stands for a model that nobody evaluates.
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
        """The model after that round; of the initial one Flower asks the server alone, which may not say enough."""
        told = self._by_clients(round, model) if round else None
        central = None if self._function is None else self._function(round, model)
        note(self._result.evaluate_metrics_serverapp, round, central, "MetricRecord")
        decides = central is not None and self._options.accuracy in central
        if not (round or decides):
            told = self._by_clients(round, model)
        told = central if decides else told or central
        if told:  # an empty record says as little as none
            self._last = self._read(round, told)
        else:
            accuracy = self._last.accuracy
            log.warning(
                "bara: nobody evaluated the model of round %d; the last accuracy, %g, stands",
                round,
                accuracy,
            )
        return self._last

    def measure(self, round: int, model: ArrayRecord) -> Evaluation:
        """Any model, by the server's own function if it has one; nothing is written down."""
        told = self._function(round, model) if self._function else self._on_clients(round, model)
        return self._read(round, told) if told else self._last

    def _read(self, round: int, metrics: Mapping[str, Any]) -> Evaluation:
        accuracy = self._options.accuracy
        told = {
            key: metrics[key]
            for key in (accuracy, "loss", "test-accuracy", "test-loss")
            if key in metrics
        }
        broken = {
            key: value
            for key, value in told.items()
            if isinstance(value, float) and not math.isfinite(value)
        }
        if broken:
            raise TrainingError(
                f"round {round}: the model's metrics must be finite, got {broken}; nobody is paid"
            )
        if accuracy not in told:
            raise ConfigError(
                f"the evaluation must report {accuracy!r}, from evaluate_fn or from the clients, got {sorted(metrics)}"
            )
        reported = told.get("test-accuracy")
        return Evaluation(
            self._fraction(accuracy, told[accuracy]),
            told.get("loss"),
            test_accuracy=None if reported is None else self._fraction("test-accuracy", reported),
            test_loss=told.get("test-loss"),
            metric=None if self._options.better is None else float(told[accuracy]),
            samples=_count(metrics.get("num-examples")),
        )

    def _fraction(self, name: str, value: float) -> float:
        """The metric as an accuracy: itself, or so that its log-odds are the logarithm of the metric, or minus it."""
        better = self._options.better
        if better is None and 0 <= value <= 1:
            return value
        if better == "higher" or (better == "lower" and (value >= 0 or self._options.blind)):
            odds = max(value, 0.0)
            return odds / (1.0 + odds) if better == "higher" else 1.0 / (1.0 + odds)
        hint = (
            "; shift it, or use an allocator that does not look at it (even, fixed)"
            if better
            else "; or set bara.federation.better to lower or higher"
        )
        raise ConfigError(
            f"the metric {name!r} must be {'at least 0' if better else 'in [0, 1]'}, got {value:g}{hint}"
        )

    def _by_clients(self, round: int, model: ArrayRecord) -> Metrics:
        told = self._on_clients(round, model)
        note(self._result.evaluate_metrics_clientapp, round, told, "Aggregated MetricRecord")
        return told

    def _on_clients(self, round: int, model: ArrayRecord) -> Metrics:
        if self._function is None:
            connected(self._grid, self._options)  # else a strategy would wait for ever
        elif not list(self._grid.get_node_ids()):
            return None
        if round == 0 and not any(math.prod(array.shape) for array in model.values()):
            return None  # trees that are yet to grow
        messages = list(self._strategy.configure_evaluate(round, model, self._config, self._grid))
        if self._function is None and not messages:
            raise ConfigError(
                "nothing evaluates the model: give `start` an evaluate_fn, or the strategy a fraction_evaluate above 0"
            )
        answers = ask(self._grid, messages, self._options.evaluate_seconds)
        return (
            self._strategy.aggregate_evaluate(round, list(answers.told.values()))
            if messages
            else None
        )


def _count(samples: Any) -> int | None:
    """On how many samples a model was evaluated, where the metrics tell."""
    return int(samples) if isinstance(samples, int | float) and 1 <= samples < math.inf else None


def note(place: dict[int, MetricRecord], round: int, metrics: Metrics, what: str) -> None:
    """Write metrics down and log them, both as Flower does."""
    if metrics is not None:
        log.info("\t└──> %s: %s", what, metrics)
        place[round] = metrics

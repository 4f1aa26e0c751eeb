"""How good a model is: by the server's own function, or by the strategy's evaluation on clients."""

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


@final
class Evaluator:
    """Evaluates models and writes what it learns into Flower's result.

    Args:
        grid: Where clients evaluate, if the server does not.
        strategy: Has them evaluate.
        function: The server's own evaluation; None where it has no data.
        config: Sent with evaluation messages.
        options: Which metric decides, and how long clients may take.
        result: Where metrics are written down.
    """

    def __init__(
        self,
        grid: Grid,
        strategy: Strategy,
        function: EvaluateFunction | None,
        config: ConfigRecord,
        options: ServerOptions,
        result: Result,
    ) -> None:
        self._grid = grid
        self._strategy = strategy
        self._function = function
        self._config = config
        self._options = options
        self._result = result

    def __call__(self, round: int, model: ArrayRecord) -> Evaluation:  # noqa: A002 - a round is a round
        """The model after that round."""
        metrics, accuracy = self._metrics(round, model), self._options.accuracy
        told = {key: metrics[key] for key in (accuracy, "loss", "test-accuracy", "test-loss") if key in metrics}
        broken = {key: value for key, value in told.items() if isinstance(value, float) and not math.isfinite(value)}
        if broken:
            raise TrainingError(f"round {round}: the model's {broken} is not finite (nobody is paid)")
        if accuracy not in told:
            raise ConfigError(
                f"the evaluation tells {sorted(metrics)}; required is {accuracy!r}, from evaluate_fn or from the "
                "clients' evaluation"
            )
        return Evaluation(
            told[accuracy], told.get("loss"), test_accuracy=told.get("test-accuracy"), test_loss=told.get("test-loss")
        )

    def _metrics(self, round: int, model: ArrayRecord) -> Mapping[str, Any]:  # noqa: A002
        if self._function is not None:
            metrics, place = self._function(round, model), self._result.evaluate_metrics_serverapp
        else:
            metrics, place = self._on_clients(round, model), self._result.evaluate_metrics_clientapp
        if metrics is None:
            return {}
        place[round] = metrics
        return metrics

    def _on_clients(self, round: int, model: ArrayRecord) -> MetricRecord | None:  # noqa: A002
        connected(self._grid, self._options)  # else a strategy would wait for ever
        messages = list(self._strategy.configure_evaluate(round, model, self._config, self._grid))
        answers = ask(self._grid, messages, self._options.evaluate_seconds)
        return self._strategy.aggregate_evaluate(round, list(answers.told.values()))

"""What bara needs of a user's Flower strategy, without subclassing it: let winners in, weights, memory."""

from collections.abc import Iterator, Mapping
from typing import Any

import flwr.serverapp.strategy as flower
import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp.strategy import FedAdagrad, FedAdam, FedAvg, FedAvgM, FedYogi, Strategy
from numpy.typing import NDArray

from bara.errors import ConfigError
from bara.plugins import Registry
from bara.protocols import Capabilities

STRATEGIES: Registry[Strategy] = Registry(
    "strategy", {name: f"{flower.__name__}:{name}" for name in flower.__all__ if name.startswith("Fed")}
)
"""Flower's strategies by name; a user's own by import path."""

_WEIGHTED_MEANS = (FedAvg, FedAvgM, FedAdagrad, FedAdam, FedYogi)
"""Whose aggregation is built on the mean weighted by `weighted_by_key`; FedProx and FedOpt inherit theirs."""

_EVERYBODY = {"fraction_train": 1.0, "min_train_nodes": 1, "min_available_nodes": 1}
"""Who takes part is the auction's decision: every winner, however few."""


_NO_MEMORY = {
    "DifferentialPrivacy": "whose noise is for the clients of one round",
    "FedXgb": "which adds trees, not updates",
    "QFedAvg": "which weighs updates by this round's losses",
}
"""Flower's strategies, by how their names begin, that cannot be handed remembered updates, and why."""


def check_memory(strategy: Strategy) -> None:
    """Refuse to remember updates for a strategy that would make something wrong of them."""
    for layer in layers(strategy):
        for kind in type(layer).__mro__:
            why = next((why for name, why in _NO_MEMORY.items() if kind.__name__.startswith(name)), None)
            if why is not None:
                raise ConfigError(
                    f'training.memory cannot be used with {type(layer).__name__}, {why}; use training.memory = "off"'
                )


def layers(strategy: Strategy) -> Iterator[Strategy]:
    """The strategy, and those it wraps (Flower's differential privacy wraps another)."""
    inner: Any = strategy
    while isinstance(inner, Strategy):
        yield inner
        inner = getattr(inner, "strategy", None)


def let_winners_in(strategy: Strategy) -> None:
    """Keep the strategy from sampling among the winners, and from waiting for more of them."""
    for layer in layers(strategy):
        for name, value in _EVERYBODY.items():
            if hasattr(layer, name):
                setattr(layer, name, value)
        if getattr(layer, "fraction_evaluate", 0):
            layer.min_evaluate_nodes = 1  # type: ignore[attr-defined] # a FedAvg has it; whoever is there evaluates


def weight_key(strategy: Strategy) -> str | None:
    """The metric by which this strategy weighs updates, where it takes their weighted mean; None elsewhere.

    Where it does, a mechanism's own weights can be put in that metric's place. A strategy with an aggregation of its
    own (a median, Krum, a user's) has its own idea of weights.
    """
    if type(strategy).aggregate_train not in {one.aggregate_train for one in _WEIGHTED_MEANS}:
        return None
    return str(strategy.weighted_by_key)  # type: ignore[attr-defined] # each of them has it


def metric_key(strategy: Strategy) -> str | None:
    """The metric that every update must hold, whatever the strategy makes of it; else Flower gives the round up."""
    keys = (getattr(layer, "weighted_by_key", None) for layer in layers(strategy))
    return next((str(key) for key in keys if key is not None), None)


def capabilities(strategy: Strategy, *, protects: bool, measures: bool, repeatable: bool) -> Capabilities:
    """What a federation with this strategy can do for a mechanism.

    Args:
        strategy: It would silently replace a mechanism's weights by its own unless it takes a weighted mean.
        protects: Whether clients train with local differential privacy where they are told to.
        measures: Whether the server can measure each client's loss.
        repeatable: Whether the same award trains to the same model again, as only simulated clients promise.
    """
    means = "FedAvg, FedProx, FedAvgM, FedAdam, FedAdagrad, FedYogi"
    lacks = {
        "weights": f"{type(strategy).__name__} has an aggregation of its own; use a weighted mean ({means})",
        "protection": "its clients must train so; then say `start(..., protects=True)`",
        "evidence": "give `start` an evaluate_fn",
    }
    can = {"weights": weight_key(strategy) is not None, "protection": protects, "evidence": measures}
    return Capabilities(protects, repeatable, {name: remedy for name, remedy in lacks.items() if not can[name]})


def memory(strategy: Strategy) -> dict[str, NDArray[Any]]:
    """What the strategy has learned: every array and number it holds (a server optimiser's moments, say), by place."""
    found: dict[str, NDArray[Any]] = {}
    for depth, layer in enumerate(layers(strategy)):
        for name, value in vars(layer).items():
            found |= _arrays(f"{depth}/{name}", value)
    return found


def restore(strategy: Strategy, remembered: Mapping[str, NDArray[Any]]) -> None:
    """Let a fresh strategy know again what `memory` told."""
    for depth, layer in enumerate(layers(strategy)):
        for name, value in vars(layer).items():
            place = f"{depth}/{name}"
            mine = {key: array for key, array in remembered.items() if key == place or key.startswith(f"{place}/")}
            if mine:
                setattr(layer, name, _value(place, value, mine))


def _arrays(place: str, value: Any) -> dict[str, NDArray[Any]]:
    if isinstance(value, ArrayRecord):
        return {f"{place}/record/{key}": array.numpy() for key, array in value.items()}
    if isinstance(value, np.ndarray | np.number | float) and np.asarray(value).dtype != object:
        return {place: np.asarray(value)}
    if isinstance(value, dict) and all(isinstance(one, np.ndarray) for one in value.values()):
        return {f"{place}/dict/{key}": one for key, one in value.items()}
    if isinstance(value, list) and all(isinstance(one, np.ndarray) for one in value):
        return {f"{place}/list/{i}": one for i, one in enumerate(value)}
    return {}


def _value(place: str, value: Any, mine: Mapping[str, NDArray[Any]]) -> Any:
    if place in mine:
        return float(mine[place]) if isinstance(value, float) else mine[place]
    kind = next(iter(mine)).removeprefix(f"{place}/").partition("/")[0]
    inner = {key.removeprefix(f"{place}/{kind}/"): array for key, array in mine.items()}
    if kind == "record":
        return ArrayRecord({key: Array(np.asarray(array)) for key, array in inner.items()})
    return inner if kind == "dict" else [inner[str(i)] for i in range(len(inner))]

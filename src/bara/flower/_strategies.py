"""What bara needs of a user's Flower strategy, without subclassing it: let winners in, weights, what it cannot do."""

from collections.abc import Iterator
from typing import Any

import flwr.serverapp.strategy as flower
from flwr.serverapp.strategy import FedAdagrad, FedAdam, FedAvg, FedAvgM, FedYogi, Strategy

from bara.errors import ConfigError
from bara.plugins import Registry
from bara.protocols import Capabilities

STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    {name: f"{flower.__name__}:{name}" for name in flower.__all__ if name.startswith("Fed")},
)
"""Flower's strategies by name; a user's own by import path."""

_WEIGHTED_MEANS = (FedAvg, FedAvgM, FedAdagrad, FedAdam, FedYogi)
"""Whose aggregation is built on the mean weighted by `weighted_by_key`; FedProx and FedOpt inherit theirs."""

_EVERYBODY = {"fraction_train": 1.0, "min_train_nodes": 1, "min_available_nodes": 1}
"""Who takes part is the auction's decision: every winner, however few."""

SET_ASIDE = {*_EVERYBODY, "min_evaluate_nodes", "num_sampled_clients"}
"""What a strategy was made with and bara decides instead."""

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
            why = next(
                (why for name, why in _NO_MEMORY.items() if kind.__name__.startswith(name)), None
            )
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


def expect(strategy: Strategy, winners: int) -> None:
    """Tell differential-privacy wrappers how many clients there are: their noise is for so many."""
    for layer in layers(strategy):
        if hasattr(layer, "num_sampled_clients") and winners:
            layer.num_sampled_clients = winners


def abandon(strategy: Strategy, round: int) -> None:
    """Let go of what an accountant was to be told of a round that released nothing."""
    for layer in layers(strategy):
        getattr(layer, "_pending_events", {}).pop(round, None)


def least_winners(strategy: Strategy) -> int:
    """So many updates a strategy must have to withstand the malicious clients it was told of."""
    least = 1
    for layer in layers(strategy):
        malicious = getattr(layer, "num_malicious_nodes", 0)
        if isinstance(layer, flower.Bulyan):
            least = 4 * malicious + 3  # El Mhamdi et al. 2018; Flower skips a round with fewer
        elif isinstance(layer, flower.MultiKrum) and malicious:
            least = 2 * malicious + 3  # Blanchard et al. 2017, Proposition 4.2
    return least


def weight_key(strategy: Strategy) -> str | None:
    """The metric by which this strategy weighs updates, where it takes their weighted mean; None elsewhere.

    Where it does, a mechanism's own weights can be put in that metric's place. A strategy with an
    aggregation of its own (a median, Krum, a user's) has its own idea of weights.
    """
    if type(strategy).aggregate_train not in {one.aggregate_train for one in _WEIGHTED_MEANS}:
        return None
    return str(strategy.weighted_by_key)  # type: ignore[attr-defined] # each of them has it


def metric_key(strategy: Strategy) -> str | None:
    """The metric that every update must hold, whatever the strategy makes of it; else Flower gives the round up."""
    keys = (getattr(layer, "weighted_by_key", None) for layer in layers(strategy))
    return next((str(key) for key in keys if key is not None), None)


def capabilities(
    strategy: Strategy, *, protects: bool, measures: bool, repeatable: bool
) -> Capabilities:
    """What a federation with this strategy can do for a mechanism.

    Args:
        strategy: It would silently replace a mechanism's weights by its own unless it takes a
            weighted mean.
        protects: Whether clients train with local differential privacy where they are told to.
        measures: Whether the server can measure each client's loss.
        repeatable: Whether the same award trains to the same model again, as only simulated clients
            promise.
    """
    means = "FedAvg, FedProx, FedAvgM, FedAdam, FedAdagrad, FedYogi"
    lacks = {
        "weights": f"{type(strategy).__name__} has an aggregation of its own; use a weighted mean ({means})",
        "protection": "if its clients train with it, say so with `start(..., protects=True)`",
        "evidence": "give `start` an evaluate_fn",
    }
    can = {
        "weights": weight_key(strategy) is not None,
        "protection": protects,
        "evidence": measures,
    }
    return Capabilities(
        protects, repeatable, {name: remedy for name, remedy in lacks.items() if not can[name]}
    )

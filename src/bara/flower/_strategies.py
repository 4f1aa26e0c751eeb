"""Adapters for any user's Flower strategy, which is neither subclassed nor copied."""

import contextlib
from collections.abc import Iterator
from typing import Any

import flwr.serverapp.strategy as flower
from flwr.serverapp.strategy import FedAdagrad, FedAdam, FedAvg, FedAvgM, FedYogi, Strategy

from bara.errors import ConfigError
from bara.protocols import Capabilities

_WEIGHTED_MEANS = (FedAvg, FedAvgM, FedAdagrad, FedAdam, FedYogi)
"""Strategies built on the mean weighted by `weighted_by_key`; FedProx and FedOpt inherit theirs."""

_EVERYBODY = {"fraction_train": 1.0, "min_train_nodes": 1, "min_available_nodes": 1}
"""Settings under which every winner trains, however few: the auction decides who takes part."""

SET_ASIDE = {*_EVERYBODY, "min_evaluate_nodes", "num_sampled_clients"}
"""The arguments of strategies that bara overrides, or did in an earlier version."""

_NO_MEMORY = {
    "DifferentialPrivacy": "whose noise is for the clients of one round",
    "FedXgb": "which adds trees, not updates",
    "QFedAvg": "which weighs updates by this round's losses",
}
"""Why some of Flower's strategies cannot take remembered updates, by how their names begin."""


def check_memory(strategy: Strategy) -> None:
    """Refuse to remember updates for a strategy that would misuse them."""
    for layer in layers(strategy):
        for kind in type(layer).__mro__:
            for prefix, why in _NO_MEMORY.items():
                if kind.__name__.startswith(prefix):
                    raise ConfigError(
                        f"training.memory cannot be used with {type(layer).__name__}, {why}; "
                        'use training.memory = "off"'
                    )


def layers(strategy: Strategy) -> Iterator[Any]:
    """Yield the strategy and those it wraps, outermost first.

    Flower's differential privacy wraps another strategy. Each has attributes of its own, hence Any.
    """
    inner: Any = strategy
    while isinstance(inner, Strategy):
        yield inner
        inner = getattr(inner, "strategy", None)


def let_winners_in(strategy: Strategy) -> None:
    """Stop the strategy from sampling among the winners, and from waiting for more of them."""
    for layer in layers(strategy):
        for name, value in _EVERYBODY.items():
            if hasattr(layer, name):
                setattr(layer, name, value)


@contextlib.contextmanager
def evaluating(strategy: Strategy, nodes: int) -> Iterator[None]:
    """Let a strategy ask no more clients to evaluate than are connected, or it would wait forever.

    Args:
        strategy: The strategy that configures an evaluation.
        nodes: The number of connected nodes.
    """
    lowered = []
    for layer in layers(strategy):
        least = getattr(layer, "min_evaluate_nodes", 0)
        if least > nodes:
            lowered.append((layer, least))
            layer.min_evaluate_nodes = nodes
    try:
        yield
    finally:
        for layer, least in lowered:
            layer.min_evaluate_nodes = least


def expect(strategy: Strategy, winners: int) -> None:
    """Tell differential-privacy wrappers the number of clients, on which their noise depends."""
    for layer in layers(strategy):
        if hasattr(layer, "num_sampled_clients") and winners:
            layer.num_sampled_clients = winners


def abandon(strategy: Strategy, round: int) -> None:
    """Drop the pending privacy events of a round that released no model."""
    for layer in layers(strategy):
        pending = getattr(layer, "_pending_events", {})
        pending.pop(round, None)


def least_winners(strategy: Strategy) -> int:
    """Return the fewest updates with which a strategy withstands its declared malicious clients."""
    least = 1
    for layer in layers(strategy):
        malicious = getattr(layer, "num_malicious_nodes", 0)
        if isinstance(layer, flower.Bulyan):
            least = 4 * malicious + 3  # El Mhamdi et al. 2018; Flower skips a round with fewer
        elif isinstance(layer, flower.MultiKrum) and malicious:
            least = 2 * malicious + 3  # Blanchard et al. 2017, Proposition 4.2
    return least


def weight_key(strategy: Strategy) -> str | None:
    """Return the metric that weighs updates in a strategy that takes a weighted mean, else None.

    A mechanism's own weights can replace that metric. A strategy with an aggregation of its own
    (a median, Krum, a user's) has its own idea of weights.
    """
    means = [one.aggregate_train for one in _WEIGHTED_MEANS]
    if type(strategy).aggregate_train not in means:
        return None
    mean: Any = strategy
    return str(mean.weighted_by_key)


def metric_key(strategy: Strategy) -> str | None:
    """Return the metric that every update must hold, used or not; None if there is none.

    Flower gives the whole round up if an update lacks it.
    """
    for layer in layers(strategy):
        key = getattr(layer, "weighted_by_key", None)
        if key is not None:
            return str(key)
    return None


def capabilities(
    strategy: Strategy, *, protects: bool, measures: bool, repeatable: bool
) -> Capabilities:
    """Return what a federation with this strategy can do for a mechanism.

    Args:
        strategy: The strategy; unless it takes a weighted mean, it would silently replace a
            mechanism's weights by its own.
        protects: Whether clients train with local differential privacy when told to.
        measures: Whether the server can measure each client's loss.
        repeatable: Whether the same award always trains the same model; only simulated clients
            promise that.
    """
    lacks = {}
    if weight_key(strategy) is None:
        lacks["weights"] = (
            f"{type(strategy).__name__} has an aggregation of its own; use a weighted mean "
            "(FedAvg, FedProx, FedAvgM, FedAdam, FedAdagrad, FedYogi)"
        )
    if not protects:
        lacks["protection"] = (
            "if its clients train with it, say so with `start(..., protects=True)`"
        )
    if not measures:
        lacks["evidence"] = "give `start` an evaluate_fn"
    return Capabilities(protects, repeatable, lacks)

"""What is said or refused of a strategy, an auction and their clients before any money moves."""

import inspect
import logging
from typing import Any

import flwr.serverapp.strategy as flower
from flwr.serverapp.strategy import Strategy

from bara.allocators.baselines import Decreasing, Even, Fixed, Increasing, RandomN
from bara.errors import ConfigError
from bara.flower._options import ServerOptions
from bara.flower._strategies import layers, least_winners
from bara.mechanisms import MECHANISMS
from bara.protocols import Allocator
from bara.runs.config import Config
from bara.text import counted

FEW = 3
"""So few clients that the dearest of them is many of them."""

BLIND = (Even, Increasing, Decreasing, RandomN, Fixed)
"""Allocators that do not look at accuracy."""

log = logging.getLogger("flwr")


def check_strategy(strategy: Any) -> None:
    """Refuse what is no strategy of Flower's Message API; say which part of one is not used."""
    if not isinstance(strategy, Strategy):
        name, old = type(strategy).__name__, type(strategy).__module__.startswith("flwr.server.")
        raise ConfigError(
            f"strategy must be one of flwr.serverapp.strategy, got {name}"
            + (f" of {type(strategy).__module__}, which Flower keeps for apps of its old API" * old)
            + (
                "; secure aggregation hides each client's update, which payment on delivery must see"
                * ("SecAgg" in name)
            )
        )
    if type(strategy).start is not Strategy.start:
        log.warning(
            "bara: %s overrides start, which is not called: bara runs the rounds; what it does there belongs in "
            "evaluate_fn, configure_train or aggregate_train",
            type(strategy).__name__,
        )


def check_run(
    strategy: Strategy, config: Config, options: ServerOptions, allocator: Allocator
) -> None:
    """Refuse a run whose rounds could never train, and say who never could."""
    trees = any(
        isinstance(layer, flower.FedXgbBagging | flower.FedXgbCyclic) for layer in layers(strategy)
    )
    if trees and options.same_shapes:
        raise ConfigError(
            f"{type(strategy).__name__} grows trees, so updates and model differ in shape: set "
            "bara.federation.same-shapes to false"
        )
    count, reserve = config.clients.count, _reserve(config)
    most = count if reserve != "none" else count - 1
    if isinstance(allocator, Fixed):
        most = min(most, allocator.n)
    if (least := least_winners(strategy)) > most:
        raise ConfigError(
            f"{type(strategy).__name__} needs at least {least} winners per round, but at most {most} of "
            f"{counted(count, 'client')} can win: use more clients, a larger bara.allocator.n or a reserve price "
            "(bara.mechanism.reserve)"
        )
    if reserve == "none" and count <= FEW:
        log.warning(
            "bara: %d clients and no reserve price: the dearest bidder sets the price and can never train; with "
            "bara.mechanism.reserve, the most that is paid to a client, all of them can win",
            count,
        )


def _reserve(config: Config) -> str:
    """Whether the mechanism has a reserve price: `set`, `none`, or `not known` to it."""
    if "reserve" not in inspect.signature(MECHANISMS.factory(config.mechanism.name)).parameters:
        return "not known"
    return "none" if config.mechanism.options.get("reserve") is None else "set"

"""Checks of a strategy, a mechanism and the clients before any money moves."""

import inspect
import logging
from typing import Any

import flwr.serverapp.strategy as flower
from flwr.app import ArrayRecord
from flwr.serverapp.strategy import Strategy

from bara.allocators.baselines import Decreasing, Even, Fixed, Increasing, RandomN
from bara.errors import ConfigError
from bara.flower._options import ServerOptions
from bara.flower._strategies import layers, least_winners
from bara.mechanisms import MECHANISMS, reserve_price
from bara.protocols import Allocator
from bara.runs.config import Config
from bara.text import counted

BLIND = (Even, Increasing, Decreasing, RandomN, Fixed)
"""Allocators that do not look at accuracy."""

_EACH_AT_MOST = ("turns", "bid-price-first")
"""Mechanisms whose reserve price is the most that one client is paid."""

log = logging.getLogger("flwr")


def check_strategy(strategy: Any) -> None:
    """Refuse anything but a strategy of Flower's Message API; warn if its own `start` is unused."""
    kind = type(strategy)
    if not isinstance(strategy, Strategy):
        message = f"strategy must be one of flwr.serverapp.strategy, got {kind.__name__}"
        if kind.__module__.startswith("flwr.server."):
            message += f" of {kind.__module__}, which Flower keeps for apps of its old API"
        inside = [type(part).__name__ for part in getattr(strategy, "__dict__", {}).values()]
        if any("SecAgg" in name for name in (kind.__name__, *inside)):
            message += (
                "; secure aggregation hides each client's update, which payment on delivery must "
                "see"
            )
        raise ConfigError(message)
    if kind.start is not Strategy.start:
        log.warning(
            "bara: %s overrides start, which is not called: bara runs the rounds; what it does "
            "there belongs in evaluate_fn, configure_train or aggregate_train",
            kind.__name__,
        )


def check_run(
    strategy: Strategy,
    model: ArrayRecord,
    config: Config,
    options: ServerOptions,
    allocator: Allocator,
) -> None:
    """Refuse a run whose rounds could never train; warn if some clients must sit rounds out.

    Args:
        strategy: The app's strategy.
        model: The initial model.
        config: The run's configuration.
        options: The server's options.
        allocator: The run's allocator, which may limit the number of winners.
    """
    name = type(strategy).__name__
    for layer in layers(strategy):
        trees = isinstance(layer, flower.FedXgbBagging | flower.FedXgbCyclic)
        if trees and options.same_shapes:
            raise ConfigError(
                f"{name} grows trees, so updates and model differ in shape: set "
                "bara.federation.same-shapes to false"
            )
    is_empty = all(0 in array.shape for array in model.values())
    if model and is_empty and options.same_shapes:
        raise ConfigError(
            "the initial model holds no number, so no update can be shaped like it: set "
            "bara.federation.same-shapes to false"
        )
    count = config.clients.count
    no_reserve = _lacks_reserve(config)
    most = count - 1 if no_reserve else count
    if isinstance(allocator, Fixed):
        most = min(most, allocator.n)
    least = least_winners(strategy)
    if least > most:
        raise ConfigError(
            f"{name} needs at least {least} winners per round, but at most {most} of "
            f"{counted(count, 'client')} can win: use more clients, a larger bara.allocator.n or a "
            "reserve price (bara.mechanism.reserve)"
        )
    if no_reserve:
        log.warning(
            "bara: %s and no reserve price: a bidder that loses sets the price, so that in each "
            "round at least one cannot train; with bara.mechanism.reserve, the most that a client "
            "is paid per round, all can win, and each is then paid the reserve",
            counted(count, "client"),
        )
    elif config.mechanism.name in _EACH_AT_MOST and not isinstance(allocator, Fixed):
        _warn_of_too_little(config)


def _warn_of_too_little(config: Config) -> None:
    """Warn if the budget cannot pay every client the reserve in every round."""
    reserve = reserve_price(config.mechanism.options.get("reserve")) or 0
    purse = config.purse()
    all_clients = reserve * config.clients.count
    enough = all_clients * purse.max_rounds
    if purse.total < enough:
        log.warning(
            "bara: not everybody trains in every round: %s for %s is %s a round, and %s cost up to "
            "%s (bara.mechanism.reserve each); with %s everybody does",
            purse.show(purse.total),
            counted(purse.max_rounds, "round"),
            purse.show(purse.total // purse.max_rounds),
            counted(config.clients.count, "client"),
            purse.show(all_clients),
            purse.show(enough),
        )


def _lacks_reserve(config: Config) -> bool:
    """Return True if the mechanism takes a reserve price and the configuration sets none."""
    factory = MECHANISMS.factory(config.mechanism.name)
    takes_one = "reserve" in inspect.signature(factory).parameters
    return takes_one and config.mechanism.options.get("reserve") is None

"""From a configuration to the federation that trains."""

from dataclasses import fields

from bara.errors import ConfigError
from bara.experiments.config import Config
from bara.federations.bidding import Bidders, Strategy
from bara.federations.distributions import Distribution
from bara.federations.synthetic import LearningCurve, SyntheticFederation
from bara.plugins import Registry, nearest
from bara.protocols import Federation

FEDERATIONS: Registry[Federation] = Registry(
    "federation",
    {"synthetic": "bara.experiments.engines:synthetic"},
)
"""Every engine by name; a user's own by import path, as a function of the whole `Config`."""


def build_federation(config: Config) -> Federation:
    """The federation a configuration describes."""
    return FEDERATIONS.factory(config.federation.engine)(config)


def bidders(config: Config) -> Bidders:
    """The clients as bidders."""
    clients = config.clients
    return Bidders(
        clients.count,
        Distribution.parse(clients.bids),
        config.seed,
        strategic=clients.strategic,
        strategy=Strategy.parse(clients.strategy),
    )


def synthetic(config: Config) -> SyntheticFederation:
    """The closed-form learning curve; its parameters are the engine's options."""
    known = [field.name for field in fields(LearningCurve)]
    for option in config.federation.options:
        if option not in known:
            raise ConfigError(f"unknown key 'federation.{option}'; {nearest(option, known)}")
    curve = LearningCurve(**config.federation.options)
    return SyntheticFederation(bidders(config), curve, config.seed, config.clients.failure_rate)

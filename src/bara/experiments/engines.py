"""From a configuration to the federation that trains."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from bara.errors import ConfigError
from bara.experiments.config import ClientsSection, Config
from bara.federations.bidding import Bidders, Strategy
from bara.federations.distributions import Distribution
from bara.federations.synthetic import LearningCurve, SyntheticFederation
from bara.plugins import Registry, check_option, nearest
from bara.protocols import Federation
from bara.randomness import stream
from bara.records import FloatArray, IntArray

_OF_DATA = ("partition", "noisy", "label_noise", "free_riders", "free_riding", "poisoners", "late_rate")

FEDERATIONS: Registry[Federation] = Registry(
    "federation",
    {"simulator": "bara.experiments.simulation:simulator", "synthetic": "bara.experiments.engines:synthetic"},
    Federation,
)
"""Every engine by name; a user's own by import path, as a function of the whole `Config`."""


def build_federation(config: Config, folder: Path | None = None) -> Federation:
    """The federation a configuration describes; what it keeps (models, checkpoints) goes into the folder."""
    return FEDERATIONS.build(config.federation.engine, config=config, folder=folder)


def bidders(config: Config, samples: IntArray | None = None) -> Bidders:
    """The clients as bidders; their data sizes where they have data."""
    clients = config.clients
    return Bidders(
        clients.count,
        Distribution.parse(clients.bids),
        config.seed,
        strategic=clients.strategic,
        strategy=Strategy.parse(clients.strategy),
        samples=samples,
        factors=_cost_factors(config, samples),
        drift=clients.drift,
        absence_rate=clients.absence_rate,
    )


def _cost_factors(config: Config, samples: IntArray | None) -> FloatArray | None:
    """How much dearer than the mean each client is."""
    if config.clients.cost_by == "none":
        return None
    if config.clients.cost_by == "compute":
        return stream(config.seed, "speed").lognormal(-0.125, 0.5, config.clients.count)
    if samples is None:
        raise ConfigError(
            "clients.cost_by is 'samples', but this federation has no data; required is an engine that has"
        )
    return np.asarray(samples / samples.mean())


def synthetic(config: Config) -> SyntheticFederation:
    """The closed-form learning curve; its parameters are the engine's options."""
    _refuse_what_needs_data(config)
    types = {field.name: field.type for field in fields(LearningCurve)}
    for option, value in config.federation.options.items():
        if option not in types:
            raise ConfigError(f"unknown key 'federation.{option}'; {nearest(option, list(types))}")
        check_option("the synthetic federation", option, value, types[option])
    curve = LearningCurve(**config.federation.options)
    return SyntheticFederation(bidders(config), curve, config.seed, config.clients.failure_rate)


def _refuse_what_needs_data(config: Config) -> None:
    """A key that would be ignored is an error, not a surprise."""
    changed = [f"clients.{key}" for key in _OF_DATA if getattr(config.clients, key) != getattr(ClientsSection(), key)]
    changed += [name for name in ("data", "training") if getattr(config, name) != getattr(Config(), name)]
    if changed:
        raise ConfigError(
            f"{changed[0]} is set, but the synthetic federation has no data; use federation.engine=simulator"
        )

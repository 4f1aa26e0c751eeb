"""From a configuration to what a run is made of: allocator, mechanism, federation, each built once."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from bara.allocators import ALLOCATORS
from bara.clients.bidding import Bidders, Strategy
from bara.clients.costs import Distribution, PrivacyCosts, valuations
from bara.errors import ConfigError
from bara.mechanisms import MECHANISMS
from bara.mechanisms.client_cap import ClientCap
from bara.plugins import Registry, check_options
from bara.protocols import (
    Allocator,
    Federation,
    Mechanism,
    Requirements,
    check_goal,
    requirements_of,
)
from bara.randomness import stream
from bara.records import FloatArray, IntArray, money
from bara.runs.config import Config
from bara.runs.engines import SIMULATOR, SYNTHETIC
from bara.runs.place import check_player
from bara.runs.sections import ClientsSection, DataSection, TrainingSection
from bara.runs.session import Session
from bara.server.state import Keeping
from bara.simulator.synthetic import LearningCurve, SyntheticFederation

_OF_DATA = (
    "partition",
    "noisy",
    "label_noise",
    "free_riders",
    "free_riding",
    "poisoners",
    "late_rate",
)

FEDERATIONS: Registry[Federation] = Registry(
    "federation",
    {
        SIMULATOR: "bara.runs.simulation:simulator",
        SYNTHETIC: "bara.runs.factory:synthetic",
    },
    Federation,
)
"""Every engine by name; a user's own by import path, as a function of the whole `Config`."""


def assemble(config: Config, folder: Path | None = None) -> Session:
    """What a configuration's run is made of; what the federation keeps (models, checkpoints) goes into the folder."""
    allocator, mechanism = build_allocator(config), build_mechanism(config)
    return Session(
        allocator, mechanism, build_federation(config, folder, requirements_of(mechanism))
    )


def build_allocator(config: Config) -> Allocator:
    """The allocator a configuration names."""
    own, goal = config.allocator, config.budget.goal
    check_goal(own.label, ALLOCATORS.factory(own.name) if own.part is None else own.part, goal)
    context = {"clients": config.clients.count, "seed": config.seed, "goal": goal}
    return ALLOCATORS.build(own.name, own.options, own.part, **context)


def build_mechanism(config: Config) -> Mechanism:
    """The mechanism a configuration names, with the cap a client has."""
    mechanism = MECHANISMS.build(
        config.mechanism.name, config.mechanism.options, config.mechanism.part
    )
    cap = config.ledger.client_cap
    return mechanism if cap is None else ClientCap(mechanism, money(cap))


def build_federation(
    config: Config, folder: Path | None = None, requirements: Requirements | None = None
) -> Federation:
    """The federation a configuration describes.

    Args:
        config: What to build.
        folder: Where its models and checkpoints go; None to keep none.
        requirements: What the mechanism requires of it; None for what the configured one does.
    """
    check_engine(config)
    if requirements is None:
        requirements = requirements_of(build_mechanism(config))
    engine, part = config.federation.engine, config.federation.part
    if isinstance(part, Federation) and FEDERATIONS.is_made(part):
        return part  # itself, not a copy: it may hold connections or processes
    return FEDERATIONS.build(
        engine, part=part, config=config, folder=folder, requirements=requirements
    )


def keeping(config: Config, folder: Path | None) -> Keeping:
    """Return what a configuration has a server keep from round to round, and where."""
    training = config.training
    return Keeping(
        memory=training.memory or "off",
        forget_after=training.forget_after,
        average_last=training.average_last,
        folder=folder,
    )


def check_engine(config: Config) -> None:
    """Refuse an engine that does not exist, or whose runs bara does not play."""
    check_player(config.federation.engine)
    if config.federation.part is None:
        FEDERATIONS.factory(config.federation.engine)


def epsilons(config: Config, requirements: Requirements) -> FloatArray | None:
    """Each client's privacy budget for a round, drawn once; None where nobody trades privacy."""
    drawn = config.clients.epsilon or (
        None if requirements.protection is None else "uniform(0.1, 1)"
    )
    if drawn is None:
        return None
    return Distribution.parse(drawn).draw(stream(config.seed, "epsilon"), config.clients.count)


def costs(config: Config, requirements: Requirements) -> Distribution | PrivacyCosts:
    """Where the clients' costs come from: what their privacy is worth to them where it is traded."""
    budgets = epsilons(config, requirements)
    if budgets is None:
        return Distribution.parse(config.clients.bids)
    return PrivacyCosts(budgets, valuations(config.clients.valuation))


def bidders(
    config: Config,
    requirements: Requirements,
    samples: IntArray | None = None,
    names: tuple[str, ...] = (),
) -> Bidders:
    """The clients as bidders; their data sizes where they have data, their names where they have some."""
    clients = config.clients
    return Bidders(
        names or clients.count,
        costs(config, requirements),
        config.seed,
        strategic=clients.strategic,
        strategy=Strategy.parse(clients.strategy),
        samples=samples,
        factors=_cost_factors(config, samples),
        drift=clients.drift,
        absence_rate=clients.absence_rate,
        unit=config.purse().unit,
    )


def _cost_factors(config: Config, samples: IntArray | None) -> FloatArray | None:
    """How much dearer than the mean each client is."""
    if config.clients.cost_by == "none":
        return None
    if config.clients.cost_by == "compute":
        return stream(config.seed, "speed").lognormal(-0.125, 0.5, config.clients.count)
    if samples is None:
        raise ConfigError(
            "clients.cost_by is 'samples', but this federation has no data; choose a federation.engine that has"
        )
    return np.asarray(samples / samples.mean())


def synthetic(config: Config, requirements: Requirements | None = None) -> SyntheticFederation:
    """The closed-form learning curve; its parameters are the engine's options."""
    _refuse_what_needs_data(config)
    requirements = requirements or requirements_of(build_mechanism(config))
    types = {field.name: field.type for field in fields(LearningCurve)}
    check_options(
        "the synthetic federation", config.federation.options, types, prefix="federation."
    )
    curve = LearningCurve(**config.federation.options)
    return SyntheticFederation(
        bidders(config, requirements), curve, config.seed, config.clients.failure_rate
    )


def _refuse_what_needs_data(config: Config) -> None:
    """Refuse a key that the synthetic federation would ignore."""
    changed = []
    for key in _OF_DATA:
        if getattr(config.clients, key) != getattr(ClientsSection(), key):
            changed.append(f"clients.{key}")
    if config.data != DataSection():
        changed.append("data")
    if config.training != TrainingSection(memory=config.training.memory):
        changed.append("training")
    if config.training.memory not in (None, "off"):
        changed.append("training.memory")
    if changed:
        raise ConfigError(
            f"{changed[0]} is set, but the synthetic federation has no data; use "
            "federation.engine=simulator"
        )

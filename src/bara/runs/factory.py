"""The builders of a run's parts: allocator, mechanism and federation, from a configuration."""

from dataclasses import fields
from pathlib import Path

import numpy as np

from bara.allocators import ALLOCATORS
from bara.clients.bidding import Bidders, Strategy, client_names
from bara.clients.costs import Distribution, PrivacyCosts, check_costs, check_names, valuations
from bara.errors import ConfigError, InvalidOfferError
from bara.market import check_offer
from bara.mechanisms import MECHANISMS
from bara.mechanisms.client_cap import ClientCap
from bara.options import check_options
from bara.plugins import Registry
from bara.protocols import (
    Allocator,
    Federation,
    Mechanism,
    Requirements,
    check_goal,
    requirements_of,
)
from bara.randomness import stream
from bara.records import (
    Evaluation,
    FloatArray,
    Limits,
    Purse,
    RoundRecord,
    money,
)
from bara.records.limits import TIMES
from bara.runs.config import Config
from bara.runs.config_sections import ClientsSection, DataSection, TrainingSection
from bara.runs.data import Holdings
from bara.runs.engines import SIMULATOR, SYNTHETIC
from bara.runs.place import check_player
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
"""The keys of `clients` that mean nothing without data."""

FEDERATIONS: Registry[Federation] = Registry(
    "federation",
    {
        SIMULATOR: "bara.runs.simulation:simulator",
        SYNTHETIC: "bara.runs.factory:synthetic",
    },
    Federation,
)
"""The engines by name; a user's own, by import path, is a function of the whole `Config`."""


def assemble(config: Config, folder: Path | None = None) -> Session:
    """Build the session of a run; the federation's models and checkpoints go into the folder."""
    allocator = build_allocator(config)
    mechanism = build_mechanism(config)
    federation = build_federation(config, folder, requirements_of(mechanism))
    return Session(allocator, mechanism, federation, limits_of(config))


def limits_of(config: Config) -> Limits:
    """Return the limits to what clients say of themselves; bara knows simulated clients itself."""
    times = None if config.engine.has_clients else TIMES
    return Limits(config.limits, times)


def build_allocator(config: Config) -> Allocator:
    """Build the allocator of a configuration; refuse a goal that it cannot pursue."""
    own = config.allocator
    goal = config.budget.goal
    factory = own.part
    if factory is None:
        factory = ALLOCATORS.factory(own.name)
    check_goal(own.label, factory, goal)
    count = config.clients.count
    if config.engine.has_clients and (goal.min_clients or 0) > count:
        raise ConfigError(
            f"budget.min_clients must be at most clients.count = {count}, got {goal.min_clients}"
        )
    context = {"clients": count, "seed": config.seed, "goal": goal}

    def build() -> Allocator:
        return ALLOCATORS.build(own.name, own.options, own.part, **context)

    if not getattr(factory, "__module__", "").startswith("bara."):
        _check_first_offer(build(), config.purse())
    return build()


def _check_first_offer(allocator: Allocator, purse: Purse) -> None:
    """Refuse an allocator whose first answer is no offer, before data are read and models made.

    Args:
        allocator: One that is built for this alone, and told of a round 0 that was never played.
        purse: The purse before the first round.
    """
    try:
        allocator.tell(RoundRecord.initial(purse, Evaluation(0.1)))
        offer = allocator.ask(purse)
    except InvalidOfferError:
        raise
    except Exception:  # noqa: BLE001 - it may want a real round 0; a run says what it raises
        return
    check_offer(allocator, offer)


def build_mechanism(config: Config) -> Mechanism:
    """Build the mechanism of a configuration, for known clients and within their caps if any."""
    mechanism = MECHANISMS.build(
        config.mechanism.name, config.mechanism.options, config.mechanism.part
    )
    cap = config.ledger.client_cap
    register = config.ledger.known()
    if cap is None and register is None:
        return mechanism
    return ClientCap(mechanism, None if cap is None else money(cap), register)


def build_federation(
    config: Config, folder: Path | None = None, requirements: Requirements | None = None
) -> Federation:
    """Build the federation of a configuration.

    Args:
        config: The configuration of the run.
        folder: The folder for models and checkpoints; None to store neither.
        requirements: What the mechanism requires of the federation; None to ask the configuration's
            own mechanism.
    """
    check_engine(config)
    if requirements is None:
        requirements = requirements_of(build_mechanism(config))
    engine = config.federation.engine
    part = config.federation.part
    if isinstance(part, Federation) and FEDERATIONS.is_made(part):
        return part  # not a copy: the object may hold connections or processes
    return FEDERATIONS.build(
        engine, part=part, config=config, folder=folder, requirements=requirements
    )


def keeping(config: Config, folder: Path | None) -> Keeping:
    """Return what the server keeps from round to round, and in which folder."""
    training = config.training
    return Keeping(
        memory=training.memory or "off",
        clients=config.clients.count,
        forget_after=training.forget_after,
        average_last=training.average_last,
        limits=limits_of(config),
        folder=folder,
    )


def check_engine(config: Config) -> None:
    """Refuse an engine that does not exist, whose runs bara does not play, or that ignores keys."""
    check_player(config.federation.engine)
    if config.federation.part is None:
        FEDERATIONS.factory(config.federation.engine)
    if config.federation.engine == SYNTHETIC:
        _refuse_what_needs_data(config)


def epsilons(config: Config, requirements: Requirements) -> FloatArray | None:
    """Draw each client's privacy budget per round; return None if nobody trades privacy."""
    budgets = config.clients.epsilon
    if budgets is None and requirements.protection is not None:
        budgets = "uniform(0.1, 1)"
    if budgets is None:
        return None
    return Distribution.parse(budgets).draw(stream(config.seed, "epsilon"), config.clients.count)


def costs(config: Config, requirements: Requirements) -> Distribution | PrivacyCosts:
    """Return what clients' costs are drawn from: their privacy if traded, else `clients.bids`."""
    budgets = epsilons(config, requirements)
    if budgets is None:
        return Distribution.parse(config.clients.bids)
    return PrivacyCosts(budgets, valuations(config.clients.valuation))


def bidders(
    config: Config,
    requirements: Requirements,
    held: Holdings | None = None,
) -> Bidders:
    """Build the bidders: the clients with their costs and bidding strategies.

    Args:
        config: The configuration of the run.
        requirements: What the mechanism requires of the federation.
        held: Who the clients are and what they hold; None for clients without data, whom
            `clients.costs` may name, and who are numbered else.
    """
    clients = config.clients
    names = client_names(clients.count)
    own = clients.costs
    if isinstance(own, dict) and len(own) == clients.count and not own.keys() & set(names):
        names = tuple(own)
    sizes = None
    if held is not None:
        names = tuple(held.names)
        sizes = np.array(held.sizes, np.int64)
    if config.mechanism.name == "tariff":
        check_names("mechanism.fees", config.mechanism.options.get("fees") or (), names)
    return Bidders(
        names,
        costs(config, requirements),
        config.seed,
        strategic=clients.strategic,
        strategy=Strategy.parse(clients.strategy),
        samples=sizes,
        factors=_cost_factors(config, names, held),
        stability=clients.stability,
        drift=clients.drift,
        absence_rate=clients.absence_rate,
        unit=config.purse().unit,
    )


def _cost_factors(
    config: Config, names: tuple[str, ...], held: Holdings | None
) -> FloatArray | None:
    """Return the factor by which each client's costs differ from the mean; None for no factors."""
    own = config.clients.costs
    if isinstance(own, str):
        raise ConfigError(
            f"clients.costs names a file, {own!r}; read the configuration by its load"
        )
    if own is not None:
        check_costs(own, names)
        return np.array([own[client] for client in names])
    kind = config.clients.cost_by
    if kind == "none":
        return None
    speeds = stream(config.seed, "speed").lognormal(-0.125, 0.5, config.clients.count)
    if kind == "compute":
        return speeds
    if held is not None and kind == "samples":
        sizes = np.array(held.sizes, float)
        return np.asarray(sizes / sizes.mean())
    if held is not None and kind == "labels" and held.rarity is not None:
        factors = np.empty(len(speeds))
        rarest_last = np.argsort(held.rarity, kind="stable")
        factors[rarest_last] = np.sort(speeds)  # the rarest are the dearest
        return factors
    raise ConfigError(
        f"clients.cost_by is {kind!r}, but this federation has no {kind}; choose a "
        "federation.engine and data that have"
    )


def synthetic(config: Config, requirements: Requirements | None = None) -> SyntheticFederation:
    """Build the federation of a closed-form learning curve, whose parameters are its options."""
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
    """Refuse keys that the synthetic federation would ignore."""
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

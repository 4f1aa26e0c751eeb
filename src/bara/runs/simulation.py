"""The simulated federation of a configuration: its data, clients, engine and conduct."""

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bara.clients.conduct import Conduct, Role, cast_roles
from bara.datasets import Dataset, flip_labels, held_out
from bara.errors import ConfigError
from bara.protocols import Requirements
from bara.records import IntArray
from bara.runs.config import Config
from bara.runs.data import Holdings, division, holdings, load_data
from bara.runs.factory import bidders, epsilons, keeping
from bara.simulator import Data, Engine, Training
from bara.simulator.federation import SimulatedFederation, SimulationOptions
from bara.simulator.privacy import Privacy


def simulator(
    config: Config, requirements: Requirements, folder: Path | None = None
) -> SimulatedFederation:
    """Build the federation that trains on this machine; without a folder, it stores no models."""
    options = config.federation.options
    if options:
        key = next(iter(options))
        raise ConfigError(f"unknown key 'federation.{key}'; the simulator's only key is 'workers'")
    made = build_engine(config, requirements)
    return SimulatedFederation(
        made.engine,
        bidders(config, requirements, made.held),
        conduct(config, made.roles),
        _options(config, requirements, folder),
    )


class Clients(NamedTuple):
    """The simulated clients of a configuration.

    Attributes:
        engine: The engine that trains them.
        held: Who they are and what they hold, in the engine's order.
        roles: The roles of those that are not honest, by name.
    """

    engine: Engine
    held: Holdings
    roles: dict[str, Role]


def build_engine(config: Config, requirements: Requirements, workers: int | None = None) -> Clients:
    """Divide the data among the clients and build the engine that trains them.

    `workers` overrides the number of worker processes that the configuration asks for.
    """
    clients = config.clients
    dataset = load_data(config.data)
    made = division(config, dataset)
    samples = made.parts
    held = holdings(config, dataset, made)
    roles = cast_roles(
        held.names,
        config.seed,
        noisy=clients.noisy,
        free_riders=clients.free_riders,
        poisoners=clients.poisoners,
    )
    dealt = zip(held.names, samples, strict=True)
    noisy = [own for name, own in dealt if roles.get(name) == "noisy"]
    labels = _with_noise(config, dataset, noisy)
    engine = Engine(
        config.training.model,
        _training(config, requirements),
        _data(config, dataset, labels, samples),
        seed=config.seed,
        workers=workers or _workers(config, len(labels)),
        metric=config.training.metric,
    )
    return Clients(engine, held, roles)


SMALL = 10_000
"""The number of training samples up to which starting processes takes longer than it saves."""


def _workers(config: Config, samples: int) -> int:
    if config.federation.workers:
        return config.federation.workers
    if samples <= SMALL:
        return 1
    return os.cpu_count() or 1


def _training(config: Config, requirements: Requirements) -> Training:
    """Take the fields of the engine's `Training` from the keys of the same names."""
    values: dict[str, Any] = {"privacy": _privacy(config, requirements)}
    for field in fields(Training):
        if field.name != "privacy":
            values[field.name] = getattr(config.training, field.name)
    return Training(**values)


def _privacy(config: Config, requirements: Requirements) -> Privacy | None:
    """Join how clients are protected, which the mechanism says, with each client's epsilon."""
    protection = requirements.protection
    budgets = epsilons(config, requirements)
    if protection is None or budgets is None:
        return None
    if config.training.evidence:
        raise ConfigError(
            "training.evidence must be false with this mechanism, got true: it tells losses on "
            "private data"
        )
    return Privacy(protection, tuple(budgets.tolist()))


def _data(
    config: Config, dataset: Dataset, labels: NDArray[Any], samples: Sequence[IntArray]
) -> Data:
    """Join the training data with the held-out data: validation samples first, then the test's."""
    held = held_out(dataset, config.data.held_out, config.seed)
    most = config.data.evaluation_samples
    sets = {
        "validation": (held.x_validation, held.y_validation),
        "test": (held.x_test, held.y_test),
    }
    if held.same:
        del sets["validation"]
    inputs = []
    targets = []
    index = {}
    start = 0
    for name, (x, y) in sets.items():
        inputs.append(x[:most])
        targets.append(y[:most])
        end = start + len(targets[-1])
        index[name] = np.arange(start, end)
        start = end
    x_held = np.concatenate(inputs)
    y_held = np.concatenate(targets)
    return Data(
        dataset.x_train, labels, x_held, y_held, dataset.classes, index, samples, dataset.task
    )


def _with_noise(config: Config, dataset: Dataset, noisy: Sequence[IntArray]) -> NDArray[Any]:
    """Return the training labels, a share of them wrong among the samples of noisy clients."""
    if not noisy:
        return dataset.y_train
    if dataset.task == "regression":
        raise ConfigError(
            "clients.noisy makes labels wrong, and this target is a number; set clients.noisy = 0"
        )
    return flip_labels(
        dataset.y_train,
        np.concatenate(noisy),
        config.clients.label_noise,
        dataset.classes,
        config.seed,
    )


def conduct(config: Config, roles: dict[str, Role]) -> Conduct:
    """Return how clients behave once they have won; `roles` names those that are not honest."""
    clients = config.clients
    return Conduct(config.seed, roles, clients.failure_rate, clients.late_rate, clients.free_riding)


def _options(config: Config, requirements: Requirements, folder: Path | None) -> SimulationOptions:
    return SimulationOptions(
        weigh_by_samples=config.training.aggregation == "samples",
        add_up=config.training.aggregation == "sum",
        evidence=config.training.evidence or requirements.evidence,
        outliers=config.training.outliers or requirements.outliers,
        same_held_out=config.data.held_out == "same",
        keeping=keeping(config, folder),
        checkpoint_every=config.training.checkpoint_every,
        contributions_every=_contributions_every(config),
        shapley_every=config.training.shapley_every or 0,
    )


def _contributions_every(config: Config) -> int:
    asked = config.training.contributions_every
    if asked is not None:
        return asked
    has_silos = config.clients.partition.startswith("natural")
    return 1 if has_silos else 0

"""From a configuration to the simulated federation: data, partition, engine, conduct."""

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bara.clients.bidding import client_names
from bara.clients.conduct import Conduct, Role, cast_roles
from bara.datasets import Dataset, flip_labels, held_out
from bara.errors import ConfigError
from bara.protocols import Requirements
from bara.records import IntArray
from bara.runs.config import Config
from bara.runs.data import division, load_data
from bara.runs.factory import bidders, epsilons, keeping
from bara.simulator import Data, Engine, Training
from bara.simulator.federation import SimulatedFederation, SimulationOptions
from bara.simulator.privacy import Privacy


def simulator(
    config: Config, requirements: Requirements, folder: Path | None = None
) -> SimulatedFederation:
    """The federation that trains on this machine."""
    if config.federation.options:
        raise ConfigError(
            f"unknown key 'federation.{next(iter(config.federation.options))}'; the simulator's only key is 'workers'"
        )
    made = build_engine(config, requirements)
    bidding = bidders(config, requirements, made.sizes, made.names)
    return SimulatedFederation(
        made.engine, bidding, conduct(config, made.roles), _options(config, requirements, folder)
    )


class Clients(NamedTuple):
    """What trains a configuration's clients, their names and data sizes, and who of them is not honest."""

    engine: Engine
    names: tuple[str, ...]
    sizes: IntArray
    roles: dict[str, Role]


def build_engine(config: Config, requirements: Requirements, workers: int | None = None) -> Clients:
    """What trains a configuration's clients, and who they are."""
    clients = config.clients
    dataset = load_data(config.data)
    made = division(config, dataset)
    parts, names = made.parts, made.names or client_names(clients.count)
    roles = cast_roles(
        names,
        config.seed,
        noisy=clients.noisy,
        free_riders=clients.free_riders,
        poisoners=clients.poisoners,
    )
    labels = _with_noise(
        config, dataset, parts, [role == "noisy" for role in map(roles.get, names)]
    )
    engine = Engine(
        config.training.model,
        _training(config, requirements),
        _data(config, dataset, labels, parts),
        seed=config.seed,
        workers=workers or _workers(config, len(labels)),
        metric=config.training.metric,
    )
    return Clients(engine, names, np.array([len(part) for part in parts], np.int64), roles)


SMALL = 10_000
"""Training samples up to which starting more processes takes longer than it saves."""


def _workers(config: Config, samples: int) -> int:
    if config.federation.workers:
        return config.federation.workers
    return 1 if samples <= SMALL else os.cpu_count() or 1


def _training(config: Config, requirements: Requirements) -> Training:
    own = {
        one.name: getattr(config.training, one.name)
        for one in fields(Training)
        if one.name != "privacy"
    }
    return Training(**own, privacy=_privacy(config, requirements))


def _privacy(config: Config, requirements: Requirements) -> Privacy | None:
    """The mechanism says how clients are protected, the clients how much."""
    protection, budgets = requirements.protection, epsilons(config, requirements)
    if protection is None or budgets is None:
        return None
    if config.training.evidence:
        raise ConfigError(
            "training.evidence must be false with this mechanism, got true: it tells losses on private data"
        )
    return Privacy(protection, tuple(budgets.tolist()))


def _data(
    config: Config, dataset: Dataset, labels: NDArray[Any], parts: Sequence[NDArray[np.int64]]
) -> Data:
    """Training data, and the held-out set as the parts that decide and that are reported."""
    held = held_out(dataset, config.data.held_out, config.seed)
    most = config.data.evaluation_samples
    sets = {
        "validation": (held.x_validation, held.y_validation),
        "test": (held.x_test, held.y_test),
    }
    if held.same:
        del sets["validation"]
    cut = {name: (x[:most], y[:most]) for name, (x, y) in sets.items()}
    ends = np.cumsum([0, *(len(y) for _, y in cut.values())])
    index = {
        name: np.arange(first, last) for name, first, last in zip(cut, ends, ends[1:], strict=False)
    }
    x_held = np.concatenate([x for x, _ in cut.values()])
    y_held = np.concatenate([y for _, y in cut.values()])
    return Data(
        dataset.x_train, labels, x_held, y_held, dataset.classes, index, parts, dataset.task
    )


def _with_noise(
    config: Config, dataset: Dataset, parts: Sequence[NDArray[np.int64]], noisy: Sequence[bool]
) -> NDArray[Any]:
    chosen = [part for part, wrong in zip(parts, noisy, strict=True) if wrong]
    if not chosen:
        return dataset.y_train
    if dataset.task == "regression":
        raise ConfigError(
            "clients.noisy makes labels wrong, and this target is a number; set clients.noisy = 0"
        )
    return flip_labels(
        dataset.y_train,
        np.concatenate(chosen),
        config.clients.label_noise,
        dataset.classes,
        config.seed,
    )


def conduct(config: Config, roles: dict[str, Role]) -> Conduct:
    """How a configuration's clients behave once they have won."""
    clients = config.clients
    return Conduct(config.seed, roles, clients.failure_rate, clients.late_rate, clients.free_riding)


def _options(config: Config, requirements: Requirements, folder: Path | None) -> SimulationOptions:
    return SimulationOptions(
        weigh_by_samples=config.training.aggregation == "samples",
        evidence=config.training.evidence or requirements.evidence,
        outliers=config.training.outliers or requirements.outliers,
        same_held_out=config.data.held_out == "same",
        keeping=keeping(config, folder),
        checkpoint_every=config.training.checkpoint_every,
        contributions_every=_contributions_every(config),
    )


def _contributions_every(config: Config) -> int:
    asked = config.training.contributions_every
    return int(config.clients.partition.startswith("natural")) if asked is None else asked

"""The engines that a configuration names: what it describes of them, and who plays their runs.

What is said here is known by the name alone: reading a configuration imports no engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bara.server.metrics import metric_of_app, metric_title

Player = Literal["bara", "flower-app", "own-program", "nobody"]


@dataclass(frozen=True)
class EngineKind:
    """The facts about an engine that bara knows without importing it.

    Attributes:
        has_clients: The configuration describes the engine's clients, in `clients`.
        has_data: The configuration describes what they learn and how, in `data` and `training`.
        player: Who plays the engine's runs: `bara run` and `bara resume`, a Flower app's server, a
            program of the user's own (`bara.open_session`), or nobody any more.
    """

    has_clients: bool = False
    has_data: bool = False
    player: Player = "bara"


FLOWER_APP = "flower-app"
"""The engine of a Flower app's run: its nodes are reached from its own server alone."""

OWN_LOOP = "own-loop"
"""The engine of a run that a program of the user's own plays."""

SIMULATOR = "simulator"
SYNTHETIC = "synthetic"

KINDS = {
    SIMULATOR: EngineKind(has_clients=True, has_data=True),
    SYNTHETIC: EngineKind(has_clients=True),
    FLOWER_APP: EngineKind(player="flower-app"),
    OWN_LOOP: EngineKind(player="own-program"),
    # Runs of 0.1 and 0.2 on Flower's simulation engine can still be read.
    "flower": EngineKind(has_clients=True, has_data=True, player="nobody"),
}

_OF_OTHERS = EngineKind()
"""An engine that a user names by its import path."""


def kind_of(engine: str) -> EngineKind:
    """Return what is known of an engine, ours or a user's own."""
    return KINDS.get(engine, _OF_OTHERS)


def metric_name(engine: str, metric: str, options: Mapping[str, Any]) -> str:
    """Return the name of the metric of a run.

    Args:
        engine: The engine of the run.
        metric: The metric of `training`, for engines that train on data of ours.
        options: The engine's own options, which name a Flower app's metric.
    """
    if kind_of(engine).has_data:
        return str(metric)
    return metric_of_app(options)


def stored_metric(tree: Mapping[str, Any]) -> str:
    """Return the title of the metric of a run, from its configuration as stored."""
    federation = tree.get("federation", {})
    metric = tree.get("training", {}).get("metric", "accuracy")
    return metric_title(metric_name(federation.get("engine", ""), metric, federation))

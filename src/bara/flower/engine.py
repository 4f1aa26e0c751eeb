"""From a configuration to the same federation on Flower's simulation engine."""

import tomllib
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from bara.errors import ConfigError
from bara.experiments.config import Config
from bara.experiments.factory import bidders, requirements
from bara.experiments.sections import TrainingSection
from bara.experiments.simulation import build_engine, conduct
from bara.plugins import check_options

from bara.flower._telemetry_off import hush  # isort: skip - before Flower itself
from bara.flower._options import Habits
from bara.flower._simulated import Silos, SimulatedOnFlower
from bara.flower._strategies import STRATEGIES, check_weights
from bara.protocols import Federation

_OPTIONS: dict[str, type] = {"strategy": str, "bid_seconds": float, "train_seconds": float}


def simulated(config: Config, folder: Path | None = None) -> SimulatedOnFlower:
    """The federation on Flower's simulation engine; `federation.strategy` aggregates (FedAvg unless set)."""
    _refuse_what_flower_has_not(config)
    options = _options(config)
    hush()
    key = "num-examples" if config.training.aggregation == "samples" else "one"
    strategy = STRATEGIES.build(options.pop("strategy", "FedAvg"), fraction_evaluate=0.0, weighted_by_key=key)
    check_weights(requirements(config), strategy, config.mechanism.name)
    return SimulatedOnFlower(
        partial(silos, config.to_toml()),
        strategy,
        _habits(config, folder, options),
        same_held_out=config.data.held_out == "same",
        workers=config.federation.workers,
    )


def app(config: Config) -> Federation:
    """Refuse: the nodes of a Flower app can only be reached from its own server."""
    raise ConfigError(
        f"federation.engine is {config.federation.engine!r}: this run belongs to a Flower app; required is `flwr run`, "
        "which also goes on where it stopped"
    )


@lru_cache(maxsize=1)
def silos(words: str) -> Silos:
    """The simulator's clients of a configuration in TOML, in this process."""
    config = Config.parse(tomllib.loads(words))
    engine, sizes, roles = build_engine(config, workers=1)
    return Silos(engine, bidders(config, sizes), conduct(config, roles))


def _options(config: Config) -> dict[str, Any]:
    check_options("the federation on Flower", config.federation.options, _OPTIONS, prefix="federation.")
    return config.federation.options


def _habits(config: Config, folder: Path | None, options: dict[str, Any]) -> Habits:
    wanted = requirements(config)
    # Simulated clients are slow at times, never silent: with a tight deadline the menu would depend on the machine.
    return Habits(
        **{"bid_seconds": 3600.0, **options},
        fewest=config.clients.count,
        evidence="client" if config.training.evidence or wanted.evidence else "none",
        columns=wanted.columns,
        outliers=config.training.outliers or wanted.outliers,
        repeatable=True,
        known_by="partition",
        folder=folder,
    )


def _refuse_what_flower_has_not(config: Config) -> None:
    """A key that would be ignored is an error, not a surprise."""
    if config.clients.strategic and config.clients.strategy.startswith("learner"):
        raise ConfigError("clients.strategy is a learner, which the nodes on Flower are not; use the simulator")
    for key in ("average_last", "checkpoint_every"):
        if getattr(config.training, key) != getattr(TrainingSection(), key):
            raise ConfigError(f"training.{key} is set, but the run on Flower keeps every round's model, and only that")

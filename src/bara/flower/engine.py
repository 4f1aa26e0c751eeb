"""From a configuration to the same federation on Flower's simulation engine."""

import tomllib
from functools import lru_cache, partial
from pathlib import Path

from bara.errors import ConfigError
from bara.experiments.config import Config
from bara.experiments.factory import bidders
from bara.experiments.sections import TrainingSection
from bara.experiments.simulation import build_engine, conduct
from bara.protocols import Requirements

from bara.flower._telemetry_off import quieten  # isort: skip - before Flower itself
from flwr.app import Array, ArrayRecord

from bara.flower._federation import FlowerFederation
from bara.flower._options import ServerOptions, check_options
from bara.flower._ray_simulation import Simulation
from bara.flower._simulated import STATE, Silos, client_app
from bara.flower._strategies import STRATEGIES, capabilities


def simulated(config: Config, requirements: Requirements, folder: Path | None = None) -> FlowerFederation:
    """The federation on Flower's simulation engine; `federation.strategy` aggregates (FedAvg unless set)."""
    _refuse_what_flower_has_not(config)
    options = check_options("the federation on Flower", config, "strategy", "bid_seconds", "train_seconds")
    quieten()
    key = "num-examples" if config.training.aggregation == "samples" else "one"
    strategy = STRATEGIES.build(options.pop("strategy", "FedAvg"), fraction_evaluate=0.0, weighted_by_key=key)
    evidence = config.training.evidence or requirements.evidence
    make = partial(silos, config.to_toml(), requirements)
    mine = make()
    simulation = Simulation(client_app(make), config.clients.count, config.federation.workers)
    federation = FlowerFederation(
        simulation.start,
        strategy,
        ArrayRecord({STATE: Array(mine.engine.start())}),
        mine.evaluate,
        # Simulated clients are slow at times, never silent: with a tight deadline the menu would depend on the machine.
        options=ServerOptions(
            **{"bid_seconds": 3600.0, **options},
            fewest=config.clients.count,
            evidence="client" if evidence else "none",
            columns=requirements.columns,
            outliers=config.training.outliers or requirements.outliers,
            known_by="partition",
            folder=folder,
        ),
        capabilities=capabilities(strategy, protects=True, measures=True, repeatable=True),
        orders=partial(mine.orders, evidence=evidence),
    )
    federation.bidders = mine.bidders
    federation.callback(mine.engine.close)
    federation.callback(simulation.close)
    return federation


@lru_cache(maxsize=1)
def silos(words: str, requirements: Requirements) -> Silos:
    """The simulator's clients of a configuration in TOML, in this process."""
    config = Config.parse(tomllib.loads(words))
    engine, sizes, roles = build_engine(config, requirements, workers=1)
    same = config.data.held_out == "same"
    return Silos(engine, bidders(config, requirements, sizes), conduct(config, roles), same_held_out=same)


def _refuse_what_flower_has_not(config: Config) -> None:
    """A key that would be ignored is an error, not a surprise."""
    if config.clients.strategic and config.clients.strategy.startswith("learner"):
        raise ConfigError("clients.strategy is a learner, which the nodes on Flower are not; use the simulator")
    for key in ("average_last", "checkpoint_every"):
        if getattr(config.training, key) != getattr(TrainingSection(), key):
            raise ConfigError(f"training.{key} is set, but the run on Flower keeps every round's model, and only that")

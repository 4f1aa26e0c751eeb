"""An engine for tests: the simulator's clients as nodes of Flower's simulation engine (ray).

The simulator's clients are virtual nodes: they bid as they do there and train with its kernels, so
that menus, awards and payments are the same as in the simulator, and the model to float tolerance.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import final

from telemetry_off import quieten  # isort: skip - before Flower itself
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import strategy as flower_strategies
from ray_simulation import Simulation

from bara.clients.bidding import Bidders
from bara.clients.conduct import Conduct
from bara.errors import ConfigError
from bara.flower._bid_messages import Bid
from bara.flower._bidders import answer_bids
from bara.flower._federation import FlowerFederation
from bara.flower._options import ServerOptions, engine_options
from bara.flower._strategies import capabilities
from bara.protocols import Requirements
from bara.records import MICRO, Award
from bara.runs.config import Config
from bara.runs.factory import bidders, keeping
from bara.runs.sections import TrainingSection
from bara.runs.simulation import build_engine, conduct
from bara.simulator import Engine

STATE = "state"
"""The one array of the model: everything it learns, in the simulator's flat vector."""


@final
@dataclass(frozen=True)
class Silos:
    """The clients as the simulator has them; built once in every process.

    Attributes:
        engine: Trains and evaluates; the server uses its held-out parts `validation` (where there
            is one) and `test`.
        bidders: Who bids what.
        conduct: Who fails, is late, rides free or poisons.
        same_held_out: Decide and report on one and the same held-out set.
    """

    engine: Engine
    bidders: Bidders
    conduct: Conduct
    same_held_out: bool

    def orders(self, round: int, award: Award, *, evidence: bool) -> ConfigRecord:
        """Which of the winners fail this round: they are told, and really fail."""
        absent = self.conduct.absent(round, award.clients)
        numbers = [self.bidders.clients.index(client) for client in absent]
        return ConfigRecord({"absent": numbers, "evidence": evidence})

    def evaluate(self, _round: int, model: ArrayRecord) -> MetricRecord:
        """The server's own evaluation of the model."""
        state = model[STATE].numpy()
        test = self.engine.evaluate(state, "test")
        if self.same_held_out:
            return MetricRecord({"accuracy": test.accuracy, "loss": test.loss})
        own = self.engine.evaluate(state, "validation")
        reported = {"test-accuracy": test.accuracy, "test-loss": test.loss}
        return MetricRecord({"accuracy": own.accuracy, "loss": own.loss, **reported})


def client_app(make: Callable[[], Silos]) -> ClientApp:
    """What every virtual node runs: the simulator's client; `make` travels to ray's processes, so it is picklable."""
    app = ClientApp()
    answer_bids(app, lambda round, context: _bid(make(), round, context))

    @app.train()
    def train(message: Message, context: Context) -> Message:
        return Message(_trained(make(), message, context), reply_to=message)

    return app


def _bid(silos: Silos, round: int, context: Context) -> Bid | None:
    bids = silos.bidders.bids(round)
    me = silos.bidders.clients[int(context.node_config["partition-id"])]
    if me not in bids.clients:
        return None
    place = bids.clients.index(me)
    columns = {name: float(values[place]) for name, values in bids.columns.items()}
    return Bid(Decimal(int(bids.prices[place])) / MICRO, columns)


def _trained(silos: Silos, message: Message, context: Context) -> RecordDict:
    orders, me = message.content.config_records["config"], int(context.node_config["partition-id"])
    if me in orders["absent"]:  # type: ignore[operator]
        raise RuntimeError("this client fails, as clients.failure_rate or late_rate asks")
    number = int(orders["server-round"])  # type: ignore[arg-type]
    state = message.content.array_records["arrays"][STATE].numpy()
    updates = silos.engine.train(state, number, [me], evidence=bool(orders["evidence"]))
    updates = silos.conduct.tamper(number, [silos.bidders.clients[me]], state, updates)
    metrics = MetricRecord({"num-examples": updates.samples[0], "one": 1})
    for name, loss in (
        ("loss-before", updates.loss_before[0]),
        ("loss-after", updates.loss_after[0]),
    ):
        if loss is not None:
            metrics[name] = loss
    return RecordDict(
        {"arrays": ArrayRecord({STATE: Array(updates.states[0])}), "metrics": metrics}
    )


def simulated(
    config: Config, requirements: Requirements, folder: Path | None = None
) -> FlowerFederation:
    """The federation on Flower's simulation engine; `federation.strategy` aggregates (FedAvg unless set)."""
    _refuse_what_flower_has_not(config)
    options = engine_options(
        "the federation on Flower", config, "strategy", "bid_seconds", "train_seconds"
    )
    quieten()
    key = "num-examples" if config.training.aggregation == "samples" else "one"
    make_strategy = getattr(flower_strategies, options.pop("strategy", "FedAvg"))
    strategy = make_strategy(fraction_evaluate=0.0, weighted_by_key=key)
    evidence = config.training.evidence or requirements.evidence
    make = partial(silos, config.to_toml(), requirements)
    mine = make()
    if config.training.memory != "off" and mine.engine.layout.learned < mine.engine.layout.size:
        raise ConfigError(
            "training.memory adds up updates of several rounds, which does not work for batch norm's statistics; use "
            "the simulator, which keeps them apart, or another training.model"
        )
    simulation = Simulation(client_app(make), config.clients.count, config.federation.workers)
    federation = FlowerFederation(
        simulation.start,
        strategy,
        ArrayRecord({STATE: Array(mine.engine.start())}),
        mine.evaluate,
        # Simulated clients are slow at times, never silent: with a tight deadline the menu would
        # depend on the machine.
        options=ServerOptions(
            **{"bid_seconds": 600.0, **options},
            fewest=config.clients.count,
            evidence="client" if evidence else "none",
            columns=requirements.columns,
            outliers=config.training.outliers or requirements.outliers,
            known_by="partition",
            partitions=mine.bidders.clients,
            keeping=keeping(config, folder),
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
    made = build_engine(config, requirements, workers=1)
    bidding = bidders(config, requirements, made.sizes, made.names)
    same = config.data.held_out == "same"
    return Silos(made.engine, bidding, conduct(config, made.roles), same_held_out=same)


def _refuse_what_flower_has_not(config: Config) -> None:
    """A key that would be ignored is an error, not a surprise."""
    if config.clients.strategic and config.clients.strategy.startswith("learner"):
        raise ConfigError(
            "clients.strategy must not be a learner on Flower, whose nodes cannot learn; use the simulator"
        )
    if config.training.checkpoint_every != TrainingSection().checkpoint_every:
        raise ConfigError(
            "training.checkpoint_every must not be set on Flower, where every round's model is kept"
        )
    for key in config.parts().keys() - {"allocator", "mechanism"}:
        raise ConfigError(
            f"{key} must be an import path (package.module:Name) on Flower, whose nodes make their own"
        )

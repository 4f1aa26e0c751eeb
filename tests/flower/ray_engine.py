"""An engine for tests, `ray_engine:simulated`: the simulator's clients as Flower's virtual nodes.

The nodes bid like the simulator's clients and train with its kernels. So menus, awards and payments
equal the simulator's, and the model does to float tolerance. An engine by import path has no memory
unless `training.memory` is set.
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
from bara.flower import Bid, answer_bids
from bara.flower._federation import FlowerFederation
from bara.flower._options import ServerOptions
from bara.flower._strategies import capabilities
from bara.protocols import Requirements
from bara.records import MICRO, Award
from bara.runs.config import Config
from bara.runs.factory import bidders, keeping
from bara.runs.simulation import build_engine, conduct
from bara.simulator import Engine

STATE = "state"
"""The name of the model's only array, the simulator's flat vector."""


@final
@dataclass(frozen=True)
class Silos:
    """The simulator's clients; built once in every process.

    Attributes:
        engine: Trains and evaluates; the server uses its held-out sets `validation` and `test`.
        bidders: The clients as bidders.
        conduct: The misconduct of clients: failing, being late, free riding, poisoning.
        same_held_out: Decide and report on one and the same held-out set.
    """

    engine: Engine
    bidders: Bidders
    conduct: Conduct
    same_held_out: bool

    def orders(self, round: int, award: Award, *, evidence: bool) -> ConfigRecord:
        """Return the orders to a round's winners; some of them are ordered to fail."""
        absent = self.conduct.absent(round, award.clients)
        numbers = [self.bidders.clients.index(client) for client in absent]
        return ConfigRecord({"absent": numbers, "evidence": evidence})

    def evaluate(self, _round: int, model: ArrayRecord) -> MetricRecord:
        """Evaluate a model, as the server's own evaluation."""
        state = model[STATE].numpy()
        test = self.engine.evaluate(state, "test")
        if self.same_held_out:
            return MetricRecord({"accuracy": test.accuracy, "loss": test.loss})
        validation = self.engine.evaluate(state, "validation")
        metrics = MetricRecord({"accuracy": validation.accuracy, "loss": validation.loss})
        metrics["test-accuracy"] = test.accuracy
        metrics["test-loss"] = test.loss
        return metrics


def client_app(make: Callable[[], Silos]) -> ClientApp:
    """Return the app of every virtual node.

    Args:
        make: Makes the simulator's clients; it is pickled, and called in ray's processes.
    """
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
    orders = message.content.config_records["config"]
    me = int(context.node_config["partition-id"])
    if me in orders["absent"]:  # type: ignore[operator]
        raise RuntimeError("this client fails, as clients.failure_rate or late_rate asks")
    number = int(orders["server-round"])  # type: ignore[arg-type]
    state = message.content.array_records["arrays"][STATE].numpy()
    updates = silos.engine.train(state, number, [me], evidence=bool(orders["evidence"]))
    updates = silos.conduct.tamper(number, [silos.bidders.clients[me]], state, updates)
    metrics = MetricRecord({"num-examples": updates.samples[0], "one": 1})
    losses = {"loss-before": updates.loss_before[0], "loss-after": updates.loss_after[0]}
    for name, loss in losses.items():
        if loss is not None:
            metrics[name] = loss
    arrays = ArrayRecord({STATE: Array(updates.states[0])})
    return RecordDict({"arrays": arrays, "metrics": metrics})


def simulated(
    config: Config, requirements: Requirements, folder: Path | None = None
) -> FlowerFederation:
    """Build the federation; its strategy is Flower's `federation.strategy`, or FedAvg."""
    options = dict(config.federation.options)
    quieten()
    key = "num-examples" if config.training.aggregation == "samples" else "one"
    make_strategy = getattr(flower_strategies, options.pop("strategy", "FedAvg"))
    strategy = make_strategy(fraction_evaluate=0.0, weighted_by_key=key)
    evidence = config.training.evidence or requirements.evidence
    make = partial(silos, config.to_toml(), requirements)
    mine = make()
    simulation = Simulation(client_app(make), config.clients.count, config.federation.workers)
    federation = FlowerFederation(
        simulation.start,
        strategy,
        ArrayRecord({STATE: Array(mine.engine.start())}),
        mine.evaluate,
        # Simulated clients may be slow, but are never silent: with a tight deadline, menus would
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
    """Return the simulator's clients of a configuration in TOML; one set in each process."""
    config = Config.parse(tomllib.loads(words))
    made = build_engine(config, requirements, workers=1)
    bidding = bidders(config, requirements, made.held)
    same = config.data.held_out == "same"
    return Silos(made.engine, bidding, conduct(config, made.roles), same_held_out=same)

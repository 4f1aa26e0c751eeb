"""The simulator's clients as virtual nodes of Flower's simulation engine.

They bid as the simulator's clients do and train with its kernels, so that menus, awards and payments are the same as
in the simulator, and the model to float tolerance.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from decimal import Decimal
from typing import final

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import Strategy

from bara.federations.bidding import Bidders
from bara.federations.simulator import Engine
from bara.federations.simulator.conduct import Conduct
from bara.flower._bid_messages import Bid
from bara.flower._bidders import answer_bids
from bara.flower._federation import FlowerFederation
from bara.flower._options import Habits
from bara.flower._ray_simulation import Simulation
from bara.records import MICRO, Award, Bids, Delivery, Evaluation, RoundRecord

STATE = "state"
"""The one array of the model: everything it learns, in the simulator's flat vector."""


@final
@dataclass(frozen=True)
class Silos:
    """The clients as the simulator has them; built once in every process.

    Attributes:
        engine: Trains and evaluates; the server uses its held-out parts `validation` (where there is one) and `test`.
        bidders: Who bids what.
        conduct: Who fails, is late, rides free or poisons.
    """

    engine: Engine
    bidders: Bidders
    conduct: Conduct


Make = Callable[[], Silos]
"""Gives the silos of this process; it travels to ray's processes, so it must be picklable."""


@final
class SimulatedOnFlower(AbstractContextManager["SimulatedOnFlower"]):
    """The simulator's federation on Flower; a context manager, because it holds ray's processes.

    The simulation starts when it is first needed.

    Args:
        make: Gives the silos, here and in ray's processes.
        strategy: Aggregates.
        habits: How the server works.
        same_held_out: Decide and report on one and the same held-out set.
        workers: Processes to train in; 0 for as many as there are cores.
    """

    protects = True
    """Its clients are ours and train with local differential privacy where they are told to."""
    repeatable = True
    """They train the same way again."""

    def __init__(
        self, make: Make, strategy: Strategy, habits: Habits, *, same_held_out: bool = False, workers: int = 0
    ) -> None:
        self._silos = make()
        self._strategy = strategy
        self._habits = habits
        self._same_held_out = same_held_out
        self._simulation = Simulation(client_app(make), len(self._silos.bidders.clients), workers)
        self._inner: FlowerFederation | None = None

    def __exit__(self, *_: object) -> None:
        """End the nodes."""
        self._simulation.close()
        self._silos.engine.close()

    @property
    def bidders(self) -> Bidders:
        """Who bids what."""
        return self._silos.bidders

    @property
    def model(self) -> ArrayRecord:
        """The global model."""
        return self._federation.model

    def evaluate(self) -> Evaluation:
        """The initial model."""
        return self._federation.evaluate()

    def bids(self, round: int) -> Bids:  # noqa: A002 - a round is a round
        """What each client that is there asks."""
        return self._federation.bids(round)

    def train(self, round: int, award: Award) -> Delivery:  # noqa: A002
        """Train the winners on their nodes."""
        return self._federation.train(round, award)

    def checkpoint(self, last: int) -> int:
        """Load the newest whole checkpoint that is not later than that round."""
        return self._federation.checkpoint(last)

    def replay(self, record: RoundRecord) -> None:
        """Pass a settled round."""
        self._federation.replay(record)

    def finish(self) -> dict[str, dict[str, float]]:
        """Save the final model."""
        return self._federation.finish()

    @property
    def _federation(self) -> FlowerFederation:
        if self._inner is None:
            self._inner = FlowerFederation(
                self._simulation.start(),
                self._strategy,
                ArrayRecord({STATE: Array(self._silos.engine.start())}),
                self._evaluate,
                habits=self._habits,
                orders=self._orders,
            )
        return self._inner

    def _orders(self, round: int, award: Award) -> ConfigRecord:  # noqa: A002
        """Which of the winners fail this round: they are told, and really fail."""
        absent = self._silos.conduct.absent(round, award.clients)
        numbers = [self.bidders.clients.index(client) for client in absent]
        return ConfigRecord({"absent": numbers, "evidence": self._habits.evidence == "client"})

    def _evaluate(self, _round: int, model: ArrayRecord) -> MetricRecord:
        state, engine = model[STATE].numpy(), self._silos.engine
        test = engine.evaluate(state, "test")
        if self._same_held_out:
            return MetricRecord({"accuracy": test.accuracy, "loss": test.loss})
        own = engine.evaluate(state, "validation")
        reported = {"test-accuracy": test.accuracy, "test-loss": test.loss}
        return MetricRecord({"accuracy": own.accuracy, "loss": own.loss, **reported})


def client_app(make: Make) -> ClientApp:
    """What every virtual node runs: the simulator's client, behind Flower's messages."""
    app = ClientApp()
    answer_bids(app, lambda round, context: _bid(make(), round, context))  # noqa: A006 - a round is a round

    @app.train()
    def train(message: Message, context: Context) -> Message:
        return Message(_trained(make(), message, context), reply_to=message)

    return app


def _bid(silos: Silos, round: int, context: Context) -> Bid | None:  # noqa: A002
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
        raise RuntimeError("this client fails, as clients.failure_rate and late_rate have it")
    number = int(orders["server-round"])  # type: ignore[arg-type]
    state = message.content.array_records["arrays"][STATE].numpy()
    updates = silos.engine.train(state, number, [me], evidence=bool(orders["evidence"]))
    updates = silos.conduct.tamper(number, [silos.bidders.clients[me]], state, updates)
    metrics = MetricRecord({"num-examples": updates.samples[0], "one": 1})
    for name, loss in (("loss-before", updates.loss_before[0]), ("loss-after", updates.loss_after[0])):
        if loss is not None:
            metrics[name] = loss
    return RecordDict({"arrays": ArrayRecord({STATE: Array(updates.states[0])}), "metrics": metrics})

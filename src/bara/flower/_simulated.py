"""The simulator's clients as virtual nodes of Flower's simulation engine.

They bid as the simulator's clients do and train with its kernels, so that menus, awards and payments are the same as
in the simulator, and the model to float tolerance.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import final

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from bara.federations.bidding import Bidders
from bara.federations.simulator import Engine
from bara.federations.simulator.conduct import Conduct
from bara.flower._bid_messages import Bid
from bara.flower._bidders import answer_bids
from bara.records import MICRO, Award

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
        same_held_out: Decide and report on one and the same held-out set.
    """

    engine: Engine
    bidders: Bidders
    conduct: Conduct
    same_held_out: bool

    def orders(self, round: int, award: Award, *, evidence: bool) -> ConfigRecord:  # noqa: A002 - a round is a round
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


Make = Callable[[], Silos]
"""Gives the silos of this process; it travels to ray's processes, so it must be picklable."""


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

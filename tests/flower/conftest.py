"""A grid in this process: nodes that answer at once, and misbehave as they are told."""

import logging
from contextlib import contextmanager

import numpy as np
import pytest
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from bara import Session
from bara.flower import Bid, answer_bids
from bara.flower import _bid_messages as bid_messages
from bara.flower._federation import FlowerFederation
from bara.flower._options import ServerOptions

collect_ignore = ["plain_app", "apps_of_others"]
"""They are apps, not tests."""


class LocalGrid(Grid):
    """Runs one ClientApp for every node.

    Attributes:
        mishaps: What goes wrong, by (kind of message, partition): a function from the reply to what
            arrives instead, which may be None for nothing.
        pushed: Every message that was sent.
    """

    def __init__(self, app, nodes, first=100):
        self.app = app
        self.contexts = {
            first + i: Context(
                1, first + i, {"partition-id": i, "num-partitions": nodes}, RecordDict(), {}
            )
            for i in range(nodes)
        }
        self.keys = {node: f"key of {i}".encode() for i, node in enumerate(self.contexts)}
        self.mishaps = {}
        self.pushed = []
        self.arrived = []
        self._run = None
        self._replies = {}

    def set_run(self, run):
        self._run = run

    @property
    def run(self):
        return self._run

    def create_message(self, *args, **options):
        raise NotImplementedError

    def get_node_ids(self):
        return list(self.contexts)

    def get_nodes(self):
        return [NodeInfo(node_id=node, public_key=self.keys[node]) for node in self.contexts]

    def push_messages(self, messages):
        identifiers = []
        for message in messages:
            self.pushed.append(identified(message, f"message-{len(self.pushed)}"))
            self._replies[message.metadata.message_id] = self._reply(message)
            identifiers.append(message.metadata.message_id)
        return identifiers

    def pull_messages(self, message_ids):
        early, self.arrived = self.arrived, []
        found = [self._replies.pop(identifier, None) for identifier in message_ids]
        return [reply for reply in [*early, *found] if reply is not None]

    def send_and_receive(self, messages, *, timeout=None):  # noqa: ARG002 - Flower's signature
        return self.pull_messages(self.push_messages(messages))

    def _reply(self, message):
        context = self.contexts[message.metadata.dst_node_id]
        try:
            reply = self.app(message, context)
        except Exception as error:  # noqa: BLE001 - as Flower does
            reply = Message(Error(code=2, reason=f"Traceback\n{error!r}"), reply_to=message)
        kind = message.metadata.message_type.partition(".")[0]
        change = self.mishaps.get((kind, context.node_config.get("partition-id")))
        return reply if change is None else change(reply)


def identified(message, identifier):
    """The message with an identifier, which only Flower's own grid can give it."""
    message.metadata.__dict__["_message_id"] = identifier
    return message


def opened_bid(app, number=1, **node):
    """What a node with this configuration bids in a round, as the server opens it."""
    asked = identified(bid_messages.request(7, number, 10), "asked")
    reply = app(asked, Context(1, 7, node, RecordDict(), {}))
    assert reply.metadata.reply_to_message_id == "asked"
    return bid_messages.read(reply.content)


def bidding(**entries):
    """A client whose bid has these entries instead of its own."""

    def change(reply):
        for name, value in entries.items():
            reply.content.config_records["bara-bid"][name] = value
        return reply

    return change


def vanished(reply):
    """What the SuperLink says in the place of a node that was killed: it comes from the SuperLink
    itself.
    """
    gone = Message(Error(code=5, reason="node unavailable"), reply_to=_asked(reply))
    gone.metadata.__dict__["_src_node_id"] = 1
    return gone


def raising(reply):
    """A client whose app raised."""
    return Message(
        Error(code=2, reason="Traceback ...\nRuntimeError('boom')"), reply_to=_asked(reply)
    )


def silent(_reply):
    """A client that says nothing."""


def sending(**arrays):
    """A client that returns these arrays instead of its own."""

    def change(reply):
        reply.content["arrays"] = ArrayRecord(
            {name: Array(np.asarray(value)) for name, value in arrays.items()}
        )
        return reply

    return change


def counting(**metrics):
    """A client whose metrics are these."""

    def change(reply):
        reply.content["metrics"] = MetricRecord(metrics)
        return reply

    return change


def _asked(reply):
    """A message such as the reply answers, with its identifier."""
    metadata = reply.metadata
    asked = Message(RecordDict(), metadata.src_node_id, metadata.message_type)
    return identified(asked, metadata.reply_to_message_id)


def die():
    raise KeyboardInterrupt


@contextmanager
def amid(number, moment, happens=die):
    """Let something happen in a round: once it is `awarded`, and nobody has trained; or once it is
    `trained`, with its checkpoint, and nobody is paid.
    """
    award, settle = Session.award, Session.settle
    happened = []

    def awarding(self, *bids):
        found = award(self, *bids)
        at(self, "awarded")
        return found

    def settling(self, *delivery):
        at(self, "trained")
        return settle(self, *delivery)

    def at(session, reached):
        if (session.round, reached) == (number, moment):
            happened.append(reached)
            happens()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Session, "award", awarding)
        patched.setattr(Session, "settle", settling)
        yield
    assert happened


def walking_app(prices=None, samples=None, mods=None):
    """Clients that ask 1, 2, 3, ... and move the model's numbers by their own number plus one."""
    app = ClientApp(mods=mods)

    def price(_round, context):
        part = context.node_config["partition-id"]
        return Bid((prices or {}).get(part, part + 1), {"samples": 10 * (part + 1)})

    answer_bids(app, price)

    @app.train()
    def train(message, context):
        part = context.node_config["partition-id"]
        moved = {
            name: Array(one.numpy() + part + 1) for name, one in message.content["arrays"].items()
        }
        metrics = MetricRecord({"num-examples": samples or 10 * (part + 1)})
        return Message(
            RecordDict({"arrays": ArrayRecord(moved), "metrics": metrics}), reply_to=message
        )

    @app.evaluate()
    def evaluate(message, _context):
        mean = float(message.content["arrays"]["w"].numpy().mean())
        metrics = MetricRecord({"num-examples": 1, "accuracy": min(mean / 100, 1.0)})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app


def start_model():
    return ArrayRecord(
        {"w": Array(np.zeros((2, 3), np.float32)), "b": Array(np.zeros(2, np.float64))}
    )


def how_far(_round, arrays):
    """The accuracy of the walking model: how far it has come."""
    mean = float(arrays["w"].numpy().mean())
    return MetricRecord({"accuracy": min(abs(mean) / 100, 1.0), "loss": 1.0 - mean / 100})


@pytest.fixture(autouse=True)
def _identity(monkeypatch):
    """What Flower sets when it starts a server: messages carry it."""
    for name, value in {"_task_id": 1, "_run_id": 1, "_node_id": 1}.items():
        monkeypatch.setattr(TaskIdentity, name, value)


class Clock:
    """Time that passes only while somebody sleeps, and then at once."""

    def __init__(self):
        self._now = 0.0

    def monotonic(self):
        return self._now

    def sleep(self, seconds):
        self._now += seconds + 0.001  # who sleeps wakes a little late


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The clock by which the server waits: no machine is so busy that a window closes too early."""
    clock = Clock()
    for module in ("_server", "_bid_collection", "_exchange"):
        monkeypatch.setattr(f"bara.flower.{module}.time", clock)
    return clock


class LocalSimulation:
    """Stands in for Flower's simulation engine, in this process."""

    def __init__(self, app, nodes, workers=0):  # noqa: ARG002 - the simulation's signature
        self.grid = LocalGrid(app, nodes)

    def start(self):
        return self.grid

    def close(self):
        pass


@pytest.fixture
def without_ray(monkeypatch):
    """Lets the engine on Flower run its nodes in this process."""
    monkeypatch.setattr("ray_engine.Simulation", LocalSimulation)


@pytest.fixture
def logged(caplog, monkeypatch):
    """What Flower's log says."""
    monkeypatch.setattr(logging.getLogger("flwr"), "propagate", True)
    caplog.set_level(logging.INFO, "flwr")
    return caplog


@pytest.fixture
def grid():
    return LocalGrid(walking_app(), 5)


@pytest.fixture
def federate(grid):
    """A federation over the local grid."""

    def make(strategy=None, evaluate=how_far, on=None, model=None, **options):
        options = {"known_by": "partition", "train_seconds": 0.2, "bid_seconds": 0.2, **options}
        chosen = strategy or FedAvg(fraction_evaluate=0.0)
        config = ConfigRecord({"lr": 0.1})
        return FlowerFederation(
            lambda: on or grid,
            chosen,
            model or start_model(),
            evaluate,
            options=ServerOptions(**options),
            train_config=config,
        )

    return make

"""Messages to nodes and their answers, each known by the message it replies to, until a deadline."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import final

from flwr.app import Message
from flwr.app.error import Error
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run

CLOCKS = 600.0
"""Seconds by which the clocks of silos may differ before a message looks too old to its receiver."""

FASTEST, SLOWEST, PATIENCE = 0.01, 0.5, 0.05
"""Seconds between two looks: this share of the time waited so far, within these bounds."""

TOO_LATE = "no answer within"
"""How the reason begins why a node that said nothing has no answer."""

_CODES = {2: "its app raised an error", 5: "its node is gone", 8: "its app's process ended"}


@final
@dataclass(frozen=True)
class Answers:
    """What came back.

    Attributes:
        told: The answer of each node that gave one.
        silent: Why there is none from the others.
        seconds: How long each answer took.
    """

    told: dict[int, Message] = field(default_factory=dict)
    silent: dict[int, str] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)


def ask(grid: Grid, messages: Iterable[Message], seconds: float) -> Answers:
    """Send at most one message to each node and wait for the answers; what comes later is never looked at.

    A reply is attributed by the message it answers: when a node dies, the error that stands for its
    reply comes from the SuperLink.
    """
    answers = Answers()
    waiting = _send(grid, list(messages), seconds, answers)
    begun = time.monotonic()
    while waiting:
        for reply in grid.pull_messages(list(waiting)):
            node = waiting.pop(reply.metadata.reply_to_message_id, None)
            if node is None:
                continue
            if reply.has_error():
                answers.silent[node] = _reason(reply.error)
            else:
                answers.told[node] = reply
                answers.seconds[node] = time.monotonic() - begun
        waited = time.monotonic() - begun
        if waited >= seconds:
            break
        if waiting:
            time.sleep(min(FASTEST + PATIENCE * waited, SLOWEST, seconds - waited))
    answers.silent.update(dict.fromkeys(waiting.values(), f"{TOO_LATE} {seconds:g} seconds"))
    return answers


def _send(grid: Grid, messages: list[Message], seconds: float, answers: Answers) -> dict[str, int]:
    """Push the messages; returns whose answer each message's identifier waits for."""
    for message in messages:
        message.metadata.ttl = (
            seconds + CLOCKS
        )  # a node that comes back later finds no work nobody waits for
    taken = set(grid.push_messages(messages))
    waiting = {}
    for message in messages:
        if message.metadata.message_id in taken:
            waiting[message.metadata.message_id] = message.metadata.dst_node_id
        else:
            answers.silent[message.metadata.dst_node_id] = "Flower could not send it the message"
    return waiting


def _reason(error: Error) -> str:
    lines = [line.strip() for line in (error.reason or "").splitlines() if line.strip()]
    words = _CODES.get(error.code, f"Flower's error {error.code}")
    return f"{words}: {lines[-1][:160]}" if lines else words


@final
class RestrictedGrid(Grid):
    """A grid on which only these nodes can be seen, so that a strategy recruits nobody else."""

    def __init__(self, grid: Grid, nodes: Iterable[int]) -> None:
        self._grid = grid
        self._nodes = tuple(nodes)

    def get_node_ids(self) -> Iterable[int]:
        """These."""
        return self._nodes

    def get_nodes(self) -> Iterable[NodeInfo]:
        """These."""
        return [node for node in self._grid.get_nodes() if node.node_id in self._nodes]

    def set_run(self, run: Run) -> None:
        """As the grid does."""
        self._grid.set_run(run)

    @property
    def run(self) -> Run:
        """The grid's."""
        return self._grid.run

    def create_message(self, *args: object, **options: object) -> Message:
        """As the grid does."""
        return self._grid.create_message(*args, **options)  # type: ignore[arg-type]

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """As the grid does."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """As the grid does."""
        return self._grid.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """As the grid does."""
        return self._grid.send_and_receive(messages, timeout=timeout)

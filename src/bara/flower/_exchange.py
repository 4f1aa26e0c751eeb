"""Messages to nodes and their answers, which are awaited until a deadline."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

from flwr.app import Error, Message
from flwr.serverapp import Grid

from bara.errors import PausedError

CLOCKS = 600.0
"""Seconds by which the clocks of silos may differ before a message looks expired on arrival."""

FASTEST = 0.01
"""Seconds between the first two looks for answers."""

PATIENCE = 0.05
"""The share of the time waited so far that is added to the pause before the next look."""

SLOWEST = 0.5
"""The longest pause between two looks, in seconds."""

TOO_LATE = "no answer within"
"""How the reason begins for a node that sent nothing before the deadline."""

_GONE = "its node is gone"
_UNSENT = "Flower could not send it the message"
_LOST = "Flower lost the message or the reply"

NOT_CONNECTED = "its node is not connected"

UNHEARD = (TOO_LATE, _GONE, _UNSENT, _LOST, NOT_CONNECTED)
"""How the reasons begin for nodes that said nothing, not even that their apps failed."""

_CODES = {
    1: "its app cannot be loaded",
    2: "its app raised an error",
    3: _LOST,
    4: _LOST,
    5: _GONE,
    8: "its app's process ended",
}
"""What errors in place of replies mean; Flower's names for these numbers are not public."""


@final
@dataclass(frozen=True)
class Answers:
    """The nodes' answers to a batch of messages, by node id.

    Attributes:
        told: The answer of each node that sent one.
        silent: For each of the other nodes, the reason why there is no answer.
        seconds: How long each answer took.
    """

    told: dict[int, Message] = field(default_factory=dict)
    silent: dict[int, str] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)


def ask(grid: Grid, messages: Iterable[Message], seconds: float, clocks: float = CLOCKS) -> Answers:
    """Send at most one message to each node and wait for the answers; late ones are ignored.

    A reply is attributed by the message it answers, not by its sender: when a node dies, the
    SuperLink sends an error in place of its reply.

    Args:
        grid: The grid of the nodes.
        messages: The messages, at most one per node.
        seconds: How long to wait for the answers.
        clocks: Seconds for which a message stays valid beyond that, because clocks differ.
    """
    answers = Answers()
    waiting = _send(grid, list(messages), seconds + clocks, answers)
    begun = time.monotonic()
    while waiting:
        check_engine()
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


def check_engine() -> None:
    """Stop at once if Flower's simulation has crashed: nobody will answer any more.

    A simulation runs the server app in a thread, which outlives the program's main thread then.
    """
    if not threading.main_thread().is_alive():
        raise PausedError("Flower's simulation has crashed: no client can answer any more")


def _send(grid: Grid, messages: list[Message], valid: float, answers: Answers) -> dict[str, int]:
    """Push the messages; return, by the id of each sent message, the node that must answer."""
    for message in messages:
        # A node that returns after the deadline must not find work that nobody waits for.
        message.metadata.ttl = valid
    sent = set(grid.push_messages(messages))
    waiting = {}
    for message in messages:
        node = message.metadata.dst_node_id
        if message.metadata.message_id in sent:
            waiting[message.metadata.message_id] = node
        else:
            answers.silent[node] = _UNSENT
    return waiting


def _reason(error: Error) -> str:
    """Describe an error in one line: its kind, and the last line of its details, if any."""
    kind = _CODES.get(error.code, f"Flower's error {error.code}")
    details = (error.reason or "").strip()
    if not details:
        return kind
    last_line = details.splitlines()[-1].strip()
    return f"{kind}: {last_line[:160]}"


@final
class RestrictedGrid(Grid):
    """A grid on which only some nodes are visible, so that a strategy recruits nobody else.

    Args:
        grid: The grid that does the work.
        nodes: The ids of the visible nodes.
    """

    def __init__(self, grid: Grid, nodes: Iterable[int]) -> None:
        self._grid = grid
        self._nodes = tuple(nodes)

    def get_node_ids(self) -> Iterable[int]:
        """Return the ids of the visible nodes."""
        return self._nodes

    def get_nodes(self) -> Iterable[Any]:
        """Return those of the visible nodes that are connected."""
        return [node for node in self._grid.get_nodes() if node.node_id in self._nodes]

    def set_run(self, run: Any) -> None:
        """Tell the underlying grid which run it serves."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The run that the underlying grid serves."""
        return self._grid.run

    def create_message(self, *args: Any, **options: Any) -> Message:
        """Create a message through the underlying grid."""
        return self._grid.create_message(*args, **options)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Push messages through the underlying grid; return their ids."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pull the replies to the messages with these ids from the underlying grid."""
        return self._grid.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send messages through the underlying grid and return the replies."""
        return self._grid.send_and_receive(messages, timeout=timeout)

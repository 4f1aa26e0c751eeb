"""Asking the nodes of a grid for their bids, and opening what they answer."""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import final

from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid

from bara.errors import ConfigError, InvalidBidError, RunStoppedError
from bara.flower import _bid_messages as bid_messages
from bara.flower._exchange import TOO_LATE, ask
from bara.flower._options import ServerOptions
from bara.flower.identity import Directory
from bara.randomness import stream
from bara.records import MAX_MONEY, TIE, Bids
from bara.text import counted

log = logging.getLogger("flwr")


@final
class Attendance:
    """Says who is there while a server waits for nodes, whenever that changes.

    Args:
        wanted: How many it waits for.
        directory: What nodes are called.
    """

    def __init__(self, wanted: int, directory: Directory) -> None:
        self._wanted = wanted
        self._directory = directory
        self._shown: list[str] | None = None

    def show(self, nodes: Iterable[NodeInfo]) -> None:
        """Say it, if it is news and not all of them."""
        names = sorted(map(self._directory.shown, nodes))
        if names != self._shown and len(names) < self._wanted:
            log.info(
                "bara: waiting for %d nodes; connected: %s",
                self._wanted,
                ", ".join(names) or "none yet",
            )
        self._shown = names


def connected(
    grid: Grid, options: ServerOptions, directory: Directory | None = None
) -> dict[int, NodeInfo]:
    """The nodes that are there; waits for the fewest without which no round begins."""
    directory = directory or Directory(options.known_by, options.names, options.partitions)
    begun, attendance = time.monotonic(), Attendance(options.fewest, directory)
    while len(found := list(grid.get_nodes())) < options.fewest:
        if time.monotonic() - begun >= options.patience:
            raise RunStoppedError(
                f"at least {counted(options.fewest, 'node')} must connect within {options.patience:g} seconds, got "
                f"{len(found)}"
            )
        attendance.show(found)
        time.sleep(min(1.0, options.patience))
    return {node.node_id: node for node in found}


@final
class BidCollection:
    """Opens the bids of one round after another, and knows where each client is.

    Args:
        grid: Where the nodes are.
        options: How long to wait, and for what.
        known: Clients that stand in the books.
    """

    def __init__(self, grid: Grid, options: ServerOptions, known: Iterable[str] = ()) -> None:
        self._grid = grid
        self._options = options
        self._directory = Directory(options.known_by, options.names, options.partitions)
        self._directory.know(known)
        self._opened: tuple[int, Bids] | None = None

    def bids(self, round: int) -> Bids:
        """The sealed bids of every node that answered in time; one per round, however often they are asked for."""
        if self._opened is None or self._opened[0] != round:
            self._opened = round, self._collect(round)
        return self._opened[1]

    def locate(self, round: int, clients: tuple[str, ...]) -> dict[str, int | None]:
        """The node of each client, None where it is not connected."""
        if any(self._directory.node_of(client) is None for client in clients):  # after a restart
            if self._options.known_by == "key":
                self._directory.know(clients)
                self._directory.read(
                    connected(self._grid, self._options, self._directory).values(), {}
                )
            else:
                self.bids(round)  # only the nodes know which part they hold
        return {client: self._directory.node_of(client) for client in clients}

    def _collect(self, round: int) -> Bids:
        nodes, seconds = (
            connected(self._grid, self._options, self._directory),
            self._options.bid_seconds,
        )
        answers = ask(
            self._grid, [bid_messages.request(node, round, seconds) for node in nodes], seconds
        )
        most = MAX_MONEY >> max(len(nodes), 1).bit_length()
        opened: dict[int, bid_messages.Opened] = {}
        problems = dict(answers.silent)
        for node, reply in answers.told.items():
            try:
                opened[node] = bid_messages.read(reply.content, most, self._options.unit)
            except InvalidBidError as error:
                problems[node] = str(error)
        for node, problem in problems.items():
            log.warning(
                "round %d: %s is not in the menu: %s",
                round,
                self._directory.shown(nodes[node]),
                problem,
            )
        self._check_turnout(round, len(nodes), problems)
        clients = self._directory.read(nodes.values(), opened)
        return self._joined(
            round, {client: opened[node] for client, node in clients.items() if node in opened}
        )

    def _check_turnout(self, round: int, nodes: int, problems: Mapping[int, str]) -> None:
        """End a run that nobody answers from the start; warn where most come too late."""
        if round == 1 and nodes and len(problems) == nodes:
            usual = Counter(problems.values()).most_common(1)[0][0]
            raise ConfigError(
                f"none of {counted(nodes, 'node')} sent a valid bid ({usual}); client_app.py must call "
                "`answer_bids(app, ...)`, and bara.federation.bid-seconds must be long enough"
            )
        late = sum(reason.startswith(TOO_LATE) for reason in problems.values())
        if 2 * late > nodes:
            log.warning(
                "bara: round %d: %d of %d nodes did not bid within %g seconds; raise bara.federation.bid-seconds",
                round,
                late,
                nodes,
                self._options.bid_seconds,
            )

    def _joined(self, round: int, opened: Mapping[str, bid_messages.Opened]) -> Bids:
        """The bids with the columns the mechanism wants, and those that all of them carry."""
        wanted = set(self._options.columns)
        bidding = {
            c: bid
            for c, bid in opened.items()
            if bid.price is not None and bid.columns.keys() >= wanted
        }
        for client in opened.keys() - bidding.keys():
            if opened[client].price is not None:
                log.warning(
                    "%s is not in the menu: its bid lacks %s",
                    client,
                    wanted - opened[client].columns.keys(),
                )
        carried = [set(bid.columns) for bid in bidding.values()]
        common = set.intersection(*carried) if carried else wanted
        clients = tuple(bidding)
        columns = {
            name: [bidding[client].columns[name] for client in clients]
            for name in sorted(common - {TIE})
        }
        if self._options.seed is not None:
            places = stream(self._options.seed, "ties", round).permutation(len(clients))
            columns[TIE] = [float(place + 1) for place in places]
        return Bids(clients, [bidding[client].price for client in clients], columns)  # type: ignore[arg-type]

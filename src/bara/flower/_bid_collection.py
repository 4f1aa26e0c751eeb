"""The server's side of bidding: asks the nodes of a grid for their bids and opens the answers."""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import final

from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid

from bara.errors import ConfigError, InvalidBidError, RunStoppedError
from bara.flower import _bid_messages as bid_messages
from bara.flower._exchange import TOO_LATE, ask
from bara.flower._options import ServerOptions
from bara.flower.identity import Directory
from bara.randomness import stream
from bara.records import TIE, Bids
from bara.text import counted

log = logging.getLogger("flwr")


@final
class Attendance:
    """A log of the connected nodes while a server waits for more, one line per change.

    Args:
        wanted: The number of nodes that the server waits for.
        directory: The names of the nodes.
    """

    def __init__(self, wanted: int, directory: Directory) -> None:
        self._wanted = wanted
        self._directory = directory
        self._shown: list[str] | None = None

    def show(self, nodes: Iterable[NodeInfo]) -> None:
        """Log the connected nodes, if they have changed and some are still missing."""
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
    """Wait for the fewest nodes that a round needs; return all connected nodes by their ids.

    Args:
        grid: The grid whose nodes are counted.
        options: The fewest nodes, and how long to wait for them.
        directory: The names of the nodes, for the log; made from the options if None.

    Raises:
        RunStoppedError: when too few nodes connect in time.
    """
    directory = directory or Directory(options.known_by, options.names, options.partitions)
    attendance = Attendance(options.fewest, directory)
    begun = time.monotonic()
    while True:
        nodes = list(grid.get_nodes())
        if len(nodes) >= options.fewest:
            return {node.node_id: node for node in nodes}
        if time.monotonic() - begun >= options.patience:
            raise RunStoppedError(
                f"at least {counted(options.fewest, 'node')} must connect within "
                f"{options.patience:g} seconds, got {len(nodes)}"
            )
        attendance.show(nodes)
        time.sleep(min(1.0, options.patience))


@final
class BidCollection:
    """The collector of each round's bids, which also knows the node of each client.

    Args:
        grid: The grid whose nodes bid.
        options: How long to wait for bids, and which columns each must carry.
        known: The clients that already stand in the books.
    """

    def __init__(self, grid: Grid, options: ServerOptions, known: Iterable[str] = ()) -> None:
        self._grid = grid
        self._options = options
        self._directory = Directory(options.known_by, options.names, options.partitions)
        self._directory.know(known)
        self._opened: tuple[int, Bids] | None = None

    def bids(self, round: int) -> Bids:
        """Return a round's sealed bids from all nodes that answered in time; each is asked once."""
        if self._opened is None or self._opened[0] != round:
            self._opened = round, self._collect(round)
        return self._opened[1]

    def locate(self, round: int, clients: tuple[str, ...]) -> dict[str, int | None]:
        """Return the node of each client, None for those that are not connected."""
        unknown = [client for client in clients if self._directory.node_of(client) is None]
        if unknown and self._options.known_by == "key":  # the server was restarted
            self._directory.know(clients)
            nodes = connected(self._grid, self._options, self._directory)
            self._directory.read(nodes.values(), {})
        elif unknown:
            self.bids(round)  # only the nodes know which partition they hold
        return {client: self._directory.node_of(client) for client in clients}

    def _collect(self, round: int) -> Bids:
        nodes = connected(self._grid, self._options, self._directory)
        seconds = self._options.bid_seconds
        requests = [bid_messages.request(node, round, seconds) for node in nodes]
        answers = ask(self._grid, requests, seconds)
        opened: dict[int, bid_messages.Opened] = {}
        problems = dict(answers.silent)
        for node, reply in answers.told.items():
            try:
                opened[node] = bid_messages.read(reply.content)
            except InvalidBidError as error:
                problems[node] = str(error)
        for node, problem in problems.items():
            name = self._directory.shown(nodes[node])
            log.warning("round %d: %s is not in the menu: %s", round, name, problem)
        clients = self._directory.read(nodes.values(), opened)
        bids = self._joined(
            round, {client: opened[node] for client, node in clients.items() if node in opened}
        )
        problems |= {clients[client]: reason for client, reason in bids.left_out.items()}
        self._check_turnout(round, len(nodes), problems)
        return bids

    def _check_turnout(self, round: int, nodes: int, problems: Mapping[int, str]) -> None:
        """Stop a run whose first round gets no valid bid; warn when most bids come too late."""
        if round == 1 and nodes and len(problems) == nodes:
            usual = Counter(problems.values()).most_common(1)[0][0]
            raise ConfigError(
                f"none of {counted(nodes, 'node')} sent a valid bid ({usual}); client_app.py must "
                "call `answer_bids(app, ...)`, and bara.federation.bid-seconds must be long enough"
            )
        late = sum(reason.startswith(TOO_LATE) for reason in problems.values())
        if 2 * late > nodes:
            log.warning(
                "bara: round %d: %d of %d nodes did not bid within %g seconds; "
                "raise bara.federation.bid-seconds",
                round,
                late,
                nodes,
                self._options.bid_seconds,
            )

    def _joined(self, round: int, opened: Mapping[str, bid_messages.Opened]) -> Bids:
        """Join the clients' bids; those that lack a column the mechanism requires are left out.

        A column that is not required is included if every bid carries it.
        """
        bidding = {client: bid for client, bid in opened.items() if bid.price is not None}
        prices = {client: Decimal(bid.price or 0).scaleb(-6) for client, bid in bidding.items()}
        required = set(self._options.columns)
        complete = [bid for bid in bidding.values() if required <= bid.columns.keys()]
        included = set(required)
        if complete:
            included |= set.intersection(*[set(bid.columns) for bid in complete])
        columns: dict[str, dict[str, float]] = {}
        for name in sorted(included - {TIE}):
            columns[name] = {}
            for client, bid in bidding.items():
                if name in bid.columns:
                    columns[name][client] = bid.columns[name]
        if self._options.seed is not None:
            places = stream(self._options.seed, "ties", round).permutation(len(prices))
            columns[TIE] = dict(zip(prices, (places + 1).tolist(), strict=True))
        bids = Bids.opened(prices, **columns)
        unread = {client: bid.fault for client, bid in opened.items() if bid.fault}
        return replace(bids, left_out={**bids.left_out, **unread})

"""The server's side of bidding: asks the nodes of a grid for their bids and opens the answers."""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import final

from flwr.serverapp import Grid

from bara.errors import ConfigError, InvalidBidError, PausedError
from bara.flower import _bid_messages as bid_messages
from bara.flower._exchange import CLOCKS, TOO_LATE, UNHEARD, ask, check_engine
from bara.flower._options import ServerOptions
from bara.flower.identity import Directory, Node
from bara.randomness import stream
from bara.records import TIE, Bids
from bara.text import counted, spelled, storable

log = logging.getLogger("flwr")

_IDLE_ROUNDS = 3
"""The rounds in a row that everybody may sit out before the run pauses."""


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

    def show(self, nodes: Iterable[Node]) -> None:
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
) -> dict[int, Node]:
    """Wait for the fewest nodes that a round needs; return all connected nodes by their ids.

    Args:
        grid: The grid whose nodes are counted.
        options: The fewest nodes, and how long to wait for them.
        directory: The names of the nodes, for the log; made from the options if None.

    Raises:
        PausedError: when too few nodes connect in time.
    """
    directory = directory or Directory(options.known_by, options.names, options.partitions)
    attendance = Attendance(options.fewest, directory)
    begun = time.monotonic()
    while True:
        nodes = list(grid.get_nodes())
        if len(nodes) >= options.fewest:
            return {node.node_id: node for node in nodes}
        if time.monotonic() - begun >= options.patience:
            raise PausedError(
                f"at least {counted(options.fewest, 'node')} must connect within "
                f"{options.patience:g} seconds, got {len(nodes)}"
            )
        check_engine()
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
        self._idle = 0  # rounds in a row in which everybody sat out

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
        """Ask for bids until somebody answers; a round that nobody bid in is not used up.

        Raises:
            ConfigError: when nodes answer in the first round and none of them bids: they cannot.
            PausedError: when nobody answers for as long as the server is patient, or when everybody
                has sat out several rounds one after the other.
        """
        begun = time.monotonic()
        pause = self._options.bid_seconds  # requests that were not answered have expired by then
        while True:
            nodes = connected(self._grid, self._options, self._directory)
            opened, problems = self._asked(round, nodes)
            if opened:
                break
            answered = [one for one in problems.values() if not one.startswith(UNHEARD)]
            if round == 1 and answered:
                raise _no_valid_bid(len(nodes), answered)
            waited = time.monotonic() - begun
            if waited + pause > self._options.patience:
                raise PausedError(
                    f"round {round}: none of {counted(len(nodes), 'node')} bid within "
                    f"{waited:.0f} seconds ({_usual(problems.values())}); the round is not used up"
                )
            log.warning(
                "bara: round %d: nobody bid (%s); asking again in %g seconds",
                round,
                _usual(problems.values()),
                pause,
            )
            time.sleep(pause)
            pause *= 2
        clients = self._directory.read(nodes.values(), opened)
        known = {client: opened[node] for client, node in clients.items() if node in opened}
        bids = self._joined(round, known)
        problems |= {clients[client]: reason for client, reason in bids.left_out.items()}
        if round == 1 and len(problems) == len(nodes):
            raise _no_valid_bid(len(nodes), problems.values())
        self._idle = 0 if len(bids) else self._idle + 1
        if self._idle == _IDLE_ROUNDS:
            raise PausedError(
                f"round {round}: all clients that answered sit out, as in the "
                f"{_IDLE_ROUNDS - 1} rounds before"
            )
        return bids

    def _asked(
        self, round: int, nodes: Mapping[int, Node]
    ) -> tuple[dict[int, bid_messages.Opened], dict[int, str]]:
        """Ask the nodes once; return the bids, and the problems of those without a valid one."""
        seconds = self._options.bid_seconds
        requests = [bid_messages.request(node, round, seconds) for node in nodes]
        # Beyond the window, a request is valid for no longer than another window.
        answers = ask(self._grid, requests, seconds, clocks=min(seconds, CLOCKS))
        opened: dict[int, bid_messages.Opened] = {}
        problems = dict(answers.silent)
        for node, reply in answers.told.items():
            try:
                opened[node] = bid_messages.read(reply.content)
            except InvalidBidError as error:
                problems[node] = str(error)
        for node, problem in problems.items():
            name = self._directory.shown(nodes[node])
            shown = spelled(storable(problem))
            log.warning("round %d: %s is not in the menu: %s", round, name, shown)
        self._warn_of_late(round, len(nodes), problems)
        return opened, problems

    def _warn_of_late(self, round: int, nodes: int, problems: Mapping[int, str]) -> None:
        """Warn when most bids come too late."""
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
        complete = [set(bid.columns) for bid in bidding.values() if required <= bid.columns.keys()]
        included = set(required)
        if complete:
            included |= set.intersection(*complete)
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


def _no_valid_bid(nodes: int, problems: Iterable[str]) -> ConfigError:
    """Return the refusal of a run whose first round gets answers and no valid bid."""
    return ConfigError(
        f"none of {counted(nodes, 'node')} sent a valid bid ({_usual(problems)}); "
        "see `answer_bids(app, ...)` in client_app.py"
    )


def _usual(problems: Iterable[str]) -> str:
    """Return the problem that most nodes have."""
    return Counter(problems).most_common(1)[0][0]

"""The clients of a grid in a server loop of one's own, which has no strategy."""

import logging
from collections.abc import Iterable
from typing import final

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from bara.flower._bid_collection import BidCollection
from bara.flower._exchange import NOT_CONNECTED, ask
from bara.flower._options import ServerOptions
from bara.flower._refusals import in_one_line
from bara.flower.identity import known_by
from bara.protocols import requirements_of
from bara.records import Bids
from bara.runs.session import Session


@final
class Silos:
    """The clients of a grid by name: their bids for a session's rounds, and their replies.

    Args:
        grid: Flower's grid.
        session: The session that pays the clients (`bara.open_session`).
        bid_seconds: How long a round's bids stay open.
        seconds: How long winners may work.
        fewest: The number of connected nodes that a round needs to begin.
        patience: How many seconds to wait for them, and for a first bid, before the run pauses.
    """

    def __init__(
        self,
        grid: Grid,
        session: Session,
        *,
        bid_seconds: float = 60.0,
        seconds: float = 3600.0,
        fewest: int = 2,
        patience: float = 600.0,
    ) -> None:
        logging.getLogger("flwr").addFilter(in_one_line)
        self._grid = grid
        self._session = session
        options = ServerOptions(
            bid_seconds=bid_seconds,
            train_seconds=seconds,
            fewest=fewest,
            patience=patience,
            columns=requirements_of(session.mechanism).columns,
            known_by=known_by(grid),
        )
        self._seconds = options.train_seconds
        self._bids = BidCollection(grid, options)

    def bids(self) -> Bids:
        """Return the sealed bids for the session's round; each client is asked once."""
        return self._bids.bids(self._session.round)

    def ask(
        self, clients: Iterable[str], content: RecordDict, kind: str
    ) -> tuple[dict[str, Message], dict[str, str]]:
        """Send the winners a message; return the replies, and why others did not reply.

        Args:
            clients: The winners' names.
            content: What each of them is sent.
            kind: The type of the message: `query`, `train`, `train.ACTION`.
        """
        round = self._session.round
        void: dict[str, str] = {}
        names: dict[int, str] = {}
        for client, node in self._bids.locate(round, tuple(clients)).items():
            if node is None:
                void[client] = NOT_CONNECTED
            else:
                names[node] = client
        messages = [Message(content, node, kind, group_id=str(round)) for node in names]
        answers = ask(self._grid, messages, self._seconds)
        void |= {names[node]: reason for node, reason in answers.silent.items()}
        replies = {names[node]: reply for node, reply in answers.told.items()}
        return dict(sorted(replies.items())), void

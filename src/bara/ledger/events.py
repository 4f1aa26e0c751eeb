"""Appending to a run's chain, and reading its rounds back."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from bara.ledger import schema
from bara.ledger.chain import START, canonical, commitment, link, new_salt

PAGE = 500
"""Rounds read at a time, so that memory stays flat however long a run is."""

Rows = list[Any]
"""The amounts that belong to an event: its hash covers them though they stand in tables of their own."""


@dataclass(frozen=True)
class Event:
    """One event as stored."""

    number: int
    kind: str
    round: int | None
    at: str
    body: str
    previous: str
    hash: str


def content(run: str, number: int, kind: str, round_number: int | None, at: str, body: str, rows: Rows) -> str:
    """What an event's hash is made of."""
    return canonical([run, number, kind, round_number, at, body, rows])


_HEAD = sa.text("SELECT number, hash FROM events WHERE run = :run ORDER BY number DESC LIMIT 1")
_INSERT = sa.insert(schema.events)  # made once: making a statement takes longer than executing it
_SEAL = sa.insert(schema.sealed)


@dataclass(frozen=True)
class Chain:
    """The chain of one run.

    Attributes:
        run: The run's number in this database.
        name: The run's name, which is part of every hash.
        key: What makes the hashes HMACs; None for plain ones.
    """

    run: int
    name: str
    key: bytes | None

    def head(self, connection: sa.Connection) -> tuple[int, str]:
        """The last event's number and hash."""
        row = connection.execute(_HEAD, {"run": self.run}).one_or_none()
        return (0, START) if row is None else (row.number, row.hash)

    def append(
        self,
        connection: sa.Connection,
        kind: str,
        round_number: int | None,
        body: Mapping[str, Any],
        rows: Rows = [],  # noqa: B006
    ) -> int:
        """Append an event; returns its number. Two that append at once cannot both succeed with the same number."""
        number, previous = self.head(connection)
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = canonical(body)
        value = link(previous, content(self.name, number + 1, kind, round_number, at, text, rows), self.key)
        event = Event(number + 1, kind, round_number, at, text, previous, value)
        connection.execute(_INSERT, {"run": self.run, **vars(event)})
        return number + 1

    def events(self, connection: sa.Connection) -> Iterator[Event]:
        """Every event in order, some at a time."""
        table = schema.events
        last = 0
        while True:
            page = connection.execute(
                sa.select(table)
                .where(table.c.run == self.run, table.c.number > last)
                .order_by(table.c.number)
                .limit(PAGE)
            ).all()
            yield from (Event(*row[1:]) for row in page)
            if len(page) < PAGE:
                return
            last = page[-1].number


def seal(connection: sa.Connection, run: int, round_number: int, part: str, tree: Any) -> str:
    """Store what may be dropped later; returns the digest that the event commits to."""
    salt, text = new_salt(), canonical(tree)
    connection.execute(_SEAL, {"run": run, "round": round_number, "part": part, "salt": salt, "content": text})
    return commitment(salt, text)


def by_round(
    connection: sa.Connection, table: sa.Table, run: int, first: int, last: int, *order: str
) -> Mapping[int, Sequence[Any]]:
    """A table's rows of rounds first .. last, by round."""
    found: dict[int, list[Any]] = defaultdict(list)
    query = sa.select(table).where(table.c.run == run, table.c.round.between(first, last))
    for row in connection.execute(query.order_by(*(table.c[name] for name in order))):
        found[row.round].append(row)
    return found

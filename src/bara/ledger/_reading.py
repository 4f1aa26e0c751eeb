"""A run's rounds as they are stored, some at a time."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import sqlalchemy as sa

from bara.ledger import _schema as schema
from bara.ledger._codec import StoredRound
from bara.ledger._events import PAGE


def stored_rounds(connection: sa.Connection, run: int) -> Iterator[tuple[int, StoredRound]]:
    """Every round that was promised or settled, in order."""
    for first in count(0, PAGE):
        page = stored_page(connection, run, first, first + PAGE - 1)
        yield from page
        if len(page) < PAGE:
            return


def stored_page(connection: sa.Connection, run: int, first: int, last: int) -> list[tuple[int, StoredRound]]:
    """Rounds first .. last."""
    events = by_round(connection, schema.events, run, first, last, "number")
    promises = by_round(connection, schema.promises, run, first, last, "rank")
    settlements = by_round(connection, schema.settlements, run, first, last, "client")
    redactable = by_round(connection, schema.redactable, run, first, last, "part")
    found = []
    for number, happened in sorted(events.items()):
        bodies = {event.kind: json.loads(event.body) for event in happened}
        stored = StoredRound(
            bodies.get("awarded"),
            bodies.get("settled"),
            [(row.client, row.amount) for row in promises.get(number, ())],
            [(row.client, row.paid, row.reason) for row in settlements.get(number, ())],
            {row.part: json.loads(row.content) for row in redactable.get(number, ())},
            "declined" in bodies,
        )
        found.append((number, stored))
    return found


def by_round(
    connection: sa.Connection, table: sa.Table, run: int, first: int, last: int, *order: str
) -> Mapping[int, Sequence[Any]]:
    """A table's rows of rounds first .. last, by round."""
    found: dict[int, list[Any]] = defaultdict(list)
    query = sa.select(table).where(table.c.run == run, table.c.round.between(first, last))
    for row in connection.execute(query.order_by(table.c.round, *(table.c[name] for name in order))):
        found[row.round].append(row)
    return found


def last_of(
    connection: sa.Connection, run: int, *kinds: str, column: str = "body", round_number: int | None = None
) -> str | None:
    """A column of the last event of these kinds, about a round or between rounds."""
    table = schema.events
    if round_number is None:
        # The sum keeps SQLite from walking the whole chain by its primary key: the index of these few events remains.
        about = sa.and_(table.c.run + 0 == run, table.c.round.is_(None))
    else:
        about = sa.and_(table.c.run == run, table.c.round == round_number)
    query = sa.select(table.c[column]).where(about, table.c.kind.in_(kinds))
    return connection.scalar(query.order_by(table.c.number.desc()).limit(1))


_ADDED = sa.select(sa.func.sum(schema.top_ups.c.amount)).where(schema.top_ups.c.run == sa.bindparam("run"))


def topped_up(connection: sa.Connection, run: int) -> int:
    """What was added to the budget since the run was opened."""
    return int(connection.scalar(_ADDED, {"run": run}) or 0)


def is_paused(connection: sa.Connection, run: int) -> bool:
    """Whether an operator has stopped the run."""
    return last_of(connection, run, "paused", "continued", column="kind") == "paused"


def waiting_round(connection: sa.Connection, run: int, approve_above: int | None) -> int | None:
    """The round, if there is one, whose award is above the limit: nobody trains it before an operator has answered."""
    if approve_above is None:
        return None
    promises, closings = schema.promises, schema.closings
    last = sa.select(sa.func.max(closings.c.round)).where(closings.c.run == run).scalar_subquery()
    query = sa.select(promises.c.round, sa.func.sum(promises.c.amount)).where(
        promises.c.run == run, promises.c.round > last
    )
    found = connection.execute(query.group_by(promises.c.round)).one_or_none()
    return found[0] if found is not None and int(found[1]) > approve_above else None

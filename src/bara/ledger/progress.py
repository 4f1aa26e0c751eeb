"""How far a run is, read in strides: what is new since a round."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bara.ledger import _schema as schema
from bara.ledger._events import by_round
from bara.ledger._reading import is_paused, last_of, topped_up
from bara.ledger.books import DECLINED, Books
from bara.ledger.round_details import kept
from bara.ledger.statements import ClientTotal


@dataclass(frozen=True)
class State:
    """Where a run stands.

    Attributes:
        head: The number of the last event; anything new raises it.
        at: When that was, in ISO 8601.
        closed: The last settled round; -1 before the initial evaluation.
        total: The budget in micro-units, with what was added to it.
        paused: An operator has stopped it between rounds.
        ended: Why it ended, once it has.
    """

    head: int
    at: str
    closed: int
    total: int
    paused: bool
    ended: str | None


@dataclass(frozen=True)
class ClosedRound:
    """A settled round in short; amounts in micro-units."""

    round: int
    at: str
    total: int
    paid: int
    spent: int
    delivered: tuple[str, ...]
    void: tuple[str, ...]
    accuracy: float
    loss: float | None


@dataclass(frozen=True)
class Failure:
    """A winner that did not deliver."""

    round: int
    client: str
    reason: str
    returned: int


def state(books: Books) -> State:
    """Where the run stands, in a few indexed reads."""
    run, closings = books.chain.run, schema.closings
    with books.store.read() as connection:
        events = schema.events
        last = sa.select(events.c.number, events.c.at).where(events.c.run == run).order_by(events.c.number.desc())
        head = connection.execute(last.limit(1)).one()
        closed = connection.scalar(sa.select(sa.func.max(closings.c.round)).where(closings.c.run == run))
        added = topped_up(connection, run)
        paused = is_paused(connection, run)
        ended = last_of(connection, run, "closed")
    return State(
        head.number,
        head.at,
        -1 if closed is None else int(closed),
        books.purse.total + added,
        paused,
        None if ended is None else str(json.loads(ended)["ended"]),
    )


def closed_rounds(books: Books, after: int, until: int) -> list[ClosedRound]:
    """The settled rounds after that one, and not after this one."""
    events, closings = schema.events, schema.closings
    query = (
        sa.select(closings, events.c.at, events.c.body)
        .join(events, (events.c.run == closings.c.run) & (events.c.round == closings.c.round))
        .where(
            closings.c.run == books.chain.run, closings.c.round.between(after + 1, until), events.c.kind == "settled"
        )
        .order_by(closings.c.round)
    )
    with books.store.read() as connection:
        return [_closed(row) for row in connection.execute(query)]


def failures(books: Books, after: int, until: int) -> list[Failure]:
    """Who did not deliver in these rounds, and why; where an operator declined an award, nobody failed."""
    table, promises = schema.settlements, schema.promises
    same = (promises.c.run == table.c.run) & (promises.c.round == table.c.round) & (promises.c.client == table.c.client)
    query = (
        sa.select(table.c.round, table.c.client, table.c.reason, promises.c.amount)
        .join(promises, same)
        .where(table.c.run == books.chain.run, table.c.round.between(after + 1, until))
        .where(table.c.reason.is_not(None), table.c.reason != DECLINED)
        .order_by(table.c.round, table.c.client)
    )
    with books.store.read() as connection:
        return [Failure(*row) for row in connection.execute(query)]


def add_totals(books: Books, totals: dict[str, ClientTotal], closed: Sequence[ClosedRound]) -> None:
    """Add what clients asked, were promised and were paid in these rounds, which follow one another."""
    if not closed:
        return
    table, promises = schema.settlements, schema.promises
    void = table.c.reason.is_not(None)
    same = (promises.c.run == table.c.run) & (promises.c.round == table.c.round) & (promises.c.client == table.c.client)
    query = (
        sa.select(
            table.c.client,
            sa.func.count(),
            sa.func.sum(sa.case((void, 1), else_=0)),
            sa.func.sum(promises.c.amount),
            sa.func.sum(table.c.paid),
            sa.func.sum(sa.case((void, promises.c.amount), else_=0)),
        )
        .join(promises, same)
        .where(table.c.run == books.chain.run, table.c.round.between(closed[0].round, closed[-1].round))
        .group_by(table.c.client)
    )
    with books.store.read() as connection:
        asked = _asked(connection, books, closed)
        rows = connection.execute(query).all()
    for client, won, failed, promised, paid, returned in rows:
        total = totals.setdefault(client, ClientTotal(client))
        total.won += won
        total.void += failed
        total.promised += int(promised)
        total.paid += int(paid)
        total.returned += int(returned)
        total.asked = None if asked is None or total.asked is None else total.asked + asked[client]


def _closed(row: Any) -> ClosedRound:
    body = json.loads(row.body)
    evaluation = body["evaluation"]
    return ClosedRound(
        row.round,
        row.at,
        row.total,
        row.paid,
        row.spent_after,
        tuple(body["delivered"]),
        tuple(body["void"]),
        evaluation.get("test_accuracy", evaluation["accuracy"]),
        evaluation.get("test_loss", evaluation.get("loss")),
    )


def _asked(connection: sa.Connection, books: Books, closed: Sequence[ClosedRound]) -> Counter[str] | None:
    """What the winners of these rounds asked in all; None where bids are dropped."""
    if not kept(books):
        return None
    asked: Counter[str] = Counter()
    run, first, last = books.chain.run, closed[0].round, closed[-1].round
    winners = by_round(connection, schema.promises, run, first, last, "rank")
    table = schema.sealed
    query = sa.select(table.c.round, table.c.content).where(
        table.c.run == run, table.c.part == "bids", table.c.round.between(first, last)
    )
    for row in connection.execute(query):
        bids = json.loads(row.content)
        prices = dict(zip(bids["clients"], bids["prices"], strict=True))
        for promise in winners.get(row.round, ()):
            asked[promise.client] += prices[promise.client]
    return asked

"""How far a run is, read in strides: what is new since a round; and one round in full."""

import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bara.errors import LedgerError, NoBooksError
from bara.ledger import _schema as schema
from bara.ledger._reading import (
    REFUSALS,
    asked_prices,
    by_round,
    is_paused,
    last_of,
    stored_page,
    topped_up,
)
from bara.ledger.books import Books, Terms
from bara.ledger.statements import ClientTotal, Line, round_lines
from bara.ledger.store import HEAD, Store


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
    contributions: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FailedDelivery:
    """A winner that did not deliver."""

    round: int
    client: str
    reason: str
    returned: int


@dataclass(frozen=True)
class RoundDetails:
    """One round in full, as far as the run's retention lets it be seen.

    Attributes:
        round: Which.
        settled: Whether it is.
        purse: [total, max_rounds, spent] before it.
        offer: What the allocator said before the bids were opened.
        belief: What it believed, if it tells.
        winners: What each was promised and paid.
        menu: What each n would have cost; None where bids are dropped.
        bids: What each client asked; None where bids are dropped.
    """

    round: int
    settled: bool
    purse: tuple[int, int, int]
    offer: Mapping[str, Any]
    belief: Mapping[str, Any] | None
    winners: list[Line] = field(default_factory=list)
    menu: list[int] | None = None
    bids: dict[str, int] | None = None


_SAME_PROMISE = sa.and_(
    *(schema.promises.c[name] == schema.settlements.c[name] for name in ("run", "round", "client"))
)


def state(books: Books) -> State:
    """Where the run stands, in a few indexed reads."""
    run, closings = books.chain.run, schema.closings
    with books.store.read() as connection:
        events = schema.events
        last = (
            sa.select(events.c.number, events.c.at)
            .where(events.c.run == run)
            .order_by(events.c.number.desc())
        )
        head = connection.execute(last.limit(1)).one()
        closed = connection.scalar(
            sa.select(sa.func.max(closings.c.round)).where(closings.c.run == run)
        )
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
            closings.c.run == books.chain.run,
            closings.c.round.between(after + 1, until),
            events.c.kind == "settled",
        )
        .order_by(closings.c.round)
    )
    with books.store.read() as connection:
        return [_closed(row) for row in connection.execute(query)]


def failures(books: Books, after: int, until: int) -> list[FailedDelivery]:
    """Who did not deliver in these rounds, and why; where an operator refused an award, nobody failed."""
    table, promises, events = schema.settlements, schema.promises, schema.events
    refused = sa.select(events.c.round).where(
        events.c.run == books.chain.run, events.c.kind.in_(REFUSALS)
    )
    query = (
        sa.select(table.c.round, table.c.client, table.c.reason, promises.c.amount)
        .join(promises, _SAME_PROMISE)
        .where(table.c.run == books.chain.run, table.c.round.between(after + 1, until))
        .where(
            table.c.reason.is_not(None),
            table.c.round.not_in(refused.where(events.c.round.is_not(None))),
        )
        .order_by(table.c.round, table.c.client)
    )
    with books.store.read() as connection:
        return [FailedDelivery(*row) for row in connection.execute(query)]


def add_totals(books: Books, totals: dict[str, ClientTotal], closed: Sequence[ClosedRound]) -> None:
    """Add what clients asked, were promised and were paid in these rounds, which follow one another."""
    if not closed:
        return
    table, promises = schema.settlements, schema.promises
    void = table.c.reason.is_not(None)
    query = (
        sa.select(
            table.c.client,
            sa.func.count(),
            sa.func.sum(sa.case((void, 1), else_=0)),
            sa.func.sum(promises.c.amount),
            sa.func.sum(table.c.paid),
            sa.func.sum(sa.case((void, promises.c.amount), else_=0)),
        )
        .join(promises, _SAME_PROMISE)
        .where(
            table.c.run == books.chain.run, table.c.round.between(closed[0].round, closed[-1].round)
        )
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


def round_details(books: Books, number: int) -> RoundDetails | None:
    """One round that was promised. Under `drop` neither menu nor bids are shown, not even while they are there."""
    with books.store.read() as connection:
        page = stored_page(connection, books.chain.run, number, number)
    if not page or (promised := page[0][1].promised) is None:
        return None
    stored = page[0][1] if books.keeps_bids else replace(page[0][1], redactable={})
    return RoundDetails(
        number,
        stored.settled is not None,
        tuple(promised["purse"]),
        promised["offer"],
        promised["belief"],
        list(round_lines(number, stored)),
        stored.redactable.get("menu"),
        asked_prices(stored.redactable.get("bids")),
    )


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
        {str(client): float(value) for client, value in body.get("contributions", {}).items()},
    )


def _asked(
    connection: sa.Connection, books: Books, closed: Sequence[ClosedRound]
) -> Counter[str] | None:
    """What the winners of these rounds asked in all; None where bids are dropped."""
    if not books.keeps_bids:
        return None
    asked: Counter[str] = Counter()
    run, first, last = books.chain.run, closed[0].round, closed[-1].round
    winners = by_round(connection, schema.promises, run, first, last, "rank")
    table = schema.redactable
    query = sa.select(table.c.round, table.c.content).where(
        table.c.run == run, table.c.part == "bids", table.c.round.between(first, last)
    )
    for row in connection.execute(query):
        prices = asked_prices(json.loads(row.content)) or {}
        for promise in winners.get(row.round, ()):
            asked[promise.client] += prices[promise.client]
    return asked


def read_books(place: Path | str, run: str | None = None, terms: Terms | None = None) -> Books:
    """A run's books for reading only, while it goes on or afterwards; nothing is made, brought up to date or held.

    Args:
        place: The ledger's file, or the URL of its database.
        run: The run's name in a database that it shares; None for the only run of a file.
        terms: Its key and its receipt, where they are at hand.
    """
    store = Store.read_only(place)
    with contextlib.ExitStack() as stack:
        stack.callback(store.close)
        version = store.version()
        if version not in (None, HEAD) and store.engine.dialect.name != "sqlite":
            raise LedgerError(
                f"the ledger {store.place} has schema {version}, expected {HEAD}; `bara resume` upgrades it"
            )
        books = None if version is None else Books.find(store, run, terms)
        if books is None:
            raise NoBooksError(
                f"the ledger {store.place} holds no run{f' {run!r}' if run else ''} yet"
            )
        stack.pop_all()
        return books

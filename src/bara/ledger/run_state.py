"""The progress of a run, as a dashboard reads it: what is new since a round, and single rounds."""

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
    asked_prices,
    by_round,
    is_paused,
    last_of,
    refused_rounds,
    spent_before,
    stored_page,
    topped_up,
)
from bara.ledger.books import Books, Terms
from bara.ledger.statements import (
    ClientTotal,
    Line,
    note_asked,
    oldest_in,
    round_lines,
    stored_corrections,
)
from bara.ledger.store import HEAD, Store


@dataclass(frozen=True)
class RunState:
    """The state of a run.

    Attributes:
        head: The number of the last event; it grows with everything that happens.
        at: The time of the last event, in ISO 8601.
        closed: The last settled round; -1 before the initial evaluation.
        total: The budget in micro-units, with all top-ups.
        spent: What was spent of it, in micro-units, with all corrections.
        paused: Whether an operator has paused the run.
        ended: Why the run ended; None for a run that has not.
    """

    head: int
    at: str
    closed: int
    total: int
    spent: int
    paused: bool
    ended: str | None


@dataclass(frozen=True)
class ClosedRound:
    """A summary of a settled round; amounts in micro-units.

    Attributes:
        round: The round.
        at: When it was settled, in ISO 8601.
        total: The budget, with all top-ups until then.
        paid: What it cost.
        spent: What the run had cost by its end.
        delivered: The clients that delivered.
        void: The winners that did not.
        accuracy: The accuracy of the model after it.
        loss: The loss of that model; None if the federation reports none.
        contributions: By how much each client's update made the model better.
        oldest: How many rounds ago the oldest remembered update in the model was made; None where
            there is none.
    """

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
    oldest: int | None = None


@dataclass(frozen=True)
class FailedDelivery:
    """A winner that did not deliver, and the promised amount that went back to the purse."""

    round: int
    client: str
    reason: str
    returned: int


@dataclass(frozen=True)
class RoundDetails:
    """A round in full, as far as the run's retention allows; amounts in micro-units.

    Attributes:
        round: The round.
        settled: Whether the round is settled.
        purse: (total, max_rounds, spent) before the round.
        offer: The allocator's offer, made before the bids were opened.
        belief: The allocator's belief; None if it does not tell.
        winners: A line for each winner.
        menu: The cost of each number of clients; None if bids are dropped.
        bids: The price of each client; None if bids are dropped.
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
    schema.promises.c.run == schema.settlements.c.run,
    schema.promises.c.round == schema.settlements.c.round,
    schema.promises.c.client == schema.settlements.c.client,
)


def state(books: Books) -> RunState:
    """Return the state of a run, by a few indexed reads."""
    run = books.chain.run
    events = schema.events
    last_event = (
        sa.select(events.c.number, events.c.at)
        .where(events.c.run == run)
        .order_by(events.c.number.desc())
        .limit(1)
    )
    with books.store.read() as connection:
        head = connection.execute(last_event).one()
        closed = books.last_round()
        added = topped_up(connection, run)
        spent = spent_before(connection, run, closed + 1)
        for one in stored_corrections(connection, run):
            if one.counts_from > closed + 1:
                spent += one.amount
        paused = is_paused(connection, run)
        closing = last_of(connection, run, "closed")
    ended = None
    if closing is not None:
        ended = str(json.loads(closing)["ended"])
    return RunState(head.number, head.at, closed, books.purse.total + added, spent, paused, ended)


def closed_rounds(books: Books, after: int, until: int) -> list[ClosedRound]:
    """Return the settled rounds after round `after`, up to and including round `until`."""
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
        return list(map(_closed, connection.execute(query)))


def failures(books: Books, after: int, until: int) -> list[FailedDelivery]:
    """Return who failed in the rounds after `after` up to `until`; refused rounds do not count."""
    table, promises = schema.settlements, schema.promises
    query = (
        sa.select(table.c.round, table.c.client, table.c.reason, promises.c.amount)
        .join(promises, _SAME_PROMISE)
        .where(table.c.run == books.chain.run, table.c.round.between(after + 1, until))
        .where(
            table.c.reason.is_not(None),
            table.c.round.not_in(refused_rounds(books.chain.run)),
        )
        .order_by(table.c.round, table.c.client)
    )
    with books.store.read() as connection:
        return [FailedDelivery(*row) for row in connection.execute(query)]


def add_totals(books: Books, totals: dict[str, ClientTotal], closed: Sequence[ClosedRound]) -> None:
    """Add some rounds to the totals of clients: what winners got, and what everybody asked last.

    Args:
        books: The run's books.
        totals: The totals by client, which are changed.
        closed: The rounds to add, one after another without a gap.
    """
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
        asked, last = _asked(connection, books, closed)
        rows = connection.execute(query).all()
    for client, won, failed, promised, paid, returned in rows:
        total = totals.setdefault(client, ClientTotal(client))
        total.won += won
        total.void += failed
        total.promised += int(promised)
        total.paid += int(paid)
        total.returned += int(returned)
        if asked is None or total.asked is None:
            total.asked = None
        else:
            total.asked += asked[client]
    note_asked(totals, last)


def add_corrections(books: Books, totals: dict[str, ClientTotal], after: int) -> None:
    """Add the corrections whose events have a number greater than `after` to clients' totals."""
    with books.store.read() as connection:
        found = stored_corrections(connection, books.chain.run, after)
    for one in found:
        totals.setdefault(one.client, ClientTotal(one.client)).paid += one.amount


def round_details(books: Books, number: int) -> RoundDetails | None:
    """Return a round in full; None if it was not promised.

    Under `drop` menu and bids are not shown, not even before the settlement deletes them.
    """
    with books.store.read() as connection:
        page = stored_page(connection, books.chain.run, number, number)
    if not page:
        return None
    _, stored = page[0]
    promised = stored.promised
    if promised is None:
        return None
    if not books.keeps_bids:
        stored = replace(stored, redactable={})
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
        oldest_in(body),
    )


def _asked(
    connection: sa.Connection, books: Books, closed: Sequence[ClosedRound]
) -> tuple[Counter[str] | None, dict[str, int]]:
    """Return the sum of each winner's prices over these rounds, and everybody's last price.

    The sums are None, and no last price is told, if bids are dropped.
    """
    asked: Counter[str] = Counter()
    latest: dict[str, int] = {}
    if not books.keeps_bids:
        return None, latest
    run = books.chain.run
    first = closed[0].round
    last = closed[-1].round
    winners = by_round(connection, schema.promises, run, first, last, "rank")
    table = schema.redactable
    query = (
        sa.select(table.c.round, table.c.content)
        .where(table.c.run == run, table.c.part == "bids", table.c.round.between(first, last))
        .order_by(table.c.round)
    )
    for row in connection.execute(query):
        prices = asked_prices(json.loads(row.content)) or {}
        latest.update(prices)
        for promise in winners.get(row.round, ()):
            asked[promise.client] += prices[promise.client]
    return asked, latest


def read_books(place: Path | str, run: str | None = None, terms: Terms | None = None) -> Books:
    """Open a run's books for reading only, without creating, migrating or locking anything.

    Args:
        place: The ledger's file, or the URL of its database.
        run: The run's name; None for the only run of the database.
        terms: The key and the receipt to verify with; None for neither.
    """
    store = Store.read_only(place)
    with contextlib.ExitStack() as stack:
        stack.callback(store.close)
        version = store.version()
        if version not in (None, HEAD) and store.engine.dialect.name != "sqlite":
            raise LedgerError(
                f"the ledger {store.place} has schema {version}, expected {HEAD}; "
                "it is upgraded when the run goes on or an operator acts"
            )
        books = None
        if version is not None:
            books = Books.find(store, run, terms)
        if books is None:
            which = f" {run!r}" if run else ""
            raise NoBooksError(f"the ledger {store.place} holds no run{which} yet")
        stack.pop_all()
        return books

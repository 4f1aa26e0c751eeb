"""Decisions: who gave an operator's command, and why; recorded in the event of each command."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bara.ledger import _schema as schema
from bara.ledger.books import Books
from bara.ledger.payouts import paid_by_batch
from bara.ledger.statements import amounts_by_event, exact_values
from bara.records import json_money
from bara.text import csv_text

_COLUMNS = ("event", "at", "what", "about", "by", "login", "reason", "amount")


@dataclass(frozen=True)
class Decision:
    """A command that an operator gave.

    Attributes:
        event: The number of its event.
        at: When it was given, in ISO 8601.
        what: The kind of its event, like `approved`.
        about: Which round, client or transfers it is about; "" for the whole run.
        by: The person who gave it, as that person said; "" where an earlier version stored none.
        login: Who was logged in, as the database or this machine knows, where that is another name.
        reason: Why, in the person's words; "" where none was given.
        amount: The amount that it moves, or of the transfers that it names, in micro-units; None
            if there is none.
    """

    event: int
    at: str
    what: str
    about: str
    by: str
    login: str = ""
    reason: str = ""
    amount: int | None = None


def decisions(books: Books) -> list[Decision]:
    """Return every command of an operator, in order."""
    events = schema.events
    run = books.chain.run
    query = sa.select(events).where(events.c.run == run, events.c.kind.in_(COMMANDS))
    with books.store.read() as connection:
        rows = connection.execute(query.order_by(events.c.number)).all()
        moved = amounts_by_event(connection, run)
        if any(row.kind == "paid out" for row in rows):
            moved |= _amounts_of_transfers(rows, paid_by_batch(connection, books))
    found = []
    for row in rows:
        body = json.loads(row.body)
        one = Decision(
            row.number,
            row.at,
            row.kind,
            _about(row, body),
            body.get("by", ""),
            body.get("login", ""),
            body.get("reason", ""),
            moved.get(row.number, body.get("amount")),
        )
        found.append(one)
    return found


COMMANDS = (
    "topped up",
    "paused",
    "continued",
    "endorsed",
    "approved",
    "declined",
    "voided",
    "forgotten",
    "registered",
    "struck off",
    "corrected",
    "returned",
    "transferred",
    "adopted",
    "paid out",
)
"""The kinds of events that operators' commands append."""


def _amounts_of_transfers(
    rows: Sequence[Any], paid: Mapping[int, Mapping[str, int]]
) -> dict[int, int]:
    """Return what each event about batches paid, or is said to be transferred or returned.

    Args:
        rows: The events of commands.
        paid: What each batch pays to each client.
    """
    found = {}
    for row in rows:
        body = json.loads(row.body)
        if row.kind == "paid out":
            found[row.number] = sum(paid[body["batch"]].values())
        for batch, clients in _transfers(body).items():
            sums = found.get(row.number, 0)
            found[row.number] = sums + sum(paid[batch][client] for client in clients)
    return found


def _transfers(body: Mapping[str, Any]) -> dict[int, list[str]]:
    """Return the clients whose transfers an event names, by their batch."""
    if "clients" in body:
        return {body["batch"]: body["clients"]}
    found: dict[int, list[str]] = {}
    for batch, client, _ in body.get("transfers", ()):
        found.setdefault(batch, []).append(client)
    return found


def _about(row: Any, body: Mapping[str, Any]) -> str:
    transfers = _transfers(body)
    if transfers:
        named = (f"batch {batch}: {', '.join(who)}" for batch, who in transfers.items())
        return "; ".join(named)
    if "corrects" in body:
        return f"{body['client']}, round {body['corrects']}"
    if "batch" in body:
        return f"batch {body['batch']}"
    if "client" in body:
        return str(body["client"])
    if row.round is not None:
        return f"round {row.round}"
    return ""


def decisions_csv(found: list[Decision], currency: str | None) -> str:
    """Convert decisions to CSV, amounts as exact decimals in the run's currency."""
    return csv_text(_COLUMNS, (exact_values(one, _COLUMNS, currency) for one in found))


def decision_json(one: Decision) -> dict[str, Any]:
    """Convert a decision to JSON, its amount as a number and as an exact text."""
    tree = vars(one)
    return {**tree, **json_money(amount=one.amount)}

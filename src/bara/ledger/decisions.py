"""Decisions: who gave an operator's command, and why; recorded in the event of each command."""

import getpass
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger import _schema as schema
from bara.ledger.books import Books
from bara.ledger.statements import amounts_by_event, exact_values
from bara.records import json_money
from bara.text import UNSTORABLE, csv_text

OPERATOR = "BARA_OPERATOR"
"""The environment variable that names the person who gives an operator's commands."""

_COLUMNS = ("event", "at", "what", "about", "by", "login", "reason", "amount")


@dataclass(frozen=True)
class Decision:
    """A command that an operator gave.

    Attributes:
        event: The number of its event.
        at: When it was given, in ISO 8601.
        what: The kind of its event, like `approved`.
        about: Which round, client or batch it is about; "" for the whole run.
        by: The person who gave it, as that person said; "" where an earlier version stored none.
        login: Who was logged in, as the database or this machine knows, where that is another name.
        reason: Why, in the person's words; "" where none was given.
        amount: The amount that it moves, in micro-units; None if it moves none.
    """

    event: int
    at: str
    what: str
    about: str
    by: str
    login: str = ""
    reason: str = ""
    amount: int | None = None


def signed(books: Books, by: str | None, reason: str | None = None) -> dict[str, Any]:
    """Return who gives a command and why, for the body of its event.

    Args:
        books: The run's books.
        by: The person; None for the one that `BARA_OPERATOR` names, or else who is logged in.
        reason: Why; None to give no reason.
    """
    login = books.store.server_user() or _login()
    name = (by or os.environ.get(OPERATOR) or login).strip()
    if not name or UNSTORABLE.search(name):
        raise LedgerError(f"--as must name the person who decides, got {name!r}")
    body: dict[str, Any] = {"by": name}
    if login not in ("", name):
        body["login"] = login
    if reason is not None:
        if not reason.strip() or UNSTORABLE.search(reason):
            raise LedgerError(f"--reason must say why, for the record, got {reason!r}")
        body["reason"] = reason.strip()
    return body


def _login() -> str:
    """Return who is logged in on this machine; "" where nobody is, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def decisions(books: Books) -> list[Decision]:
    """Return every command of an operator, in order."""
    events = schema.events
    run = books.chain.run
    query = sa.select(events).where(events.c.run == run, events.c.kind.in_(COMMANDS))
    with books.store.read() as connection:
        rows = connection.execute(query.order_by(events.c.number)).all()
        moved = amounts_by_event(connection, run)
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


def _about(row: Any, body: Mapping[str, Any]) -> str:
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

"""Payout batches: what is to be transferred to whom, each payment in exactly one numbered batch.

A batch is an event of the chain. It covers the rounds that were settled since the batch before it,
and its amounts are their settlements', which its hash covers and the database keeps: it can be
printed again, and says the same.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bara.errors import ConfigError, LedgerError
from bara.files import read_whole
from bara.ledger import _schema as schema
from bara.ledger._events import Draft
from bara.ledger._verification import paid_in, require_whole
from bara.ledger.books import Books
from bara.ledger.operators import require_place, writing
from bara.records import json_money, show_money
from bara.text import counted, csv_text

Payees = Mapping[str, Mapping[str, str]]
"""What an operator knows of each client beside the ledger: a name, an account."""


@dataclass(frozen=True)
class Batch:
    """What was to be transferred at a time.

    Attributes:
        number: 1, 2, ...
        first: The first round it pays.
        last: The last one.
        at: When it was made, in ISO 8601; "" for what is due and in no batch yet.
        payments: (client, amount in micro-units, rounds it is for), by client.
    """

    number: int
    first: int
    last: int
    at: str
    payments: tuple[tuple[str, int, int], ...]

    @property
    def made(self) -> bool:
        """Whether it was made; otherwise it is what is due, and nothing of it may be transferred yet."""
        return bool(self.at)

    @property
    def total(self) -> int:
        """What it transfers in all."""
        return sum(amount for _, amount, _ in self.payments)


def batches(books: Books) -> list[Batch]:
    """Every batch that was made, of a record that is whole."""
    with books.store.read() as connection:
        require_whole(books, needs_key=True)
        return [_read(connection, books, row) for row in _events(connection, books)]


def find_batch(books: Books, number: int) -> Batch:
    """A batch that was made."""
    made = batches(books)
    if not 1 <= number <= len(made):
        raise LedgerError(
            f"run {books.name!r} has no batch {number}; it has {counted(len(made), 'batch')}"
        )
    return made[number - 1]


def batch_of(books: Books, round_number: int) -> int | None:
    """The number of the batch that pays a round; None where none does yet."""
    with books.store.read() as connection:
        found = ((json.loads(row.body), row.round) for row in _events(connection, books))
        return next(
            (body["batch"] for body, last in found if body["first"] <= round_number <= last), None
        )


def due(books: Books) -> Batch | None:
    """What the next batch would transfer; None where every payment is in one."""
    with books.store.read() as connection:
        require_whole(books, needs_key=True)
        return _due(connection, books)


def new_batch(books: Books, payees: Payees | None = None) -> Batch:
    """Put every payment that is in no batch yet into a new one; refused where there is none, or in a copy of the run.

    Args:
        books: Whose.
        payees: Who must be known for it; None where nobody need be.
    """
    require_place(books)
    require_whole(books, needs_key=True)
    with writing(books) as connection:
        batch = _due(connection, books)
        if batch is None:
            raise LedgerError(
                f"run {books.name!r} owes nothing: every payment is in a batch already"
            )
        _rows(books, batch, payees)  # refuses an unknown payee before the batch is made
        body = {"batch": batch.number, "first": batch.first}
        rows = paid_in(connection, books.chain.run, batch.first, batch.last)
        books.chain.append(connection, Draft("paid out", batch.last, body, rows))
    return find_batch(books, batch.number)


def read_payees(path: Path) -> Payees:
    """An operator's own file: CSV with a column `client` and others, a line for each client."""
    try:
        text = read_whole(path, plain=False).removeprefix("\ufeff")  # as spreadsheets write it
        head = text.partition("\n")[0]
        rows = list(
            csv.DictReader(
                io.StringIO(text), delimiter=";" if ";" in head and "," not in head else ","
            )
        )
    except (OSError, ValueError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read the payees in {str(path)!r}: {why}") from None
    found: dict[str, Mapping[str, str]] = {}
    for number, row in enumerate(rows, 1):
        client = row.get("client")
        if client is None:
            raise ConfigError(
                f"the payees in {str(path)!r} must have a column `client` and a line for each client"
            )
        if client in found or None in row or None in row.values():
            what = "a second line" if client in found else "too few or too many cells"
            raise ConfigError(
                f"{str(path)!r} has {what} for {client!r} (payee {number}); correct it"
            )
        found[client] = row
    return found


def batch_csv(books: Books, batch: Batch, payees: Payees | None = None) -> str:
    """A line for each transfer; what the operator knows of the payees stands beside their names."""
    known = _columns(payees)
    names = ("client", *known, "amount", "currency", "rounds", "reference")
    return csv_text(names, ([row[name] for name in names] for row in _rows(books, batch, payees)))


def batch_json(books: Books, batch: Batch, payees: Payees | None = None) -> dict[str, Any]:
    """The same, with the total."""
    rows = [
        {**row, **json_money(amount=micros)}
        for row, (_, micros, _) in zip(_rows(books, batch, payees), batch.payments, strict=True)
    ]
    head = {"run": books.name, "batch": batch.number if batch.made else None, "due": not batch.made}
    head |= {"first_round": batch.first, "last_round": batch.last}
    return {
        **head,
        "at": batch.at,
        "currency": books.purse.currency,
        **json_money(total=batch.total),
        "payments": rows,
    }


def _rows(books: Books, batch: Batch, payees: Payees | None) -> list[dict[str, Any]]:
    if (
        missing := []
        if payees is None
        else [client for client, _, _ in batch.payments if client not in payees]
    ):
        named = ", ".join(map(repr, missing))
        raise LedgerError(
            f"the file of --payees has no line for {named}; add one. No batch was made or printed"
        )
    return [
        {
            "client": client,
            **{name: (payees or {})[client][name] for name in _columns(payees)},
            "amount": show_money(amount),
            "currency": books.purse.currency or "",
            "rounds": rounds,
            "reference": f"{books.name}-{batch.number}" if batch.made else "",
        }
        for client, amount, rounds in batch.payments
    ]


def _columns(payees: Payees | None) -> list[str]:
    own = {"client", "amount", "currency", "rounds", "reference"}
    return [name for name in (next(iter((payees or {}).values()), {})) if name not in own]


def _events(connection: sa.Connection, books: Books) -> Sequence[Any]:
    table = schema.events
    query = sa.select(table).where(table.c.run == books.chain.run, table.c.kind == "paid out")
    return connection.execute(query.order_by(table.c.number)).all()


def _read(connection: sa.Connection, books: Books, row: Any) -> Batch:
    body = json.loads(row.body)
    return Batch(
        body["batch"],
        body["first"],
        row.round,
        row.at,
        _payments(connection, books, body["first"], row.round),
    )


def _due(connection: sa.Connection, books: Books) -> Batch | None:
    made = _events(connection, books)
    first = made[-1].round + 1 if made else 1
    payments = _payments(connection, books, first, last := books.last_round())
    return Batch(len(made) + 1, first, last, "", payments) if payments else None


def _payments(
    connection: sa.Connection, books: Books, first: int, last: int
) -> tuple[tuple[str, int, int], ...]:
    amounts, rounds = Counter[str](), Counter[str]()
    for _, client, paid in paid_in(connection, books.chain.run, first, last):
        amounts[client] += paid
        rounds[client] += 1
    return tuple((client, amounts[client], rounds[client]) for client in sorted(amounts))

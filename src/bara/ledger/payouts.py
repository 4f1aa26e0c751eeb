"""Payout batches: numbered lists of transfers, with every payment in exactly one batch.

A batch is an event of the chain. It covers the rounds settled since the batch before, and its
amounts are those of their settlements. Its hash covers them, so that a batch can be printed again
with the same content.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
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
from bara.records import json_money, plain_money
from bara.text import counted, csv_text

Payees = Mapping[str, Mapping[str, str]]
"""What an operator knows about each client, by client and column: a name, an account, ..."""


@dataclass(frozen=True)
class Batch:
    """A batch of transfers, or the payments due that are in no batch yet.

    Attributes:
        number: The batch's number, from 1 on.
        first: The first round that is paid.
        last: The last round that is paid.
        at: When the batch was made, in ISO 8601; "" for payments that are still due.
        payments: (client, amount in micro-units, number of rounds), sorted by client.
    """

    number: int
    first: int
    last: int
    at: str
    payments: tuple[tuple[str, int, int], ...]

    @property
    def made(self) -> bool:
        """True once the batch exists; False for payments still due, not to be transferred yet."""
        return bool(self.at)

    @property
    def total(self) -> int:
        """The sum of all payments, in micro-units."""
        return sum(amount for _, amount, _ in self.payments)


def batches(books: Books) -> list[Batch]:
    """Return every batch that was made, from a verified record."""
    with books.store.read() as connection:
        require_whole(books, needs_key=True)
        return [_read(connection, books, row) for row in _events(connection, books)]


def find_batch(books: Books, number: int) -> Batch:
    """Return the batch with this number; refuse a number that does not exist."""
    made = batches(books)
    if not 1 <= number <= len(made):
        raise LedgerError(
            f"run {books.name!r} has no batch {number}; it has {counted(len(made), 'batch')}"
        )
    return made[number - 1]


def batch_of(books: Books, round_number: int) -> int | None:
    """Return the number of the batch that pays a round; None if no batch does yet."""
    with books.store.read() as connection:
        for row in _events(connection, books):
            body = json.loads(row.body)
            if body["first"] <= round_number <= row.round:
                number: int = body["batch"]
                return number
    return None


def due(books: Books) -> Batch | None:
    """Return what the next batch would transfer; None if every payment is in a batch."""
    with books.store.read() as connection:
        require_whole(books, needs_key=True)
        return _due(connection, books)


def new_batch(
    books: Books, payees: Payees | None = None, *, without_receipt: bool = False
) -> Batch:
    """Put every payment that is due into a new batch.

    Refused if nothing is due, in a copy of the run, and above `ledger.receipt_above` without a
    receipt: only a receipt, out of reach of what copies a whole disk, shows that a twin has paid.

    Args:
        books: The run's books.
        payees: The payees, which must include every client in the batch; None to accept all.
        without_receipt: True if the operator vouches that no twin of this disk pays.
    """
    require_place(books)
    require_whole(books, needs_key=True)
    books.write_receipt()  # of a batch, too, that was stored by a program that died before this
    with writing(books) as connection:
        batch = _due(connection, books)
        if batch is None:
            raise LedgerError(
                f"run {books.name!r} owes nothing: every payment is in a batch already"
            )
        limit = books.terms.receipt_above
        if books.terms.receipt is None and batch.total > limit and not without_receipt:
            raise LedgerError(
                f"{books.purse.show(batch.total)} is due, above ledger.receipt_above = "
                f"{books.purse.show(limit)}, and run {books.name!r} has no receipt, so a twin of "
                "this disk (an image, a snapshot) could pay it once more; set ledger.receipt and "
                f"begin one with `bara ledger {books.address} adopt --new-receipt`, or, if there "
                "is no twin, say --without-receipt. No batch was made"
            )
        _rows(books, batch, payees)  # refuses an unknown payee before anything is stored
        body = {"batch": batch.number, "first": batch.first}
        rows = paid_in(connection, books.chain.run, batch.first, batch.last)
        books.chain.append(connection, Draft("paid out", batch.last, body, rows))
    return find_batch(books, batch.number)


def read_payees(path: Path) -> Payees:
    """Read an operator's CSV file: a line for each client, a column `client`, and any others."""
    try:
        text = read_whole(path, plain=False).removeprefix("\ufeff")  # spreadsheets add it
        head = text.partition("\n")[0]
        delimiter = ";" if ";" in head and "," not in head else ","
        rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    except (OSError, ValueError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read the payees in {str(path)!r}: {why}") from None
    found: dict[str, Mapping[str, str]] = {}
    for number, row in enumerate(rows, 1):
        client = row.get("client")
        if client is None:
            raise ConfigError(
                f"the payees in {str(path)!r} must have a column `client` "
                "and a line for each client"
            )
        if client in found or None in row or None in row.values():
            what = "a second line" if client in found else "too few or too many cells"
            raise ConfigError(
                f"{str(path)!r} has {what} for {client!r} (payee {number}); correct it"
            )
        found[client] = row
    return found


def batch_csv(books: Books, batch: Batch, payees: Payees | None = None) -> str:
    """Convert a batch to CSV: a line for each transfer, with the columns of the payees' file."""
    names = ("client", *_columns(payees), "amount", "currency", "rounds", "reference")
    rows = map(itemgetter(*names), _rows(books, batch, payees))
    return csv_text(names, rows)


def batch_json(books: Books, batch: Batch, payees: Payees | None = None) -> dict[str, Any]:
    """Convert a batch to JSON, with its total."""
    rows = _rows(books, batch, payees)
    for row, (_, amount, _) in zip(rows, batch.payments, strict=True):
        row.update(json_money(amount=amount))
    return {
        "run": books.name,
        "batch": batch.number if batch.made else None,
        "due": not batch.made,
        "first_round": batch.first,
        "last_round": batch.last,
        "at": batch.at,
        "currency": books.purse.currency,
        **json_money(total=batch.total),
        "payments": rows,
    }


def _rows(books: Books, batch: Batch, payees: Payees | None) -> list[dict[str, Any]]:
    """Return a row for each transfer; refuse a client that is not among the payees."""
    if payees is not None:
        missing = [client for client, _, _ in batch.payments if client not in payees]
        if missing:
            named = ", ".join(map(repr, missing))
            raise LedgerError(
                f"the file of --payees has no line for {named}; add one. "
                "No batch was made or printed"
            )
    columns = _columns(payees)
    reference = f"{books.name}-{batch.number}" if batch.made else ""
    rows = []
    for client, amount, rounds in batch.payments:
        row: dict[str, Any] = {"client": client}
        if payees is not None:
            row |= {name: payees[client][name] for name in columns}
        row["amount"] = plain_money(amount, books.purse.currency)
        row["currency"] = books.purse.currency or ""
        row["rounds"] = rounds
        row["reference"] = reference
        rows.append(row)
    return rows


def _columns(payees: Payees | None) -> list[str]:
    """Return the columns of the payees' file, except those that a batch has itself."""
    if not payees:
        return []
    own = {"client", "amount", "currency", "rounds", "reference"}
    first = next(iter(payees.values()))
    return [name for name in first if name not in own]


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
    last = books.last_round()
    payments = _payments(connection, books, first, last)
    if not payments:
        return None
    return Batch(len(made) + 1, first, last, "", payments)


def _payments(
    connection: sa.Connection, books: Books, first: int, last: int
) -> tuple[tuple[str, int, int], ...]:
    """Return (client, amount, number of rounds) of everybody paid in rounds first .. last."""
    amounts = Counter[str]()
    rounds = Counter[str]()
    for _, client, paid in paid_in(connection, books.chain.run, first, last):
        amounts[client] += paid
        rounds[client] += 1
    return tuple((client, amounts[client], rounds[client]) for client in sorted(amounts))

"""Payout batches: numbered lists of transfers, with every payment in exactly one batch.

A batch is an event of the chain. It covers the rounds settled since the batch before, and its
amounts are those of their settlements. Its hash covers them, so that a batch can be printed again
with the same content.
"""

import csv
import hashlib
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bara.errors import ConfigError, LedgerError
from bara.files import read_whole
from bara.ledger import _schema as schema
from bara.ledger._events import Draft, Event
from bara.ledger._reading import bodies_of
from bara.ledger._signed import signed
from bara.ledger._verification import paid_in, require_whole
from bara.ledger.books import Books
from bara.ledger.operators import require_place, writing
from bara.ledger.statements import lines, stored_corrections
from bara.ledger.store import fetch
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
        last: The last round that is paid; less than `first` if no new round is.
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
    def pays_rounds(self) -> bool:
        """False for a batch of corrections or returned transfers alone, without a new round."""
        return self.first <= self.last

    @property
    def total(self) -> int:
        """The sum of all payments, in micro-units."""
        return sum(amount for _, amount, _ in self.payments)


@dataclass(frozen=True)
class Part:
    """A part of what a batch pays to one client; its amount in micro-units.

    Attributes:
        round: The round whose payment it is; None for a transfer that is made again.
        amount: The amount; negative for what a correction takes back.
        at: When the round was settled, or the correction made, in ISO 8601.
        correction: Why the payment of the round was corrected, for a correction.
        again: The batch whose transfer came back, for one that is made again.
    """

    round: int | None
    amount: int
    at: str = ""
    correction: str | None = None
    again: int | None = None


def batches(books: Books) -> list[Batch]:
    """Return every batch that was made, from a verified record."""
    with books.store.read() as connection:
        require_whole(books, needs_key=True)
        return _Account(connection, books).batches


def find_batch(books: Books, number: int) -> Batch:
    """Return the batch with this number; refuse a number that does not exist."""
    made = batches(books)
    if not 1 <= number <= len(made):
        raise LedgerError(
            f"run {books.name!r} has no batch {number}; it has {counted(len(made), 'batch')}"
        )
    return made[number - 1]


def payment(books: Books, number: int, client: str) -> list[Part]:
    """Return what a batch pays to a client, part by part; refuse a client that it does not pay."""
    with books.store.read() as connection:
        find_batch(books, number)
        parts = _Account(connection, books).parts.get((number, client))
        if parts is None:
            raise LedgerError(f"batch {number} of {books.name!r} pays nothing to {client!r}")
        settled = {line.round: line.at for line in lines(books, client) if line.correction is None}
    return [replace(one, at=one.at or settled.get(one.round or 0) or "") for one in parts]


def paid_by_batch(connection: sa.Connection, books: Books) -> dict[int, dict[str, int]]:
    """Return what each batch pays to each client, in micro-units, by the batch's number.

    Args:
        connection: The database.
        books: The run's books, whose record must be whole.
    """
    found = {}
    for batch in _Account(connection, books).batches:
        found[batch.number] = {client: amount for client, amount, _ in batch.payments}
    return found


def payments_of(books: Books, client: str, round_number: int) -> list[dict[str, Any]]:
    """Return the payments with what a client earned in a round, as `transfers` tells them.

    There is none if no batch pays it yet, and more than one if it came back and was paid again.
    """
    with books.store.read() as connection:
        account = _Account(connection, books)
    found: list[dict[str, Any]] = []
    for one in _told(books, account.batches):
        if one["client"] != client:
            continue
        made_of = account.parts[one["batch"], client]
        first = any(part.round == round_number and part.correction is None for part in made_of)
        again = bool(found) and any(part.again == found[-1]["batch"] for part in made_of)
        if first or again:
            found.append(one)
    return found


def due(books: Books) -> Batch | None:
    """Return what the next batch would transfer; None if every payment is in a batch."""
    with books.store.read() as connection:
        require_whole(books, needs_key=True)
        return _Account(connection, books).due()


def kept_back(books: Books) -> dict[str, int]:
    """Return what clients owe, in micro-units: a correction took back more than was due to them.

    It is kept back from what they earn later.
    """
    with books.store.read() as connection:
        require_whole(books, needs_key=True)
        account = _Account(connection, books)
        account.due()
        return account.owing()


def new_batch(
    books: Books,
    payees: Payees | None = None,
    *,
    by: str | None = None,
    check: Callable[[Batch], object] = lambda _batch: None,
    without_receipt: bool = False,
) -> Batch:
    """Put every payment that is due into a new batch.

    Refused if nothing is due, in a copy of the run, and above `ledger.receipt_above` without a
    receipt: only a receipt, out of reach of what copies a whole disk, shows that a twin has paid.

    Args:
        books: The run's books.
        payees: The payees, which must include every client in the batch; None to accept all.
        by: The person who makes it; None as in `bara.ledger.operators`.
        check: Called with the batch before it is stored; raises to refuse it.
        without_receipt: True if the operator vouches that no twin of this disk pays.
    """
    person = signed(books, by)
    require_place(books)
    require_whole(books, needs_key=True)
    with writing(books) as connection:
        batch = _Account(connection, books).due()
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
                f"begin one with `bara ledger {books.address} adopt --new-receipt --reason TEXT`, "
                "or, if there is no twin, say --without-receipt. No batch was made"
            )
        _rows(books, batch, payees)  # refuses an unknown payee before anything is stored
        check(batch)
        body: dict[str, Any] = {"batch": batch.number, "first": batch.first, **person}
        rows = paid_in(connection, books.chain.run, batch.first, batch.last)
        draft = Draft("paid out", batch.last, body, rows)
        if not batch.pays_rounds:  # corrections, or transfers that came back
            draft = Draft("paid out", None, {**body, "last": batch.last})
        books.chain.append(connection, draft)
    return find_batch(books, batch.number)


def returned(
    books: Books,
    number: int,
    clients: Sequence[str] = (),
    *,
    by: str | None = None,
    reason: str | None = None,
) -> list[str]:
    """Note that transfers of a batch came back, so that the next batch pays them again.

    Args:
        books: The run's books.
        number: The batch.
        clients: Whose transfers came back; none for all of the batch, of which the bank's statement
            must not show any as transferred.
        by: The person who says so.
        reason: Why they came back, as the bank says.

    Returns:
        The clients that are owed again.
    """
    person = signed(books, by, reason)
    require_place(books)
    batch = find_batch(books, number)
    paid = [client for client, _, _ in batch.payments]
    chosen = list(dict.fromkeys(clients or paid))
    with writing(books) as connection:
        shown, back = _what_became(books)
        before = {client for batch_number, client in back if batch_number == number}
        if not clients:
            chosen = [client for client in paid if client not in before]
            arrived = [client for client in chosen if (number, client) in shown]
            if arrived:
                raise LedgerError(
                    f"the bank's statement shows that {', '.join(arrived)} got the money of batch "
                    f"{number}; name those whose transfers came back with --client"
                )
        for client in chosen:
            if client not in paid:
                raise LedgerError(f"batch {number} of {books.name!r} pays nothing to {client!r}")
            if client in before:
                raise LedgerError(
                    f"the transfer of batch {number} to {client!r} came back before; "
                    "a later batch pays it"
                )
        if not chosen:
            raise LedgerError(f"every transfer of batch {number} came back before")
        body = {"batch": number, "clients": chosen, **person}
        books.chain.append(connection, Draft("returned", None, body))
    return chosen


def read_payees(path: Path) -> Payees:
    """Read an operator's CSV file: a line for each client, a column `client`, and any others."""
    found: dict[str, Mapping[str, str]] = {}
    for number, row in enumerate(csv_rows(path, "payee", "client"), 1):
        client = row["client"]
        if client in found:
            raise ConfigError(
                f"{str(path)!r} has a second line for {client!r} (payee {number}); correct it"
            )
        found[client] = row
    return found


def csv_rows(path: Path, what: str, column: str) -> list[dict[str, str]]:
    """Read a CSV file of an operator's, whose cells are separated by commas or semicolons.

    Args:
        path: The file.
        what: What a line of it is, for error messages.
        column: A column that it must have.
    """
    try:
        text = read_whole(path, plain=False).removeprefix("\ufeff")  # spreadsheets add it
        head = text.partition("\n")[0]
        delimiter = ";" if ";" in head and "," not in head else ","
        rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    except (OSError, ValueError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read the {what}s in {str(path)!r}: {why}") from None
    for number, row in enumerate(rows, 1):
        if row.get(column) is None:
            raise ConfigError(
                f"the {what}s in {str(path)!r} must have a column `{column}` and a line for each; "
                f"read with {delimiter!r} between cells, its columns are "
                f"{', '.join(map(repr, row))}"
            )
        if None in row or None in row.values():
            raise ConfigError(
                f"{str(path)!r} has too few or too many cells for {row[column]!r} "
                f"({what} {number}), with {delimiter!r} between cells; correct it"
            )
    return rows


def reference_of(books: Books, batch: int, place: int | None = None) -> str:
    """Return the end-to-end reference of a batch, or of the payment at a place in it, from 1 on.

    It is unique in the database, and fits what banks accept: 35 letters, digits and dashes.
    """
    name = re.sub("[^A-Za-z0-9]+", "-", books.name).strip("-")
    if name != books.name or len(name) > 20:
        digest = hashlib.sha256(books.name.encode()).hexdigest()[:6]
        name = f"{name[:13]}-{digest}"
    words = f"{name}-{batch}"
    return words if place is None else f"{words}-{place}"


def transfers(books: Books) -> list[dict[str, Any]]:
    """Return every payment of every batch: its reference, its amount, and what became of it.

    `transferred` is the day on which the bank's statement shows it, "" where no statement does;
    `returned` is whether it came back.
    """
    return _told(books, batches(books))


def _told(books: Books, made: Sequence[Batch]) -> list[dict[str, Any]]:
    shown, back = _what_became(books)
    found = []
    for batch in made:
        for place, (client, amount, _) in enumerate(batch.payments, 1):
            one = {
                "batch": batch.number,
                "client": client,
                "reference": reference_of(books, batch.number, place),
                "amount": amount,
                "transferred": shown.get((batch.number, client), ""),
                "returned": (batch.number, client) in back,
            }
            found.append(one)
    return found


def _what_became(books: Books) -> tuple[dict[tuple[int, str], str], set[tuple[int, str]]]:
    """Return on which day each payment (batch, client) was transferred, and which came back."""
    shown = {}
    for text in books.bodies("transferred"):
        for number, client, day in json.loads(text)["transfers"]:
            shown[number, client] = day
    back = set()
    for text in books.bodies("returned"):
        body = json.loads(text)
        back |= {(body["batch"], client) for client in body["clients"]}
    return shown, back


def batch_csv(books: Books, batch: Batch, payees: Payees | None = None) -> str:
    """Convert a batch to CSV: a line for each transfer, with the columns of the payees' file."""
    names = ("client", *_columns(payees), "amount", "currency", "rounds", "reference")
    rows = map(itemgetter(*names), _rows(books, batch, payees))
    return csv_text(names, rows)


def batch_json(books: Books, batch: Batch, payees: Payees | None = None) -> dict[str, Any]:
    """Convert a batch to JSON, with its total and with what became of each payment."""
    rows = _rows(books, batch, payees)
    shown, back = _what_became(books)
    for row, (client, amount, _) in zip(rows, batch.payments, strict=True):
        row.update(json_money(amount=amount))
        row["transferred"] = shown.get((batch.number, client))
        row["returned"] = (batch.number, client) in back
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
        check_payees(batch, payees)
    columns = _columns(payees)
    rows = []
    for place, (client, amount, rounds) in enumerate(batch.payments, 1):
        reference = reference_of(books, batch.number, place) if batch.made else ""
        row: dict[str, Any] = {"client": client}
        if payees is not None:
            row |= {name: payees[client][name] for name in columns}
        row["amount"] = plain_money(amount, books.purse.currency)
        row["currency"] = books.purse.currency or ""
        row["rounds"] = rounds
        row["reference"] = reference
        rows.append(row)
    return rows


def check_payees(batch: Batch, payees: Payees) -> None:
    """Refuse payees that lack a client of the batch."""
    missing = [client for client, _, _ in batch.payments if client not in payees]
    if missing:
        named = ", ".join(map(repr, missing))
        raise LedgerError(
            f"the file of --payees has no line for {named}; add one. No batch was made or printed"
        )


def _columns(payees: Payees | None) -> list[str]:
    """Return the columns of the payees' file, except those that a batch has itself."""
    if not payees:
        return []
    own = {"client", "amount", "currency", "rounds", "reference"}
    first = next(iter(payees.values()))
    return [name for name in first if name not in own]


_EVENTS = bodies_of(("paid out", "corrected", "returned")).with_only_columns(schema.events)


def _events(connection: sa.Connection, books: Books) -> list[Event]:
    rows = fetch(connection, _EVENTS, run=books.chain.run)
    return [Event(*row[1:]) for row in rows]


class _Account:
    """What each client is owed, event by event: what was settled and is in no batch yet."""

    def __init__(self, connection: sa.Connection, books: Books) -> None:
        self.batches: list[Batch] = []
        self._connection = connection
        self._books = books
        self.parts: dict[tuple[int, str], list[Part]] = {}
        self._owed = Counter[str]()
        self._open = defaultdict[str, list[Part]](list)  # what the owed amounts are made of
        self._rounds = Counter[str]()
        self._last = 0  # the last round in a batch
        corrected = {one.number: one for one in stored_corrections(connection, books.chain.run)}
        for row in _events(connection, books):
            body = json.loads(row.body)
            if row.kind == "corrected":
                one = corrected[row.number]
                self._owed[one.client] += one.amount
                why = body.get("reason", "")
                self._open[one.client].append(Part(one.round, one.amount, row.at, correction=why))
            elif row.kind == "returned":
                for client, amount, _ in self.batches[body["batch"] - 1].payments:
                    if client in body["clients"]:
                        self._owed[client] += amount
                        self._open[client].append(Part(None, amount, row.at, again=body["batch"]))
            else:
                last = body["last"] if row.round is None else row.round
                self.batches.append(self._pay(last, row.at))

    def due(self) -> Batch | None:
        """Return what the next batch would transfer; None if it would transfer nothing."""
        batch = self._pay(self._books.last_round(), "")
        return batch if batch.payments else None

    def owing(self) -> dict[str, int]:
        """Return what clients owe once all that is due is paid."""
        return {client: -amount for client, amount in sorted(self._owed.items()) if amount < 0}

    def _pay(self, last: int, at: str) -> Batch:
        """Add the rounds up to `last` and take out what is transferred to those who are owed."""
        first = self._last + 1
        run = self._books.chain.run
        for number, client, paid in paid_in(self._connection, run, first, last):
            self._owed[client] += paid
            self._rounds[client] += 1
            self._open[client].append(Part(number, paid))
        batch = len(self.batches) + 1
        payments = []
        for client in sorted(self._owed):
            if self._owed[client] > 0:  # else the client owes, and later payments are kept back
                payments.append((client, self._owed.pop(client), self._rounds.pop(client, 0)))
                self.parts[batch, client] = self._open.pop(client)
        self._last = max(self._last, last)
        return Batch(batch, first, self._last, at, tuple(payments))

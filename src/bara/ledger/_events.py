"""A run's chain of events: each bound to the one before by its hash, with commitments to what may be dropped."""

import hashlib
import hmac
import json
import operator
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.files import SMALL, read_whole, write_whole
from bara.ledger import _schema as schema
from bara.ledger.store import insert

START = "0" * 64
"""What stands in the place of a hash before the first event."""

PAGE = 500
"""Events or rounds read at a time, so that memory stays flat however long a run is."""

Rows = list[Any]
"""The amounts that belong to an event: its hash covers them though they stand in tables of their own."""

_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    default=operator.methodcaller(
        "tolist"
    ),  # numpy's numbers and arrays, which a plug-in may believe or remember
)


def canonical(tree: Any) -> str:
    """One text for one content: keys sorted, no spaces, and every float as the shortest text that reads back as it.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return _ENCODER.encode(tree)


def read_body(text: str) -> dict[str, Any]:
    """An event's body, or any content that was stored as an object."""
    try:
        body = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise LedgerError(f"cannot read an event, see `bara ledger DIR verify`: {error}") from error
    if not isinstance(body, dict):
        raise LedgerError(
            f"an event must hold an object, got {text[:40]!r}; see `bara ledger DIR verify`"
        )
    return body


def link(previous: str, content: str, key: bytes | None = None) -> str:
    """The hash of an event that follows `previous`; with a key, an HMAC that only its holder can make."""
    message = f"{previous}\n{content}".encode()
    if key is None:
        return hashlib.sha256(message).hexdigest()
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def new_salt() -> str:
    """128 bits that keep a digest from being guessed back."""
    return secrets.token_hex(16)


def commitment(salt: str, content: str) -> str:
    """A digest that binds to the content without revealing it, even where few contents are possible."""
    return hashlib.sha256(f"{salt}\n{content}".encode()).hexdigest()


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


@dataclass(frozen=True)
class Draft:
    """An event before it has its place in the chain."""

    kind: str
    round: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows = field(default_factory=list)


def content(
    run: str, number: int, kind: str, round_number: int | None, at: str, body: str, rows: Rows
) -> str:
    """What an event's hash is made of."""
    return canonical([run, number, kind, round_number, at, body, rows])


_HEAD = "SELECT number, hash FROM events WHERE run = {} ORDER BY number DESC LIMIT 1"


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
        cursor = connection.connection.cursor()
        cursor.execute(_HEAD.format(int(self.run)))
        number, value = cursor.fetchone() or (0, START)
        return number, value

    def hash_of(self, connection: sa.Connection, number: int) -> str | None:
        """The hash of the event of that number; None where there is none."""
        table = schema.events
        query = sa.select(table.c.hash).where(table.c.run == self.run, table.c.number == number)
        return connection.scalar(query)

    def append(self, connection: sa.Connection, *drafts: Draft) -> int:
        """Append events; returns the last one's number. Two that append at once cannot both get the same number."""
        last, previous = self.head(connection)
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        stored = []
        for number, draft in enumerate(drafts, last + 1):
            text = canonical(draft.body)
            made_of = content(self.name, number, draft.kind, draft.round, at, text, draft.rows)
            value = link(previous, made_of, self.key)
            stored.append((self.run, number, draft.kind, draft.round, at, text, previous, value))
            previous = value
        insert(connection, schema.events, stored)
        return last + len(drafts)

    def fits(self, event: Event, previous: str, rows: Rows) -> bool:
        """Whether the event's hash is that of its content, the hash before it, and its rows."""
        try:
            made_of = content(
                self.name, event.number, event.kind, event.round, event.at, event.body, rows
            )
            return link(previous, made_of, self.key) == event.hash
        except (
            AttributeError,
            TypeError,
            ValueError,
        ):  # a BLOB, or text that is none: nothing that we have written
            return False

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


def store_redactable(
    connection: sa.Connection, run: int, round_number: int, parts: Mapping[str, Any]
) -> dict[str, str]:
    """Store what may be dropped later; returns the digests that events commit to."""
    rows = [(run, round_number, part, new_salt(), canonical(tree)) for part, tree in parts.items()]
    insert(connection, schema.redactable, rows)
    return {part: commitment(salt, text) for _, _, part, salt, text in rows}


@dataclass(frozen=True)
class Receipt:
    """How far a run's ledger went at a time.

    Attributes:
        run: Whose ledger.
        events: How many events there were.
        head: The hash of the last of them.
    """

    run: str
    events: int
    head: str

    def write(self, path: Path) -> None:
        """Replace the receipt so that at any moment there is the old one or the new one."""
        write_whole(path, [json.dumps(asdict(self)), "\n"])

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a receipt back."""
        try:
            receipt = cls(**json.loads(read_whole(path, SMALL)))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise LedgerError(f"{path} is not a receipt: {error}") from error
        if not isinstance(receipt.events, int):
            raise LedgerError(
                f"{path} is not a receipt: its events must be a number, got {receipt.events!r}"
            )
        return receipt

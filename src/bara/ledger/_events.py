"""A run's hash chain of events, with salted commitments to content that may be dropped later."""

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
from bara.ledger.store import fetch, insert

START = "0" * 64
"""The `previous` hash of the first event."""

PAGE = 500
"""How many events or rounds are read at a time; memory stays flat however long a run is."""

Rows = list[Any]
"""The amounts that an event's hash covers although they are stored in tables of their own."""

_ENCODER = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=False,
    # For numpy numbers and arrays, which a plug-in's belief or memory may contain.
    default=operator.methodcaller("tolist"),
)


def canonical(tree: Any) -> str:
    """Return the canonical JSON of a value: sorted keys, no spaces, the shortest exact floats.

    >>> canonical({"b": 0.1, "a": [1, None]})
    '{"a":[1,null],"b":0.1}'
    """
    return _ENCODER.encode(tree)


def read_body(text: str) -> dict[str, Any]:
    """Parse the body of an event; refuse anything but a JSON object."""
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
    """Return the hash that links an event to the one before.

    Args:
        previous: The hash of the event before.
        content: The event's own content, from `content()`.
        key: Makes the hash an HMAC, which only a holder of the key can compute; None for SHA-256.
    """
    message = f"{previous}\n{content}".encode()
    if key is None:
        return hashlib.sha256(message).hexdigest()
    return hmac.new(key, message, hashlib.sha256).hexdigest()


def commitment(salt: str, content: str) -> str:
    """Return a digest that commits to the content without revealing it.

    The salt protects content that is easy to guess because it can have only a few values.
    """
    return hashlib.sha256(f"{salt}\n{content}".encode()).hexdigest()


@dataclass(frozen=True)
class Event:
    """An event as stored."""

    number: int
    kind: str
    round: int | None
    at: str
    body: str
    previous: str
    hash: str


@dataclass(frozen=True)
class Draft:
    """An event that is not yet in the chain: it has no number, time or hash."""

    kind: str
    round: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows = field(default_factory=list)


def content(
    run: str, number: int, kind: str, round_number: int | None, at: str, body: str, rows: Rows
) -> str:
    """Return the text that an event's hash is computed from, without the previous hash."""
    return canonical([run, number, kind, round_number, at, body, rows])


_HEAD = "SELECT number, hash FROM events WHERE run = {} ORDER BY number DESC LIMIT 1"

_OF_RUN = schema.events.c.run == sa.bindparam("run")

_HASH = sa.select(schema.events.c.hash).where(
    _OF_RUN, schema.events.c.number == sa.bindparam("number")
)

_EVENTS = (
    sa.select(schema.events)
    .where(_OF_RUN, schema.events.c.number > sa.bindparam("last"))
    .order_by(schema.events.c.number)
    .limit(sa.bindparam("most"))
)


@dataclass(frozen=True)
class Chain:
    """The chain of events of one run.

    Attributes:
        run: The run's number in this database.
        name: The run's name, which every hash covers.
        key: The key that makes the hashes HMACs; None for plain SHA-256.
    """

    run: int
    name: str
    key: bytes | None

    def head(self, connection: sa.Connection) -> tuple[int, str]:
        """Return the number and the hash of the last event."""
        cursor = connection.connection.cursor()
        cursor.execute(_HEAD.format(int(self.run)))
        number, value = cursor.fetchone() or (0, START)
        return number, value

    def hash_of(self, connection: sa.Connection, number: int) -> str | None:
        """Return the hash of the event with this number; None if there is no such event.

        Number 0 is the state before the first event.
        """
        if number == 0:
            return START
        for (found,) in fetch(connection, _HASH, run=self.run, number=number):
            return str(found)
        return None

    def first(self, connection: sa.Connection) -> Event | None:
        """Return the first event; None if there is none."""
        for row in fetch(connection, _EVENTS, run=self.run, last=0, most=1):
            return Event(*row[1:])
        return None

    def append(self, connection: sa.Connection, *drafts: Draft) -> int:
        """Append events and return the last one's number.

        Two processes that append at the same time cannot get the same number: it is a primary key.
        """
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
        """Return whether an event's hash matches its content, its rows and the hash before."""
        try:
            made_of = content(
                self.name, event.number, event.kind, event.round, event.at, event.body, rows
            )
            return link(previous, made_of, self.key) == event.hash
        except (AttributeError, TypeError, ValueError):
            return False  # a BLOB or undecodable text, which bara never writes

    def events(self, connection: sa.Connection) -> Iterator[Event]:
        """Yield every event in order, reading a page at a time."""
        last = 0
        while True:
            page = fetch(connection, _EVENTS, run=self.run, last=last, most=PAGE)
            for row in page:
                yield Event(*row[1:])
            if len(page) < PAGE:
                return
            last = page[-1][1]


def seal(contents: Mapping[str, Any]) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """Return content that may be dropped later, and the digests by name that events hold of it.

    Args:
        contents: The content by name.

    Returns:
        The name, the salt and the text of each content; and the digests.
    """
    sealed = []
    digests = {}
    for name, tree in contents.items():
        salt = secrets.token_hex(16)  # 128 bits, so that nobody can guess the content
        text = canonical(tree)
        sealed.append((name, salt, text))
        digests[name] = commitment(salt, text)
    return sealed, digests


@dataclass(frozen=True)
class Receipt:
    """The state of a run's ledger at one moment; proves later that no event was removed.

    Attributes:
        run: The name of the run.
        events: The number of events in the ledger.
        head: The hash of the last event.
    """

    run: str
    events: int
    head: str

    def write(self, path: Path) -> None:
        """Write the receipt to a file atomically: a crash leaves the old receipt or the new one."""
        write_whole(path, [json.dumps(asdict(self)), "\n"])

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a receipt from a file; refuse anything else."""
        try:
            receipt = cls(**json.loads(read_whole(path, SMALL)))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise LedgerError(f"{path} is not a receipt: {error}") from error
        if not isinstance(receipt.events, int):
            raise LedgerError(
                f"{path} is not a receipt: its events must be a number, got {receipt.events!r}"
            )
        return receipt

"""Who was promised and paid what, by client and by round, adding up to the micro-unit; as records, CSV and JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import chain
from typing import Any

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger import _schema as schema
from bara.ledger._reading import (
    ANSWERS,
    StoredRound,
    asked_prices,
    is_paused,
    last_of,
    stored_rounds,
    topped_up,
    waiting_round,
)
from bara.ledger._verification import require_whole
from bara.ledger.books import Books
from bara.records import json_money, show_money
from bara.text import csv_text

_MONEY = frozenset(
    {"asked", "promised", "paid", "returned", "opened_with", "topped_up", "spent", "outstanding"}
)
"""Names of amounts, which are micro-units here and decimals in what is exported."""


@dataclass(frozen=True)
class Line:
    """One winner in one round.

    Attributes:
        round: Which.
        client: Who.
        asked: Its price, in micro-units; None once bids are dropped.
        promised: What it was to be paid on delivery.
        paid: What it was paid; None while the round is not settled.
        reason: Why it was not, or will not be, where it is not.
        privacy: The privacy budget its delivery spent, where bids carry one.
        at: When the round was settled, in ISO 8601; None while it is not.
    """

    round: int
    client: str
    asked: int | None
    promised: int
    paid: int | None
    reason: str | None
    privacy: float | None
    at: str | None = None


@dataclass
class ClientTotal:
    """One client over all rounds."""

    client: str
    won: int = 0
    void: int = 0
    asked: int | None = 0
    promised: int = 0
    paid: int = 0
    returned: int = 0
    privacy: float | None = None

    def add(self, line: Line) -> None:
        """Count one more round."""
        self.won += 1
        self.promised += line.promised
        self.asked = None if self.asked is None or line.asked is None else self.asked + line.asked
        if line.paid is None:
            return
        self.paid += line.paid
        if line.reason is not None:
            self.void += 1
            self.returned += line.promised
        elif line.privacy is not None:
            self.privacy = (self.privacy or 0.0) + line.privacy


@dataclass(frozen=True)
class RoundTotal:
    """One round over all clients."""

    round: int
    n: int
    void: int
    promised: int
    paid: int | None
    accuracy: float | None


@dataclass(frozen=True)
class Statement:
    """A run's account. Budget = spent + left; spent = all that clients were paid = all that rounds paid.

    Attributes:
        run: Whose.
        opened_with: The budget at first.
        topped_up: What was added to it.
        spent: What was paid.
        outstanding: What is promised and not settled.
        ended: Why the run ended, once it has.
        paused: Whether an operator has stopped it.
        waiting: The round whose award waits for an operator's answer, if one does.
        clients: By client.
        rounds: By round.
        currency: What all amounts are in; None for units of no currency.
    """

    run: str
    opened_with: int
    topped_up: int
    spent: int
    outstanding: int
    ended: str | None
    paused: bool
    waiting: int | None
    clients: list[ClientTotal] = field(default_factory=list)
    rounds: list[RoundTotal] = field(default_factory=list)
    currency: str | None = None

    @property
    def budget(self) -> int:
        """What there was to spend."""
        return self.opened_with + self.topped_up

    @property
    def left(self) -> int:
        """What is not spent."""
        return self.budget - self.spent


def lines(books: Books, client: str | None = None) -> Iterator[Line]:
    """Every winner of every round, or one client's own rounds, in which nobody else's bid is seen."""
    with books.store.read() as connection:
        require_whole(books)
        for number, stored in stored_rounds(connection, books.chain.run):
            yield from (
                line for line in round_lines(number, stored) if client in (None, line.client)
            )


def statement(books: Books) -> Statement:
    """The whole account, of a record that is whole (`require_whole`)."""
    clients: dict[str, ClientTotal] = {}
    rounds, outstanding = [], 0
    with books.store.read() as connection:
        require_whole(books)
        for number, stored in stored_rounds(connection, books.chain.run):
            here = list(round_lines(number, stored))
            for line in here:
                clients.setdefault(line.client, ClientTotal(line.client)).add(line)
            rounds.append(_round_total(number, stored, here))
            outstanding += sum(
                line.promised for line in here if line.paid is None and line.reason is None
            )
        added = topped_up(connection, books.chain.run)
        paused = is_paused(connection, books.chain.run)
        waiting = unanswered(connection, books)
    spent = sum(total.paid or 0 for total in rounds)
    return Statement(
        books.name,
        books.purse.total,
        added,
        spent,
        outstanding,
        books.ended(),
        paused,
        waiting,
        sorted(clients.values(), key=lambda total: total.client),
        rounds,
        books.purse.currency,
    )


def unanswered(connection: sa.Connection, books: Books) -> int | None:
    """The round whose award waits for an operator's answer, if one does."""
    number = waiting_round(connection, books.chain.run, books.terms.approve_above)
    if (
        number is None
        or last_of(connection, books.chain.run, *ANSWERS, round_number=number) is not None
    ):
        return None
    return number


@dataclass(frozen=True)
class Period:
    """The days of a statement, both included, as `2026-01-31`; None for no limit."""

    first: str | None = None
    last: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no day."""
        for day in filter(None, (self.first, self.last)):
            try:
                date.fromisoformat(day)
            except ValueError:
                raise LedgerError(
                    f"--since and --until must be days like 2026-01-31, got {day!r}"
                ) from None
        if self.first and self.last and self.first > self.last:
            raise LedgerError(f"--since {self.first} must not be after --until {self.last}")

    def holds(self, at: str | None) -> bool:
        """Whether that moment, in UTC, is in it; what is not settled is in none that has an end or a beginning."""
        if at is None:
            return self.first is self.last is None
        day = at[:10]
        return (self.first or day) <= day <= (self.last or day)


def own_statement(
    books: Books, client: str, period: Period | None = None
) -> tuple[ClientTotal, list[Line]]:
    """One client's account, over the whole run or some days of it."""
    holds = (period or Period()).holds
    total, own = ClientTotal(client), [line for line in lines(books, client) if holds(line.at)]
    if not own:
        raise LedgerError(
            f"client {client!r} has not won a round of {books.name!r}"
            + " in these days" * bool(period)
        )
    for line in own:
        total.add(line)
    return total, own


def round_lines(number: int, stored: StoredRound) -> Iterator[Line]:
    """Every winner of one round, best first."""
    paid = {client: (amount, reason) for client, amount, reason in stored.settlements}
    asked = asked_prices(stored.redactable.get("bids")) or {}
    privacy: dict[str, Any] = (stored.promised or {}).get("privacy") or {}
    for client, amount in stored.promises:
        got, reason = paid.get(client, (None, stored.refused))
        yield Line(
            number, client, asked.get(client), amount, got, reason, privacy.get(client), stored.at
        )


def _round_total(number: int, stored: StoredRound, here: list[Line]) -> RoundTotal:
    settled = stored.settled
    evaluation = {} if settled is None else settled["evaluation"]
    return RoundTotal(
        number,
        sum(line.paid is not None and line.reason is None for line in here),
        sum(line.reason is not None for line in here),
        sum(line.promised for line in here),
        None if settled is None else sum(line.paid or 0 for line in here),
        evaluation.get("test_accuracy", evaluation.get("accuracy")),
    )


def line_json(record: ClientTotal | RoundTotal | Line) -> dict[str, Any]:
    """A line with amounts as decimal numbers and, beside them, exactly."""
    return _amounts(vars(record))


def statement_json(account: Statement) -> dict[str, Any]:
    """The whole account."""
    records = {
        "clients": [*map(line_json, account.clients)],
        "rounds": [*map(line_json, account.rounds)],
    }
    return {
        **_amounts(vars(account)),
        **json_money(budget=account.budget, left=account.left),
        **records,
    }


def export_json(books: Books) -> dict[str, Any]:
    """Every event and every promise with what became of it; bids and menus are left out."""
    with books.store.read() as connection:
        own = [
            line_json(line) for line in lines(books)
        ]  # first: it sees to it that the record is whole
        table = schema.top_ups
        query = sa.select(table.c.number, table.c.amount).where(table.c.run == books.chain.run)
        added = {row.number: row.amount for row in connection.execute(query)}
        events = [
            {**vars(event), "body": json.loads(event.body)}
            | (json_money(amount=added[event.number]) if event.number in added else {})
            for event in books.chain.events(connection)
        ]
    return {"run": books.name, "events": events, "lines": own}


def table_csv(records: Iterable[ClientTotal | RoundTotal | Line]) -> str:
    """Lines with amounts as exact decimals; nothing where nothing is known."""
    rest = iter(records)
    first = next(rest, None)
    if first is None:
        return ""
    names = [*vars(first)]
    return csv_text(names, (exact_values(record, names) for record in chain([first], rest)))


def exact_values(record: Any, names: Iterable[str]) -> list[Any]:
    """Some of a record's values, amounts as exact decimals, None where nothing is known."""
    values = ((name, getattr(record, name)) for name in names)
    return [
        show_money(value) if name in _MONEY and value is not None else value
        for name, value in values
    ]


def _amounts(values: Mapping[str, Any]) -> dict[str, Any]:
    shown = [
        json_money(**{key: value}) if key in _MONEY else {key: value}
        for key, value in values.items()
    ]
    return {key: value for one in shown for key, value in one.items()}

"""Statements of what was promised and paid, by client and by round; as records, CSV and JSON."""

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
from bara.ledger.retention import is_dropped
from bara.ledger.store import fetch
from bara.records import json_money, plain_money
from bara.text import counted, csv_text, probably_meant

_MONEY = frozenset(
    {
        "amount",
        "asked",
        "asked_last",
        "promised",
        "paid",
        "returned",
        "opened_with",
        "topped_up",
        "spent",
        "outstanding",
    }
)
"""The fields that are amounts: micro-units in records, decimals in exports."""


@dataclass(frozen=True)
class Line:
    """The line of one winner in one round; amounts in micro-units.

    Attributes:
        round: The round.
        client: The winner.
        asked: The price it bid; None once bids are dropped.
        promised: The amount promised for its delivery.
        paid: The amount it was paid; None while the round is unsettled.
        reason: Why it was not or will not be paid; None for other winners.
        privacy: The privacy budget that its delivery spends; None if bids carry none.
        at: When the round was settled, in ISO 8601; None while it is unsettled.
        correction: Why the payment of the round was corrected, for a line that does so: then `paid`
            is what was added or taken back, and nothing is promised.
    """

    round: int
    client: str
    asked: int | None
    promised: int
    paid: int | None
    reason: str | None
    privacy: float | None
    at: str | None = None
    correction: str | None = None

    @property
    def remark(self) -> str:
        """The reason why less, more or nothing was paid; "" for a line that needs none."""
        if self.correction is not None:
            return f"corrected: {self.correction}"
        return self.reason or ""


@dataclass(frozen=True)
class Correction:
    """A correction of one payment; amounts in micro-units.

    Attributes:
        number: The number of its event.
        round: The round whose payment it corrects.
        client: Whose payment.
        counts_from: The first round whose balance counts it.
        amount: What it adds; negative for what it takes back.
    """

    number: int
    round: int
    client: str
    counts_from: int
    amount: int


def stored_corrections(connection: sa.Connection, run: int, after: int = 0) -> list[Correction]:
    """Return the corrections of a run's payments, in order.

    Args:
        connection: The database.
        run: The run's number in it.
        after: Only corrections whose events have a greater number.
    """
    rows = fetch(connection, _CORRECTIONS, run=run, after=after)
    return [Correction(*row[1:]) for row in rows]


_CORRECTIONS = (
    sa.select(schema.corrections)
    .where(
        schema.corrections.c.run == sa.bindparam("run"),
        schema.corrections.c.number > sa.bindparam("after"),
    )
    .order_by(schema.corrections.c.number)
)


def amounts_by_event(connection: sa.Connection, run: int) -> dict[int, int]:
    """Return the amounts of a run's top-ups and corrections, by the numbers of their events."""
    table = schema.top_ups
    found = {}
    for row in connection.execute(sa.select(table).where(table.c.run == run)):
        found[row.number] = int(row.amount)
    for one in stored_corrections(connection, run):
        found[one.number] = one.amount
    return found


@dataclass
class ClientTotal:
    """The totals of one client, which may have won nothing; amounts in micro-units.

    Attributes:
        client: The client.
        won: In how many rounds it won.
        void: In how many of them it did not deliver.
        asked: The sum of what it asked in the rounds that it won; None once bids are dropped.
        asked_last: What it asked in the last round in which it bid; None once bids are dropped.
        promised: The sum that it was promised.
        paid: The sum that it was paid.
        returned: The sum of promises that came back to the purse.
        privacy: The privacy that its deliveries spent; None if bids carry none.
    """

    client: str
    won: int = 0
    void: int = 0
    asked: int | None = 0
    asked_last: int | None = None
    promised: int = 0
    paid: int = 0
    returned: int = 0
    privacy: float | None = None

    def add(self, line: Line) -> None:
        """Add one round that the client won, or a correction of one."""
        if line.correction is not None:
            self.paid += line.paid or 0
            return
        self.won += 1
        self.asked_last = line.asked
        self.promised += line.promised
        if self.asked is None or line.asked is None:
            self.asked = None
        else:
            self.asked += line.asked
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
    """The totals of one round over its winners; amounts in micro-units."""

    round: int
    n: int
    void: int
    promised: int
    paid: int | None
    accuracy: float | None


@dataclass(frozen=True)
class Statement:
    """The account of a run, in micro-units; spent is the sum over clients and the sum over rounds.

    Attributes:
        run: The run's name.
        opened_with: The budget that the run was opened with.
        topped_up: The amount added to the budget since.
        spent: The amount paid to clients.
        outstanding: The amount promised in an unsettled round.
        ended: Why the run ended; None for a run that has not.
        paused: Whether an operator has paused the run.
        waiting: The round whose award waits for an operator's answer, if any.
        clients: The totals of each client that bid.
        rounds: The totals of each round.
        currency: The currency of all amounts; None for units of no currency.
        oldest: How many rounds ago the oldest remembered update in the last model was made; None
            where there is none.
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
    oldest: int | None = None

    @property
    def budget(self) -> int:
        """The whole budget: opened_with + topped_up."""
        return self.opened_with + self.topped_up

    @property
    def left(self) -> int:
        """The budget that is not spent."""
        return self.budget - self.spent

    @property
    def never_paid(self) -> list[ClientTotal]:
        """The clients that bid and were never paid, whom the model has not heard."""
        return [one for one in self.clients if not one.paid]

    def share_of_most_paid(self, count: int) -> float:
        """Return the share of all payments that went to the `count` clients that were paid most."""
        ranked = sorted((one.paid for one in self.clients), reverse=True)
        return sum(ranked[:count]) / max(self.spent, 1)


def lines(books: Books, client: str | None = None) -> Iterator[Line]:
    """Yield a line for each winner of each round, from a verified record.

    Args:
        books: The run's books.
        client: Whose lines to yield, which show nothing of other clients; None for everybody's.
    """
    with books.store.read() as connection:
        require_whole(books)
        corrected = _correction_lines(connection, books)
        for number, stored in stored_rounds(connection, books.chain.run):
            for line in chain(round_lines(number, stored), corrected.get(number, ())):
                if client in (None, line.client):
                    yield line


def statement(books: Books) -> Statement:
    """Return the account of a run, from a verified record (`require_whole`)."""
    clients: dict[str, ClientTotal] = {}
    rounds = []
    outstanding = 0
    oldest = None
    asked: dict[str, int] = {}
    with books.store.read() as connection:
        require_whole(books)
        corrected = _correction_lines(connection, books)
        for number, stored in stored_rounds(connection, books.chain.run):
            here = [*round_lines(number, stored), *corrected.get(number, ())]
            asked.update(asked_prices(stored.redactable.get("bids")) or {})
            if stored.settled is not None:
                oldest = oldest_in(stored.settled)
            for line in here:
                clients.setdefault(line.client, ClientTotal(line.client)).add(line)
                if line.paid is None and line.reason is None:
                    outstanding += line.promised
            rounds.append(_round_total(number, stored, here))
        added = topped_up(connection, books.chain.run)
        paused = is_paused(connection, books.chain.run)
        waiting = unanswered(connection, books)
    if books.keeps_bids:
        note_asked(clients, asked)
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
        oldest,
    )


def note_asked(totals: dict[str, ClientTotal], asked: Mapping[str, int]) -> None:
    """Note what clients asked last, also of those that have won nothing.

    Args:
        totals: The totals by client, which are changed.
        asked: The last price of each client.
    """
    for client, price in asked.items():
        totals.setdefault(client, ClientTotal(client)).asked_last = price


def oldest_in(settled: Mapping[str, Any]) -> int | None:
    """Return how many rounds ago the oldest remembered update in a round's model was made.

    Args:
        settled: What the books say of the settled round.

    Returns:
        None where the model holds nothing that was remembered.
    """
    ages = settled.get("ages") or {}
    return max(map(int, ages), default=None)


def unanswered(connection: sa.Connection, books: Books) -> int | None:
    """Return the round whose award still waits for an operator's answer, if any."""
    number = waiting_round(connection, books.chain.run, books.terms.approve_above)
    if number is None:
        return None
    answer = last_of(connection, books.chain.run, *ANSWERS, round_number=number)
    if answer is not None:
        return None
    return number


@dataclass(frozen=True)
class Period:
    """The first and the last day of a statement, like `2026-01-31`; None for no limit."""

    first: str | None = None
    last: str | None = None

    def __post_init__(self) -> None:
        """Refuse a text that is not a day, and a first day after the last."""
        for day in (self.first, self.last):
            if not day:
                continue
            try:
                date.fromisoformat(day)
            except ValueError:
                raise LedgerError(
                    f"--since and --until must be days like 2026-01-31, got {day!r}"
                ) from None
        if self.first and self.last and self.first > self.last:
            raise LedgerError(f"--since {self.first} must not be after --until {self.last}")

    def holds(self, at: str | None) -> bool:
        """Return whether a round is in the period.

        Args:
            at: When the round was settled, in ISO 8601 and UTC; None for an unsettled round, which
                belongs only to a period without limits.
        """
        if at is None:
            return self.first is None and self.last is None
        day = at[:10]
        if self.first and day < self.first:
            return False
        return not self.last or day <= self.last


def own_statement(
    books: Books, client: str, period: Period | None = None
) -> tuple[ClientTotal, list[Line]]:
    """Return one client's totals and lines; refuse a client that won nothing.

    Args:
        books: The run's books.
        client: The client's name.
        period: The days to count; None for the whole run.
    """
    holds = (period or Period()).holds
    own = [line for line in lines(books, client) if holds(line.at)]
    if not own:
        raise LedgerError(_why_no_statement(books, client, period))
    total = ClientTotal(client)
    for line in own:
        total.add(line)
    return total, own


def _why_no_statement(books: Books, client: str, period: Period | None) -> str:
    """Tell a client that lost from one that did not bid, whose name may be misspelt."""
    if period is not None:
        return f"client {client!r} has not won a round of {books.name!r} in these days"
    asked = []
    others: set[str] = set()
    why = ""
    for record in books.history():
        bids = record.awarded.bids
        if is_dropped(bids):
            return f"client {client!r} has not won a round of {books.name!r}"
        others.update(bids.clients)
        left_out = record.awarded.left_out
        if left_out is not None and client in left_out.bids.clients:
            bids = left_out.bids
            why = f"; it was left out: {left_out.reasons[client]}"
        if client in bids.clients:
            asked.append(bids.price_of(client))
    if not asked:
        meant = probably_meant(client, sorted(others))
        hint = f"did you mean {meant!r}?" if meant else f"{counted(len(others), 'client')} did"
        return f"no client {client!r} has bid in {books.name!r}; {hint}"
    rounds = counted(len(asked), "round")
    last = books.purse.show(asked[-1])
    told = f"client {client!r} bid in {rounds} of {books.name!r} and won none"
    return f"{told}; it asked {last} last{why}"


def round_lines(number: int, stored: StoredRound) -> Iterator[Line]:
    """Yield a line for each winner of one round, best first."""
    paid = {client: (amount, reason) for client, amount, reason in stored.settlements}
    asked = asked_prices(stored.redactable.get("bids")) or {}
    privacy: dict[str, Any] = (stored.promised or {}).get("privacy") or {}
    for client, amount in stored.promises:
        got, reason = paid.get(client, (None, stored.refused))
        yield Line(
            number, client, asked.get(client), amount, got, reason, privacy.get(client), stored.at
        )


def _correction_lines(connection: sa.Connection, books: Books) -> dict[int, list[Line]]:
    """Return a line for each correction, by the round that it corrects."""
    run = books.chain.run
    events = schema.events
    query = sa.select(events.c.number, events.c.at, events.c.body).where(
        events.c.run == run, events.c.kind == "corrected"
    )
    told = {row.number: (row.at, json.loads(row.body)) for row in connection.execute(query)}
    found: dict[int, list[Line]] = {}
    for one in stored_corrections(connection, run):
        at, body = told[one.number]
        why = body.get("reason", "")
        line = Line(one.round, one.client, None, 0, one.amount, None, None, at, correction=why)
        found.setdefault(one.round, []).append(line)
    return found


def _round_total(number: int, stored: StoredRound, here: list[Line]) -> RoundTotal:
    delivered = void = promised = 0
    for line in here:
        promised += line.promised
        if line.correction is not None:
            continue
        if line.reason is not None:
            void += 1
        elif line.paid is not None:
            delivered += 1
    paid = accuracy = None
    if stored.settled is not None:
        paid = sum(line.paid or 0 for line in here)
        evaluation = stored.settled["evaluation"]
        accuracy = evaluation.get("test_accuracy", evaluation.get("accuracy"))
    return RoundTotal(number, delivered, void, promised, paid, accuracy)


def line_json(record: ClientTotal | RoundTotal | Line) -> dict[str, Any]:
    """Convert a record to JSON, each amount as a number and, in `NAME_exact`, as an exact text."""
    return _amounts(vars(record))


def statement_json(account: Statement) -> dict[str, Any]:
    """Convert the account of a run to JSON, amounts as in `line_json`."""
    tree = _amounts(vars(account))
    tree |= json_money(budget=account.budget, left=account.left)
    tree["clients"] = list(map(line_json, account.clients))
    tree["rounds"] = list(map(line_json, account.rounds))
    return tree


def export_json(books: Books) -> dict[str, Any]:
    """Return every event and every line of a run as JSON, without bids and menus."""
    with books.store.read() as connection:
        records = list(map(line_json, lines(books)))  # first, as it verifies the record
        added = amounts_by_event(connection, books.chain.run)
        events = []
        for event in books.chain.events(connection):
            tree = {**vars(event), "body": json.loads(event.body)}
            if event.number in added:
                tree |= json_money(amount=added[event.number])
            events.append(tree)
    return {"run": books.name, "events": events, "lines": records}


def table_csv(
    records: Iterable[ClientTotal | RoundTotal | Line], currency: str | None = None
) -> str:
    """Convert records of one kind to CSV, amounts as exact decimals; empty if there are none."""
    rest = iter(records)
    first = next(rest, None)
    if first is None:
        return ""
    names = list(vars(first))
    rows = (exact_values(record, names, currency) for record in chain([first], rest))
    return csv_text(names, rows)


def exact_values(record: Any, names: Iterable[str], currency: str | None = None) -> list[Any]:
    """Return the named values of a record, amounts as exact decimals, unknown ones as None."""
    values = []
    for name in names:
        value = getattr(record, name)
        if name in _MONEY and value is not None:
            value = plain_money(value, currency)
        values.append(value)
    return values


def _amounts(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in values.items():
        if name in _MONEY:
            tree |= json_money(**{name: value})
        else:
            tree[name] = value
    return tree

"""The verification of a run's record: every hash, every digest, every row and every sum."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger import _schema as schema
from bara.ledger._events import START, Event, Receipt, Rows, commitment
from bara.ledger._reading import REFUSALS, is_same_person
from bara.ledger.books import Books
from bara.ledger.migrations.rules import RULES
from bara.ledger.store import HEAD, fetch, schema_version
from bara.records import Offer
from bara.text import counted


@dataclass(frozen=True)
class Finding:
    """The result of a verification.

    Attributes:
        events: The number of events that are in order.
        wrong: The number of the first event that is not in order; None if all are.
        problem: What is wrong with that event; None if nothing is.
        head: The hash of the last event that is in order.
        keyed: Whether the hashes were checked with a key. False where a key is expected means that
            somebody has rewritten the whole chain.
    """

    events: int
    wrong: int | None = None
    problem: str | None = None
    head: str = START
    keyed: bool = False

    @property
    def ok(self) -> bool:
        """True if the whole record is in order."""
        return self.problem is None


class _Wrong(Exception):  # noqa: N818 - a finding, not an error
    """A problem, raised by the check that found it."""


def require_whole(books: Books, *, needs_key: bool = False) -> None:
    """Refuse a record that is not whole, before anything of it is shown, signed or paid out.

    Args:
        books: The record.
        needs_key: Whether to refuse a chain whose key is not at hand; if False, everything but its
            hashes is checked.
    """
    receipt = books.stored_receipt()  # first: a later one may count events that verify cannot see
    if books.chain.key is not None:
        books.check_key()
    finding = verify(books, receipt, needs_key=needs_key)
    if not finding.ok:
        raise LedgerError(
            f"the record of run {books.name!r} is not whole: "
            f"event {finding.wrong}: {finding.problem}; nothing of it is shown, signed or paid out"
        )


def is_locked(books: Books) -> bool:
    """Return whether the hashes cannot be checked because the chain's key is not at hand."""
    return bool(_opening(books).get("keyed")) and books.chain.key is None


def verify(books: Books, receipt: Receipt | None = None, *, needs_key: bool = True) -> Finding:
    """Check the whole record of a run, from the first event on.

    Args:
        books: The record.
        receipt: A receipt of an earlier moment, which shows whether events were rewritten or are
            missing at the end; None to check without.
        needs_key: As for `require_whole`.
    """
    if needs_key and is_locked(books):
        raise LedgerError(
            f"the chain of run {books.name!r} has a key; verifying it needs the same key: set "
            f"{books.key_name}"
        )
    with books.store.read() as connection:
        return _Walk(books, connection, receipt).finding()


class _Walk:
    """One verification: a walk along the chain that stops at the first problem."""

    def __init__(self, books: Books, connection: sa.Connection, receipt: Receipt | None) -> None:
        self._books = books
        self._connection = connection
        self._receipt = receipt
        self._previous = START  # the hash of the last event that was checked
        self._done = 0  # its number
        self._settled: Event | None = None  # the last settlement
        self._seen = dict.fromkeys(_COUNTED, 0)  # how many rows of each table belong to events
        self._sums = _Sums()
        self._locked = is_locked(books)

    def finding(self) -> Finding:
        try:
            for event in self._books.chain.events(self._connection):
                self._check(event)
                self._previous = event.hash
                self._done = event.number
            self._check_whole()
            self._check_rules()
            self._check_file()
        except _Wrong as wrong:
            return Finding(self._done, self._done + 1, str(wrong), self._previous)
        except LedgerError:  # the database failed; this says nothing about the record
            raise
        except Exception as error:  # noqa: BLE001 - tampered content may fail anywhere
            return Finding(
                self._done, self._done + 1, f"it cannot be read: {error!r}", self._previous
            )
        return Finding(self._done, head=self._previous, keyed=self._books.chain.key is not None)

    def _check(self, event: Event) -> None:
        if event.number != self._done + 1:
            raise _Wrong(f"event {self._done + 1} is missing; event {event.number} follows")
        if event.previous != self._previous:
            raise _Wrong("it does not carry the hash of the event before it")
        rows = self._rows(event)
        if not (self._locked or self._books.chain.fits(event, self._previous, rows)):
            problem = f"its hash does not fit its content ({event.kind}{_of_round(event)})"
            if event.number == 1 and self._books.chain.key is not None:
                problem = f"{self._books.key_name} holds another key than the run's, or {problem}"
            raise _Wrong(problem)
        self._check_redactable(event)
        self._sums.add(event, rows)
        if event.kind == "settled":
            self._settled = event
        if (
            self._receipt is not None
            and self._receipt.run == self._books.name
            and event.number == self._receipt.events
            and event.hash != self._receipt.head
        ):
            raise _Wrong("its hash is not the one on the receipt")

    def _rows(self, event: Event) -> Rows:
        """Return the amounts that the event's hash covers."""
        run = self._books.chain.run
        if event.kind == "opened":
            return self._fetch(schema.runs, ["total", "max_rounds"], id=run)[0]
        if event.kind == "awarded":
            found = self._fetch(
                schema.promises, ["rank", "client", "amount"], run=run, round=event.round
            )
            found.sort()
            if [row[0] for row in found] != list(range(len(found))):
                raise _Wrong("the ranks of its promises are not 0, 1, 2, ...")
            return [row[1:] for row in found]
        if event.kind == "settled":
            paid = self._fetch(
                schema.settlements, ["client", "paid", "reason"], run=run, round=event.round
            )
            balance = self._fetch(
                schema.closings,
                ["total", "spent_before", "paid", "spent_after"],
                run=run,
                round=event.round,
            )
            return [sorted(paid), *balance]
        if event.kind == "paid out" and event.round is not None:
            return paid_in(self._connection, run, json.loads(event.body)["first"], event.round)
        if event.kind in _ONE_ROW:
            found = self._fetch(*_ONE_ROW[event.kind], run=run, number=event.number)
            return found[0]
        return []

    def _fetch(self, table: sa.Table, columns: list[str], **where: Any) -> list[list[Any]]:
        found = fetch(self._connection, _query(table, tuple(columns), tuple(where)), **where)
        if table.name in self._seen:
            self._seen[table.name] += len(found)
        return list(map(list, found))

    def _check_redactable(self, event: Event) -> None:
        """Refuse bids or a menu that do not match their digest, or are missing but not dropped."""
        name = {"bids": "bids", "awarded": "menu"}.get(event.kind)
        if name is None:
            return
        run = self._books.chain.run
        found = self._fetch(
            schema.redactable, ["salt", "content"], run=run, round=event.round, part=name
        )
        if not found and not self._may_be_dropped(event):
            raise _Wrong(f"its {name}{_of_round(event)} are missing, though this ledger keeps them")
        if found and commitment(*found[0]) != json.loads(event.body)[name]:
            raise _Wrong(f"its {name}{_of_round(event)} do not fit their digest")

    def _may_be_dropped(self, event: Event) -> bool:
        """Return whether the run drops bids and the event's round is settled."""
        if _opening(self._books).get("retention") != "drop":
            return False
        query = _query(schema.closings, ("round",), ("run", "round"))
        asked = {"run": self._books.chain.run, "round": event.round}
        return bool(fetch(self._connection, query, **asked))

    def _check_rules(self) -> None:
        """Refuse a database whose triggers are not those of its version of the schema."""
        rules = RULES[schema_version(self._connection) or HEAD]
        if self._connection.dialect.name == "sqlite":
            expected = {(rule.table, rule.name): rule.sqlite for rule in rules}
            query = _TRIGGERS_SQLITE
        else:
            expected = {(rule.table, rule.name): f"O{rule.source}" for rule in rules}
            query = _TRIGGERS_POSTGRES
        found = {}
        for table, name, text in self._connection.exec_driver_sql(query.format(_OURS)):
            found[table, name] = text
        for table, name in sorted(expected.keys() | found.keys()):
            if found.get((table, name)) != expected.get((table, name)):
                raise _Wrong(
                    f"the trigger {name} on {table} is not as bara makes it: the database no "
                    "longer refuses what it should, or changes what is written"
                )

    def _check_file(self) -> None:
        """Refuse a damaged SQLite file, even if every row that was looked up is right.

        Only our own tables are checked: what a stranger's compute could take for ever.
        """
        if self._connection.dialect.name != "sqlite":
            return
        found = self._connection.exec_driver_sql(_DAMAGE.format(_OURS)).scalar()
        if found is not None:
            raise _Wrong(f"the file is damaged: {found}")

    def _check_whole(self) -> None:
        """Refuse a record that lacks events or has rows that belong to no event."""
        if not self._done:
            raise _Wrong("there is no event at all")
        if self._receipt is not None and self._receipt.run != self._books.name:
            raise _Wrong(
                f"the receipt is for run {self._receipt.run!r}, but this is {self._books.name!r}"
            )
        if self._receipt is not None and self._receipt.events > self._done:
            raise _Wrong(
                f"the receipt counts {counted(self._receipt.events, 'event')}, "
                f"the ledger has {self._done}: its tail is missing"
            )
        counts = fetch(self._connection, _counts(), run=self._books.chain.run)[0]
        for (name, seen), count in zip(self._seen.items(), counts, strict=True):
            if count != seen:
                raise _Wrong(f"there are rows among the {name} that belong to no event")
        self._check_corrections()
        self._check_memories()

    def _check_corrections(self) -> None:
        """Refuse corrections that take back more than was paid."""
        found = fetch(self._connection, _taken_back(), run=self._books.chain.run)
        if found:
            raise _Wrong(f"more is taken back from {found[0][0]!r} than it was ever paid")

    def _check_memories(self) -> None:
        """Refuse memories that do not match the digests in the last settlement."""
        run = self._books.chain.run
        rows = self._fetch(schema.memories, ["part", "round", "salt", "content"], run=run)
        expected = {}
        if self._settled is not None:
            digests = json.loads(self._settled.body).get("memories", {})
            expected = {part: (self._settled.round, digest) for part, digest in digests.items()}
        found = {part: (number, commitment(salt, text)) for part, number, salt, text in rows}
        if found != expected:
            raise _Wrong(
                "what allocator and mechanism had learned does not fit the last settlement's digest"
            )


def paid_in(connection: sa.Connection, run: int, first: int, last: int) -> Rows:
    """Return [round, client, amount] of every payment in rounds first .. last, sorted."""
    return sorted(map(list, fetch(connection, _paid(), run=run, first=first, last=last)))


class _Sums:
    """A run's money, added up event by event.

    Hashes alone prove nothing about a chain that somebody has rewritten from the start.
    """

    def __init__(self) -> None:
        self._budget = 0
        self._spent = 0
        self._round = -1  # the last settled round
        self._promised: dict[str, int] = {}  # the amounts of the open round, by client
        self._open: int | None = None  # the round that is promised but not settled
        self._refused: int | None = None  # the last round whose award an operator took back
        self._limit: int | None = None  # an award that costs more must be approved
        self._approved: int | None = None  # the last round that was approved
        self._approvals = 1  # how many people must approve an award that waits
        self._endorsed: tuple[int | None, str] = (None, "")  # the round that one of two approved
        self._later: dict[int, int] = {}  # corrections, by the round whose balance counts them
        self._returned: set[tuple[int, str]] = set()  # the transfers (batch, client) that came back
        self._transferred: set[tuple[int, str]] = set()  # ... and those that the bank has shown
        self._batches = 0  # the number of payout batches
        self._paid_out = 0  # the last round in a batch

    def add(self, event: Event, rows: Rows) -> None:
        """Refuse an event whose amounts do not follow from those before it."""
        match event.kind:
            case "opened":
                self._budget = rows[0]
                body = json.loads(event.body)
                self._limit = body.get("approve_above")
                self._approvals = body.get("approvals", 1)
            case "topped up":
                self._budget += sum(rows)
            case "awarded":
                self._promise(event, json.loads(event.body), dict(rows))
            case "settled":
                self._settle(event, *rows)
            case "corrected":
                self._correct(*rows)
            case "paid out":
                self._pay_out(event, json.loads(event.body))
            case "returned":
                self._return(json.loads(event.body))
            case "transferred":
                self._transfer(json.loads(event.body))
            case _:
                self._answer(event)

    def _answer(self, event: Event) -> None:
        """Follow what an operator answered to an award that waits."""
        if event.kind == "endorsed" and event.round is not None:
            self._endorsed = (event.round, json.loads(event.body)["by"])
        elif event.kind == "approved":
            self._approve(event, json.loads(event.body))
        elif event.kind in REFUSALS:
            if event.round != self._open:
                raise _Wrong(
                    f"round {event.round} is {event.kind}, "
                    "but was not promised, or is already settled"
                )
            self._refused = event.round

    def _approve(self, event: Event, body: dict[str, Any]) -> None:
        """Refuse an approval that is not the second person's where two must approve."""
        number, first = self._endorsed
        second = body.get("by", "")
        if self._approvals == 2 and (number != event.round or is_same_person(first, second)):
            raise _Wrong(f"round {event.round} is approved by one person; two must approve it")
        self._approved = event.round

    def _pay_out(self, event: Event, body: dict[str, Any]) -> None:
        last = body["last"] if event.round is None else event.round
        follows = body["batch"] == self._batches + 1 and body["first"] == self._paid_out + 1
        pays_rounds = body["first"] <= last <= self._round
        pays_others = event.round is None and last == self._paid_out  # corrections and returns
        if not follows or not (pays_rounds or pays_others):
            raise _Wrong(
                f"batch {body['batch']} does not begin where the one before it ended, "
                "or pays what is not settled"
            )
        self._batches = body["batch"]
        self._paid_out = last

    def _correct(self, number: int, client: str, counts_from: int, amount: int) -> None:
        """Refuse a correction that the balance cannot follow, or the budget cannot pay."""
        begins = self._round + 1
        if self._open is not None:
            begins += 1
        if counts_from != begins or not 0 < number <= self._round:
            raise _Wrong(
                f"it corrects what {client!r} was paid for round {number}, which is not settled, "
                f"or counts it from round {counts_from} and not {begins}"
            )
        self._later[begins] = self._later.get(begins, 0) + amount
        promised = sum(self._promised.values())
        if amount > 0 and self._spent + sum(self._later.values()) + promised > self._budget:
            raise _Wrong(f"its {amount} for {client!r} are more than what is left of the budget")

    def _transfer(self, body: dict[str, Any]) -> None:
        """Refuse a transfer that is said twice, or of a batch that was never made."""
        for batch, client, _ in body["transfers"]:
            if not 0 < batch <= self._batches or (batch, client) in self._transferred:
                raise _Wrong(
                    f"batch {batch} is said to be transferred to {client!r}, but was never made, "
                    "or was said to be before"
                )
            self._transferred.add((batch, client))

    def _return(self, body: dict[str, Any]) -> None:
        """Refuse a transfer that came back twice, or of a batch that was never made."""
        for client in body["clients"]:
            transfer = (body["batch"], client)
            if not 0 < body["batch"] <= self._batches or transfer in self._returned:
                raise _Wrong(
                    f"the transfer of batch {body['batch']} to {client!r} is said to have come "
                    "back, but was never made, or came back before"
                )
            self._returned.add(transfer)

    def _promise(self, event: Event, body: dict[str, Any], promises: dict[str, int]) -> None:
        if event.round != self._round + 1 or self._open is not None:
            raise _Wrong(
                f"round {event.round} is promised, but the last settled round is {self._round}"
            )
        self._spent += self._later.pop(event.round, 0)
        total, _, spent = body["purse"]
        if spent != self._spent or total > self._budget:
            raise _Wrong(
                f"it says that {spent} of {total} was spent before; "
                f"by the events it is {self._spent} of {self._budget}"
            )
        cost = sum(promises.values())
        offered = Offer(**body["offer"]).cap(len(promises))
        if cost > min(offered, total - spent):
            raise _Wrong(
                f"round {event.round} promises {cost}, "
                "more than its offer or what is left of the budget"
            )
        self._promised = promises
        self._open = event.round

    def _settle(self, event: Event, settlements: list[list[Any]], balance: list[int]) -> None:
        expected = self._open
        if self._round < 0:
            expected = 0  # the initial evaluation, for which nothing is promised
        if event.round != expected:
            raise _Wrong(f"round {event.round} is settled, but was not promised")
        paid = {client: amount for client, amount, _ in settlements}
        if paid.keys() != self._promised.keys():
            raise _Wrong(f"round {event.round} settles with other clients than it promised")
        for client, amount in paid.items():
            if amount not in (0, self._promised[client]):
                raise _Wrong(f"round {event.round} pays somebody another amount than it promised")
        above = self._limit is not None and sum(self._promised.values()) > self._limit
        if above and any(paid.values()) and event.round != self._approved:
            raise _Wrong(f"round {event.round} pays more than ledger.approve_above, unapproved")
        if event.round == self._refused and any(paid.values()):
            raise _Wrong(
                f"round {event.round} pays somebody, though the operator took its award back"
            )
        total, before, cost, after = balance
        if (
            before != self._spent
            or cost != sum(paid.values())
            or after != before + cost
            or after > total
            or total > self._budget
        ):
            raise _Wrong(f"the balance of round {event.round} does not add up")
        self._spent = after
        self._round += 1
        self._promised = {}
        self._open = None


@lru_cache
def _query(table: sa.Table, columns: tuple[str, ...], where: tuple[str, ...]) -> sa.Select[Any]:
    """Build a query once: it is executed for every event, and building takes longer than that."""
    selected = [table.c[name] for name in columns]
    conditions = [table.c[name] == sa.bindparam(name) for name in where]
    return sa.select(*selected).where(*conditions)


@lru_cache
def _paid() -> sa.Select[Any]:
    table = schema.settlements
    rounds = table.c.round.between(sa.bindparam("first"), sa.bindparam("last"))
    return sa.select(table.c.round, table.c.client, table.c.paid).where(
        table.c.run == sa.bindparam("run"), rounds, table.c.paid > 0
    )


@lru_cache
def _counts() -> sa.Select[Any]:
    """Count a run's rows in each table whose rows belong to events."""
    counts = []
    for name in _COUNTED:
        table = schema.metadata.tables[name]
        query = sa.select(sa.func.count()).select_from(table)
        counts.append(query.where(table.c.run == sa.bindparam("run")).scalar_subquery())
    return sa.select(*counts)


@lru_cache
def _taken_back() -> sa.Select[Any]:
    """Select the clients from whom corrections take more than a round has paid them."""
    table, paid = schema.corrections, schema.settlements
    same = (
        (paid.c.run == table.c.run)
        & (paid.c.round == table.c.round)
        & (paid.c.client == table.c.client)
    )
    return (
        sa.select(table.c.client)
        .join(paid, same)
        .where(table.c.run == sa.bindparam("run"))
        .group_by(table.c.round, table.c.client, paid.c.paid)
        .having(paid.c.paid + sa.func.sum(table.c.amount) < 0)
    )


_OURS = ", ".join(map(repr, schema.metadata.tables))
"""The names of our tables, as SQL quotes them."""

_TRIGGERS_SQLITE = """
SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'trigger' AND LOWER(tbl_name) IN ({})
"""

_TRIGGERS_POSTGRES = """
SELECT c.relname, t.tgname, CAST(t.tgenabled AS text) || p.prosrc
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND pg_table_is_visible(c.oid) AND c.relname IN ({})
"""

_DAMAGE = """
SELECT integrity_check FROM sqlite_master, pragma_integrity_check(sqlite_master.name)
WHERE type = 'table' AND name IN ({}) AND integrity_check <> 'ok'
"""
"""Finds what is wrong with tables of these names in a SQLite file."""

_COUNTED = ("promises", "settlements", "closings", "top_ups", "corrections", "sealed")
"""The tables in which every row belongs to an event."""


_ONE_ROW = {
    "topped up": (schema.top_ups, ["amount"]),
    "corrected": (schema.corrections, ["round", "client", "counts_from", "amount"]),
}
"""The table and the columns whose one row an event's hash covers, by the kind of the event."""


def _opening(books: Books) -> dict[str, Any]:
    """Return the body of the opening event; empty if it is unreadable, which the walk reports."""
    try:
        return books.opening
    except LedgerError:
        return {}


def _of_round(event: Event) -> str:
    if event.round is None:
        return ""
    return f" of round {event.round}"

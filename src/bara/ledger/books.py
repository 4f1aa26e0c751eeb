"""The books of one run: promises, stored before anyone trains, and settlements, stored afterwards.

Each is one durable commit.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self, final

import sqlalchemy as sa

from bara.errors import LedgerError, PausedError, WaitingError
from bara.faults import point
from bara.ledger import _schema as schema
from bara.ledger._events import (
    PAGE,
    START,
    Chain,
    Draft,
    Receipt,
    read_body,
    seal,
)
from bara.ledger._reading import (
    award_json,
    bodies_of,
    endorsement,
    is_paused,
    last_of,
    opened_json,
    read_award,
    read_record,
    settlement_json,
    spent_before,
    stored_page,
    topped_up,
)
from bara.ledger.store import Store, fetch, insert
from bara.mechanisms.client_cap import ClientCap
from bara.protocols import Mechanism
from bara.records import MAX_MONEY, AwardedRound, Delivery, Entry, Purse, Register, RoundRecord

_OPENED = ("retention", "approve_above")
"""Terms that are fixed when a run is opened; so are `approvals`, stored where they are two."""

_LAST_ROUND = sa.select(sa.func.max(schema.closings.c.round)).where(
    schema.closings.c.run == sa.bindparam("run")
)

_CORRECTED = (
    sa.select(schema.corrections.c.client, sa.func.sum(schema.corrections.c.amount))
    .where(
        schema.corrections.c.run == sa.bindparam("run"),
        schema.corrections.c.counts_from <= sa.bindparam("round"),
    )
    .group_by(schema.corrections.c.client)
)


@dataclass(frozen=True)
class Terms:
    """An operator's settings for the books of a run.

    Attributes:
        retention: Whether bids and menus stay (`keep`) or go when their round is settled (`drop`).
        approve_above: An award that costs more than this, in micro-units, waits for approval; None
            if none has to.
        approvals: How many different people, 1 or 2, must approve an award that waits.
        register: The known clients, with whom the run is opened; None to let everybody bid.
        receipt: The file to which a receipt is written after each round; None for no receipt.
        receipt_above: A batch of payouts above this, in micro-units, needs a receipt.
        key: The key that makes the chain's hashes HMACs, which is never stored; None for no key.
        notify: A command or URL to call when something needs a person; None for no notification.
    """

    retention: Literal["keep", "drop"] = "keep"
    approve_above: int | None = None
    approvals: Literal[1, 2] = 1
    register: Register | None = None
    receipt: Path | None = None
    key: bytes | None = None
    notify: str | None = None
    receipt_above: int = MAX_MONEY


@final
class Books:
    """The books of one run in a store. Use `open` for a new run and `find` for an existing one."""

    def __init__(self, store: Store, run: int, name: str, terms: Terms) -> None:
        self.store = store
        self.name = name
        self.terms = terms
        self.address = "DIR"
        """How messages name the run in commands: the DIR of `bara ledger DIR ...`."""
        self.chain = Chain(run, name, terms.key)
        self._promised: int | None = None  # the round whose promise is known to be stored
        self._refused: Mapping[str, str] = {}  # why, by client, an operator refused that promise

    @classmethod
    def open(
        cls,
        store: Store,
        name: str,
        config: Mapping[str, Any],
        purse: Purse,
        terms: Terms | None = None,
    ) -> Self:
        """Open the books of a new run.

        Args:
            store: The database.
            name: The run's name, which must be new to the database.
            config: The whole configuration, which is stored.
            purse: The budget and the number of rounds.
            terms: The operator's settings; None for the defaults.
        """
        terms = terms or Terms()
        with store.write() as connection:
            last_run = connection.scalar(sa.select(sa.func.max(schema.runs.c.id)))
            run = int(last_run or 0) + 1
            insert(connection, schema.runs, [(run, name, purse.total, purse.max_rounds)])
            books = cls(store, run, name, terms)
            if terms.receipt is not None and not terms.receipt.exists():
                books.begin_receipt()  # before the first event: from now on it is never missing
            books.check_receipt()
            body = {
                "config": config,
                "keyed": terms.key is not None,
                "place": store.identity(),
            }
            for term in _OPENED:
                body[term] = getattr(terms, term)
            if terms.approvals == 2:
                body["approvals"] = 2
            if terms.register is not None:
                body["register"] = {client: vars(one) for client, one in terms.register.items()}
            if purse.currency:
                body["currency"] = purse.currency
            rows = [purse.total, purse.max_rounds]
            books.chain.append(connection, Draft("opened", None, body, rows))
            point("opening")
        point("opened")
        return books

    @classmethod
    def find(cls, store: Store, name: str | None = None, terms: Terms | None = None) -> Self | None:
        """Find the books of a run; None if the store does not hold the run.

        Args:
            store: The database.
            name: The run's name; None for the only run of the store.
            terms: The operator's settings. Retention and approval limit are ignored: those the run
                was opened with apply.
        """
        with store.read() as connection:
            found = connection.execute(sa.select(schema.runs.c.id, schema.runs.c.name)).all()
        chosen = [run for run in found if name is None or run.name == name]
        if len(chosen) > 1:
            raise LedgerError(f"{store.place} holds {len(chosen)} runs; say which one (--run)")
        if not chosen:
            return None
        books = cls(store, chosen[0].id, chosen[0].name, terms or Terms())
        with contextlib.suppress(LedgerError):  # `verify` reports an unreadable opening
            opened = {"approvals": books.opening.get("approvals", 1)}
            for term in _OPENED:
                if term in books.opening:
                    opened[term] = books.opening[term]
            books.terms = replace(books.terms, **opened)
        if books.terms.retention == "drop":
            store.empty_log()  # a process that was killed may have left dropped bids in it
        return books

    # --- reading ---------------------------------------------------------------------------------

    @cached_property
    def opening(self) -> dict[str, Any]:
        """The body of the opening event: configuration, terms, place, whether there is a key."""
        with self.store.read() as connection:
            body = last_of(connection, self.chain.run, "opened")
        if body is None:
            raise LedgerError(
                f"run {self.name!r} in {self.store.place} has no opening event; "
                "see `bara ledger DIR verify`"
            )
        return read_body(body)

    @property
    def keeps_bids(self) -> bool:
        """True if bids and menus stay in the ledger, and so may be shown."""
        return self.opening.get("retention") == "keep"

    @cached_property
    def purse(self) -> Purse:
        """The purse that the run was opened with, without later top-ups."""
        with self.store.read() as connection:
            row = connection.execute(
                sa.select(schema.runs).where(schema.runs.c.id == self.chain.run)
            ).one()
        with contextlib.suppress(LedgerError):  # `verify` reports an unreadable opening
            return Purse(row.total, row.max_rounds, currency=self.opening.get("currency"))
        return Purse(row.total, row.max_rounds)

    def first_hash(self) -> str:
        """Return the hash of the first event, which identifies the record."""
        with self.store.read() as connection:
            return self.chain.hash_of(connection, 1) or ""

    def history(self, begin: int = 0) -> Iterator[RoundRecord]:
        """Yield every settled round from `begin` on.

        Each page is read from a snapshot of its own: the caller may train for hours in between.
        """
        for first in count(begin, PAGE):
            with self.store.read() as connection:
                page = stored_page(connection, self.chain.run, first, first + PAGE - 1)
            for number, stored in page:
                if stored.settled is not None:
                    yield read_record(number, stored, self.purse)
            if len(page) < PAGE:
                return

    def promises(
        self, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[AwardedRound | None, RoundRecord | None]]:
        """Yield each round as promised and as settled.

        The promise is None for round 0, and complete even where an operator took it back; the
        settlement is None for an unsettled round.

        Args:
            first: The first round.
            last: The last round; None for all that follow.
        """
        for start in count(first, PAGE):
            end = start + PAGE - 1
            if last is not None:
                end = min(end, last)
            with self.store.read() as connection:
                page = stored_page(connection, self.chain.run, start, end)
            for number, stored in page:
                awarded = None
                if stored.promised:
                    not_refused = replace(stored, refused=None)
                    awarded = read_award(number, not_refused, self.purse.currency)
                record = None
                if stored.settled is not None:
                    record = read_record(number, stored, self.purse)
                yield awarded, record
            if len(page) < PAGE or end == last:
                return

    def promise(self, number: int) -> AwardedRound | None:
        """Return what was promised in a round, even if it was taken back; None if nothing was."""
        for awarded, _ in self.promises(number, number):
            return awarded
        return None

    def last_round(self) -> int:
        """Return the last settled round; -1 before the initial evaluation."""
        with self.store.read() as connection:
            ((found,),) = fetch(connection, _LAST_ROUND, run=self.chain.run)
        return -1 if found is None else int(found)

    def delivery(self, number: int) -> Delivery | None:
        """Return what was delivered in a round; None if the round is not settled."""
        for _, record in self.promises(number, number):
            if record is not None:
                return record.delivery
        return None

    def awarded(self) -> AwardedRound | None:
        """Return the promise that is not settled yet, if any; a refused one has no winners."""
        number = self.last_round() + 1
        with self.store.read() as connection:
            page = stored_page(connection, self.chain.run, number, number)
        if not page:
            return None
        _, stored = page[0]
        if stored.promised is None:
            return None
        self._promised = number
        self._refused = {}
        if stored.refused:
            self._refused = {client: stored.refused for client, _ in stored.promises}
        return read_award(number, stored, self.purse.currency)

    def ended(self) -> str | None:
        """Return why the run ended; None for a run that has not."""
        with self.store.read() as connection:
            body = last_of(connection, self.chain.run, "closed")
        if body is None:
            return None
        return str(read_body(body).get("ended"))

    def is_untouched(self) -> bool:
        """Return whether nobody was ever promised anything, and no operator changed the run."""
        events = schema.events
        kinds = sa.select(events.c.kind).where(events.c.run == self.chain.run)
        promises = schema.promises
        promised = sa.select(promises.c.client).where(promises.c.run == self.chain.run).limit(1)
        with self.store.read() as connection:
            found = set(connection.execute(kinds).scalars())
            if connection.execute(promised).first() is not None:
                return False
        return found <= {
            "opened",
            "adopted",
            "paused",
            "continued",
            "notified",
            "bids",
            "awarded",
            "settled",
            "closed",
        }

    def forgotten(self) -> list[tuple[str, int]]:
        """Return each client that an operator had forgotten, and the first round without it."""
        found = []
        for text in self.bodies("forgotten"):
            body = json.loads(text)
            found.append((body["client"], body["round"]))
        return found

    def registered(self, round_number: int) -> Register | None:
        """Return the clients that are known in a round; None for a run that knows everybody."""
        opened = self.opening.get("register")
        if opened is None:
            return None
        known = {client: Entry(**entry) for client, entry in opened.items()}
        for text in self.bodies("registered", "struck off"):
            body = json.loads(text)
            if body["round"] > round_number:
                continue
            if "entry" in body:
                known[body["client"]] = Entry(**body["entry"])
            else:
                known.pop(body["client"], None)
        return known

    def guide(self, mechanism: Mechanism) -> None:
        """Let a mechanism follow what operators change during the run, if it depends on that."""

        def known(round_number: int) -> tuple[Register | None, Mapping[str, int]]:
            return self.registered(round_number), self.corrected(round_number)

        if isinstance(mechanism, ClientCap):
            mechanism.follow(known)  # a function: a copy of the mechanism must not copy the books

    def bodies(self, *kinds: str) -> list[str]:
        """Return the bodies of all events of these kinds, in order, as stored JSON."""
        with self.store.read() as connection:
            rows = fetch(connection, bodies_of(kinds), run=self.chain.run)
        return [body for (body,) in rows]

    def memory(self, part: str) -> Any:
        """Return the memory last stored for an allocator or mechanism; None if there is none."""
        table = schema.memories
        with self.store.read() as connection:
            text = connection.scalar(
                sa.select(table.c.content).where(
                    table.c.run == self.chain.run, table.c.part == part
                )
            )
        if text is None:
            return None
        return json.loads(text)

    def committed_checkpoint(self, round: int) -> str | None:
        """Return the digest of the checkpoint saved with a settled round; None if there is none."""
        with self.store.read() as connection:
            body = last_of(connection, self.chain.run, "settled", round_number=round)
        if body is None:
            return None
        checkpoint: str | None = json.loads(body).get("checkpoint")
        return checkpoint

    def receipt(self) -> Receipt:
        """Return a receipt for the ledger as it is now."""
        with self.store.read() as connection:
            return Receipt(self.name, *self.chain.head(connection))

    # --- writing ---------------------------------------------------------------------------------

    def record(
        self,
        step: AwardedRound | RoundRecord,
        memories: Mapping[str, Any] = MappingProxyType({}),
        checkpoint: str | None = None,
    ) -> None:
        """Store a step of a round: first its promise, later its settlement.

        A promise that needs an operator's approval stops the run until it is answered.

        Args:
            step: The round, awarded or settled.
            memories: With a settlement under `drop`: what allocator and mechanism have learned.
            checkpoint: With a settlement: the digest of the checkpoint that resumes the run.
        """
        self.check_receipt()
        if isinstance(step, RoundRecord):
            self._settle(step, memories, checkpoint)
            self.write_receipt()
            return
        if self._promised != step.purse.round:  # else it is stored already
            self._promise(step)
        self._wait_for_approval(step)

    def close(self, ended: str) -> None:
        """Store why the run ended, unless that is stored already."""
        if self.ended() is None:
            self.check_receipt()
            with self.store.write() as connection:
                self.chain.append(connection, Draft("closed", None, {"ended": ended}))
                point("closing")
            point("closed")
        self.write_receipt()

    def note_notified(self, key: str) -> None:
        """Store that the attention with this key reached somebody."""
        with self.store.write() as connection:
            self.chain.append(connection, Draft("notified", None, {"what": key}))

    def before_round(self, purse: Purse) -> Purse:
        """Return the purse with top-ups and corrections; stop if an operator has paused the run."""
        with self.store.read() as connection:
            total = self.purse.total + topped_up(connection, self.chain.run)
            paused = is_paused(connection, self.chain.run)
            spent = spent_before(connection, self.chain.run, purse.round)
        if paused:
            raise PausedError(f"paused by the operator before round {purse.round}")
        return replace(purse, total=total, spent=spent)

    def corrected(self, round_number: int) -> Mapping[str, int]:
        """Return by how much each client's payments were corrected, as known in a round."""
        with self.store.read() as connection:
            rows = fetch(connection, _CORRECTED, run=self.chain.run, round=round_number)
        return {client: int(amount) for client, amount in rows}

    @property
    def key_name(self) -> str:
        """The words that name the place of the run's key: an environment variable, if known."""
        name = None
        with contextlib.suppress(LedgerError, AttributeError):  # an unreadable or foreign opening
            name = self.opening.get("config", {}).get("ledger", {}).get("key")
        if not name:
            return "the environment variable that ledger.key names"
        return f"the environment variable {name} (ledger.key)"

    def check_key(self) -> None:
        """Refuse a key that is not the run's: an event hashed with it would break the chain."""
        with self.store.read() as connection:
            first = self.chain.first(connection)
        rows = [self.purse.total, self.purse.max_rounds]
        if self.chain.key is None and first is not None and self.opening.get("keyed"):
            raise LedgerError(
                f"run {self.name!r} was opened with a key, and none is set; "
                f"set {self.key_name}. Nothing was done"
            )
        if first is None or not self.chain.fits(first, START, rows):
            raise LedgerError(
                f"the key in {self.key_name} is not the one that run {self.name!r} was opened "
                "with: its first event does not fit. Use that key. Nothing was done"
            )

    def write_receipt(self) -> None:
        """Write the receipt to its file, if the terms name one."""
        self.check_receipt()
        if self.terms.receipt is not None:
            with self.store.write() as connection:  # else a slow writer could put back an older one
                Receipt(self.name, *self.chain.head(connection)).write(self.terms.receipt)
            point("receipt written")

    def begin_receipt(self) -> None:
        """Write a first receipt, or one in place of a lost one; refuse to replace any."""
        path = self.terms.receipt
        if path is None:
            raise LedgerError(
                f"run {self.name!r} has no receipt to begin; name a file in ledger.receipt"
            )
        if path.exists():
            raise LedgerError(
                f"the receipt {path} is there; it goes on, and none is begun: leave out "
                "--new-receipt"
            )
        self.receipt().write(path)

    def stored_receipt(self) -> Receipt | None:
        """Read the receipt that the terms name; None if they name none.

        Another run's is refused, and a missing one: without it an older state of the record would
        look whole, and be paid once more.
        """
        path = self.terms.receipt
        if path is None:
            return None
        if not path.exists():
            raise LedgerError(
                f"the receipt {path} is missing, so nobody can tell whether events are, too; "
                "restore it, or, if it is lost for good and this record is certainly the newest, "
                f"begin another with `bara ledger {self.address} adopt --new-receipt --reason TEXT`"
            )
        receipt = Receipt.read(path)
        if receipt.run != self.name:
            raise LedgerError(
                f"the receipt {path} belongs to run {receipt.run!r}; name another file for run "
                f"{self.name!r} in ledger.receipt"
            )
        return receipt

    def check_receipt(self) -> None:
        """Refuse to go on if the receipt in its file is missing or does not match this record."""
        before = self.stored_receipt()
        if before is None:
            return
        with self.store.read() as connection:
            known = self.chain.hash_of(connection, before.events)
        if known != before.head:
            raise LedgerError(
                f"the receipt {self.terms.receipt} does not match this record: a copy of the run "
                "goes on elsewhere, or events were removed here; stop the copy, or restore this "
                "record, before anything is paid twice"
            )

    def _promise(self, awarded: AwardedRound) -> None:
        award, number, run = awarded.award, awarded.purse.round, self.chain.run
        promises = list(zip(award.clients, award.payments, strict=True))
        point("bids opened")
        with self.store.write() as connection:
            sealed, digests = seal({"bids": opened_json(awarded), "menu": awarded.costs.tolist()})
            redactable = [(run, number, part, salt, text) for part, salt, text in sealed]
            insert(connection, schema.redactable, redactable)
            rows = []
            for rank, (client, amount) in enumerate(promises):
                rows.append((run, number, client, rank, amount))
            insert(connection, schema.promises, rows)
            body = {**award_json(awarded), "menu": digests["menu"]}
            self.chain.append(
                connection,
                Draft("bids", number, {"bids": digests["bids"]}),
                Draft("awarded", number, body, promises),
            )
            point("promising")
        self._promised = number
        point("promised")

    def _settle(
        self, record: RoundRecord, memories: Mapping[str, Any], checkpoint: str | None
    ) -> None:
        run = self.chain.run
        number = record.round
        purse = record.awarded.purse
        payments = record.payments
        void = {**record.delivery.void, **self._refused}
        winners = sorted([*record.awarded.award.clients, *self._refused])
        rows = [(client, payments.get(client, 0), void.get(client)) for client in winners]
        paid = sum(payments.values())
        balance = (purse.total, purse.spent, paid, purse.spent + paid)
        with self.store.write() as connection:
            insert(connection, schema.settlements, [(run, number, *row) for row in rows])
            insert(connection, schema.closings, [(run, number, *balance)])
            body = settlement_json(record)
            if self.terms.retention == "drop":
                body["memories"] = self._drop(connection, number, memories)
            if checkpoint:
                body["checkpoint"] = checkpoint
            self.chain.append(connection, Draft("settled", number, body, [rows, balance]))
            point("settling")
        self._refused = {}
        point("settled")
        if self.terms.retention == "drop":
            self.store.empty_log()

    def _drop(
        self, connection: sa.Connection, number: int, memories: Mapping[str, Any]
    ) -> dict[str, str]:
        """Delete a round's bids and menu, replace the memories, and return their digests."""
        run = self.chain.run
        table = schema.redactable
        connection.execute(sa.delete(table).where(table.c.run == run, table.c.round == number))
        connection.execute(sa.delete(schema.memories).where(schema.memories.c.run == run))
        sealed, digests = seal(memories)
        rows = [(run, part, number, salt, text) for part, salt, text in sealed]
        insert(connection, schema.memories, rows)
        return digests

    def _wait_for_approval(self, awarded: AwardedRound) -> None:
        """Stop the run at a promise that needs approval, unless it has been approved."""
        number = awarded.purse.round
        cost = awarded.award.cost
        asks = awarded.offer.asks
        limit = self.terms.approve_above
        above = limit is not None and cost > limit
        if not above and not (asks and cost):
            return
        with self.store.read() as connection:
            approved = last_of(connection, self.chain.run, "approved", round_number=number)
            first = endorsement(connection, self.chain.run, number)
        if approved is not None:
            return
        why = f"round {number} promises {self.purse.show(cost)}"
        if above:
            why += f", above ledger.approve_above = {self.purse.show(limit or 0)}"
        if asks:
            why = f"{asks}; {why}"
        if first is not None:
            why = f"{first} has approved, and a second person must, too: {why}"
        raise WaitingError(
            f"{why}: it waits for `bara ledger {self.address} approve {number} --reason TEXT` or "
            f"`decline {number} --reason TEXT`"
        )

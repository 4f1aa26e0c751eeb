"""One run's books: the promise is stored before anyone trains, the settlement after, each in one durable commit."""

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
    canonical,
    commitment,
    new_salt,
    read_body,
    store_redactable,
)
from bara.ledger._reading import (
    award_json,
    bids_json,
    is_paused,
    last_of,
    read_award,
    read_record,
    settlement_json,
    stored_page,
    topped_up,
)
from bara.ledger.store import Store, insert
from bara.records import AwardedRound, Purse, RoundRecord

_OPENED = ("retention", "approve_above")
"""Terms that are agreed when a run is opened and stay."""


@dataclass(frozen=True)
class Terms:
    """How an operator wants a run's books kept.

    Attributes:
        retention: Whether bids and menus stay (`keep`) or go when their round is settled (`drop`).
        approve_above: An award that costs more, in micro-units, waits for approval; None for no
            such step.
        receipt: Where a receipt is written after each round; None for nowhere.
        key: Makes the chain an HMAC; it is never stored.
        notify: A command or URL that is told what needs a person; None for nobody.
    """

    retention: Literal["keep", "drop"] = "keep"
    approve_above: int | None = None
    receipt: Path | None = None
    key: bytes | None = None
    notify: str | None = None


@final
class Books:
    """One run in a store. Use `open` for a new run and `find` for one that is there."""

    def __init__(self, store: Store, run: int, name: str, terms: Terms) -> None:
        self.store = store
        self.name = name
        self.terms = terms
        self.address = "DIR"
        """What stands for the run in `bara ledger DIR ...`, as messages say it."""
        self.chain = Chain(run, name, terms.key)
        self._promised: int | None = None  # the round whose promise is known to be stored
        self._refused: Mapping[
            str, str
        ] = {}  # whom an operator would not have in that round, and why

    @classmethod
    def open(
        cls,
        store: Store,
        name: str,
        config: Mapping[str, Any],
        purse: Purse,
        terms: Terms | None = None,
    ) -> Self:
        """Open the books of a new run: its budget, its deadline, its whole configuration."""
        terms = terms or Terms()
        with store.write() as connection:
            run = (
                int(
                    connection.scalar(sa.select(sa.func.coalesce(sa.func.max(schema.runs.c.id), 0)))
                    or 0
                )
                + 1
            )
            insert(connection, schema.runs, [(run, name, purse.total, purse.max_rounds)])
            books = cls(store, run, name, terms)
            kept = {term: getattr(terms, term) for term in _OPENED}
            body = {
                "config": config,
                "keyed": terms.key is not None,
                "place": store.identity(),
                **kept,
            }
            body |= {"currency": purse.currency} if purse.currency else {}
            books.chain.append(
                connection, Draft("opened", None, body, [purse.total, purse.max_rounds])
            )
            point("opening")
        point("opened")
        return books

    @classmethod
    def find(cls, store: Store, name: str | None = None, terms: Terms | None = None) -> Self | None:
        """The books of a run by its name, or of the only run there is; None where there is none.

        Key and receipt are the caller's; the other terms are those the run was opened with,
        whatever the caller says.
        """
        with store.read() as connection:
            found = connection.execute(sa.select(schema.runs.c.id, schema.runs.c.name)).all()
        chosen = [run for run in found if name is None or run.name == name]
        if len(chosen) > 1:
            raise LedgerError(f"{store.place} holds {len(chosen)} runs; say which one (--run)")
        if not chosen:
            return None
        books = cls(store, chosen[0].id, chosen[0].name, terms or Terms())
        with contextlib.suppress(
            LedgerError
        ):  # an opening that cannot be read is for `verify` to find
            opened = {term: books.opening[term] for term in _OPENED if term in books.opening}
            books.terms = replace(books.terms, **opened)
        return books

    # --- reading ---------------------------------------------------------------------------------

    @cached_property
    def opening(self) -> dict[str, Any]:
        """What the run was opened with: its configuration, whether the chain has a key, what is kept."""
        with self.store.read() as connection:
            body = last_of(connection, self.chain.run, "opened")
        if body is None:
            raise LedgerError(
                f"run {self.name!r} in {self.store.place} has no opening event; see `bara ledger DIR verify`"
            )
        return read_body(body)

    @property
    def keeps_bids(self) -> bool:
        """Whether bids and menus stay, and so may be seen once they are opened."""
        return self.opening.get("retention") == "keep"

    @cached_property
    def purse(self) -> Purse:
        """The purse the run was opened with."""
        with self.store.read() as connection:
            row = connection.execute(
                sa.select(schema.runs).where(schema.runs.c.id == self.chain.run)
            ).one()
        with contextlib.suppress(
            LedgerError
        ):  # an opening that cannot be read is for `verify` to find
            return Purse(row.total, row.max_rounds, currency=self.opening.get("currency"))
        return Purse(row.total, row.max_rounds)

    def first_hash(self) -> str:
        """How the record begins, by which it is told from any other."""
        with self.store.read() as connection:
            return self.chain.hash_of(connection, 1) or ""

    def history(self, begin: int = 0) -> Iterator[RoundRecord]:
        """Every settled round, as it was. Each page is a look of its own: between two, somebody may train for hours."""
        for first in count(begin, PAGE):
            with self.store.read() as connection:
                page = stored_page(connection, self.chain.run, first, first + PAGE - 1)
            yield from (
                read_record(number, one, self.purse)
                for number, one in page
                if one.settled is not None
            )
            if len(page) < PAGE:
                return

    def promises(
        self, first: int = 0, last: int | None = None
    ) -> Iterator[tuple[AwardedRound | None, RoundRecord | None]]:
        """Each round as it was promised, also where it was taken back, and as it was settled; 0 has no promise."""
        for start in count(first, PAGE):
            end = start + PAGE - 1 if last is None else min(start + PAGE - 1, last)
            with self.store.read() as connection:
                page = stored_page(connection, self.chain.run, start, end)
            for number, one in page:
                made = (
                    read_award(number, replace(one, refused=None), self.purse.currency)
                    if one.promised
                    else None
                )
                yield made, None if one.settled is None else read_record(number, one, self.purse)
            if len(page) < PAGE or end == last:
                return

    def last_round(self) -> int:
        """The last settled round; -1 before the initial evaluation."""
        last = sa.select(sa.func.max(schema.closings.c.round)).where(
            schema.closings.c.run == self.chain.run
        )
        with self.store.read() as connection:
            found = connection.scalar(last)
        return -1 if found is None else int(found)

    def awarded(self) -> AwardedRound | None:
        """The promise that is stored but not settled, if there is one; without winners where it was refused."""
        number = self.last_round() + 1
        with self.store.read() as connection:
            page = stored_page(connection, self.chain.run, number, number)
        if not page or page[0][1].promised is None:
            return None
        stored = page[0][1]
        self._promised = number
        self._refused = {client: stored.refused for client, _ in stored.promises if stored.refused}
        return read_award(number, stored, self.purse.currency)

    def ended(self) -> str | None:
        """Why the run ended, once it has."""
        with self.store.read() as connection:
            body = last_of(connection, self.chain.run, "closed")
        return None if body is None else str(read_body(body).get("ended"))

    def is_untouched(self) -> bool:
        """Whether nothing but the initial model is in them: no promise, no money that an operator added."""
        table = schema.events
        query = sa.select(table.c.kind, table.c.round).where(table.c.run == self.chain.run)
        with self.store.read() as connection:
            kinds = {(kind, number) for kind, number in connection.execute(query)}
        between = {
            (kind, None) for kind in ("opened", "adopted", "paused", "continued", "notified")
        }
        return kinds <= {("settled", 0), *between}

    def forgotten(self) -> list[tuple[str, int]]:
        """Whom an operator had forgotten, each with the round before which it was."""
        return [
            (body["client"], body["round"]) for body in map(json.loads, self.bodies("forgotten"))
        ]

    def bodies(self, kind: str) -> list[str]:
        """What the events of a kind say, as it is stored, in their order."""
        table = schema.events
        query = sa.select(table.c.body).where(table.c.run == self.chain.run, table.c.kind == kind)
        with self.store.read() as connection:
            return list(connection.scalars(query.order_by(table.c.number)))

    def memory(self, part: str) -> Any:
        """What was last stored as the knowledge of that part, or None."""
        table = schema.memories
        with self.store.read() as connection:
            text = connection.scalar(
                sa.select(table.c.content).where(
                    table.c.run == self.chain.run, table.c.part == part
                )
            )
        return None if text is None else json.loads(text)

    def committed_checkpoint(self, round: int) -> str | None:
        """The digest of the checkpoint that a settled round was saved in, where it was."""
        with self.store.read() as connection:
            body = last_of(connection, self.chain.run, "settled", round_number=round)
        return None if body is None else json.loads(body).get("checkpoint")

    def receipt(self) -> Receipt:
        """How far the ledger goes now."""
        with self.store.read() as connection:
            return Receipt(self.name, *self.chain.head(connection))

    # --- writing ---------------------------------------------------------------------------------

    def record(
        self,
        step: AwardedRound | RoundRecord,
        memories: Mapping[str, Any] = MappingProxyType({}),
        checkpoint: str | None = None,
    ) -> None:
        """Store a round as the market hands it out: the promise, then the settlement.

        Args:
            step: The round, awarded or settled.
            memories: Under `drop`, with a settlement: what allocator and mechanism have learned, by
                part.
            checkpoint: With a settlement: the digest of what the run would go on from.
        """
        self.check_receipt()
        if isinstance(step, RoundRecord):
            self._settle(step, memories, checkpoint)
            self.write_receipt()
            return
        if self._promised != step.purse.round:  # otherwise an earlier session has stored it
            self._promise(step)
        self._wait_for_approval(step)

    def close(self, ended: str) -> None:
        """Write down why the run ended, once."""
        if self.ended() is not None:
            return
        with self.store.write() as connection:
            self.chain.append(connection, Draft("closed", None, {"ended": ended}))
            point("closing")
        point("closed")
        self.write_receipt()

    def note_notified(self, key: str) -> None:
        """Write down that somebody was told of this."""
        with self.store.write() as connection:
            self.chain.append(connection, Draft("notified", None, {"what": key}))

    def before_round(self, purse: Purse) -> Purse:
        """The purse with whatever was added to it since; stops the run if an operator has paused it."""
        with self.store.read() as connection:
            total = self.purse.total + topped_up(connection, self.chain.run)
            paused = is_paused(connection, self.chain.run)
        if paused:
            raise PausedError(f"paused by the operator before round {purse.round}")
        return replace(purse, total=total)

    def check_key(self) -> None:
        """Refuse a key other than the run's: an event that is appended with it would break the chain for ever."""
        with self.store.read() as connection:
            first = next(self.chain.events(connection), None)
        rows = [self.purse.total, self.purse.max_rounds]
        if self.chain.key is None and first is not None and self.opening.get("keyed"):
            raise LedgerError(
                f"run {self.name!r} was opened with a key, and none is set; set the environment variable that "
                "ledger.key names. Nothing was done"
            )
        if first is None or not self.chain.fits(first, START, rows):
            raise LedgerError(
                f"the first event of run {self.name!r} does not fit the key in ledger.key; use the key that the run "
                "was opened with. Nothing was done"
            )

    def write_receipt(self) -> None:
        """Write the receipt to its second place, if it has one."""
        self.check_receipt()
        if self.terms.receipt is not None:
            self.receipt().write(self.terms.receipt)
            point("receipt written")

    def check_receipt(self) -> None:
        """Refuse to go on from a record that the receipt in the second place is not of, before anything is stored."""
        path = self.terms.receipt
        if path is None or not path.exists():
            return
        before = Receipt.read(path)
        with self.store.read() as connection:
            known = self.chain.hash_of(connection, before.events)
        if before.run != self.name or known != before.head:
            raise LedgerError(
                f"the receipt {path} does not match this record: a copy of the run goes on elsewhere, or events were "
                "removed here; stop the copy, or restore this record, before anything is paid twice"
            )

    def _promise(self, awarded: AwardedRound) -> None:
        award, number, run = awarded.award, awarded.purse.round, self.chain.run
        promises = list(zip(award.clients, award.payments, strict=True))
        point("bids opened")
        with self.store.write() as connection:
            parts = {"bids": bids_json(awarded.bids), "menu": awarded.costs.tolist()}
            digests = store_redactable(connection, run, number, parts)
            rows = [
                (run, number, client, rank, amount)
                for rank, (client, amount) in enumerate(promises)
            ]
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
        run, number, purse, payments = (
            self.chain.run,
            record.round,
            record.awarded.purse,
            record.payments,
        )
        void = {**record.delivery.void, **self._refused}
        winners = sorted([*record.awarded.award.clients, *self._refused])
        rows = [(client, payments.get(client, 0), void.get(client)) for client in winners]
        paid = sum(payments.values())
        balance = (purse.total, purse.spent, paid, purse.spent + paid)
        with self.store.write() as connection:
            insert(connection, schema.settlements, [(run, number, *row) for row in rows])
            insert(connection, schema.closings, [(run, number, *balance)])
            memory = (
                self._drop(connection, number, memories) if self.terms.retention == "drop" else {}
            )
            body = {
                **settlement_json(record),
                **memory,
                **({"checkpoint": checkpoint} if checkpoint else {}),
            }
            self.chain.append(connection, Draft("settled", number, body, [rows, balance]))
            point("settling")
        self._refused = {}
        point("settled")

    def _drop(
        self, connection: sa.Connection, number: int, memories: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Remove what may not stay, and store what was learned from it; returns the digests the event commits to."""
        run, table = self.chain.run, schema.redactable
        connection.execute(sa.delete(table).where(table.c.run == run, table.c.round == number))
        connection.execute(sa.delete(schema.memories).where(schema.memories.c.run == run))
        rows = [(run, part, number, new_salt(), canonical(tree)) for part, tree in memories.items()]
        insert(connection, schema.memories, rows)
        return {"memories": {part: commitment(salt, text) for _, part, _, salt, text in rows}}

    def _wait_for_approval(self, awarded: AwardedRound) -> None:
        most, cost, number = self.terms.approve_above, awarded.award.cost, awarded.purse.round
        above = most is not None and cost > most
        if not (above or (awarded.offer.asks and cost)):
            return
        with self.store.read() as connection:
            approved = last_of(connection, self.chain.run, "approved", round_number=number)
        if approved is None:
            limit = f", above ledger.approve_above = {self.purse.show(most or 0)}" if above else ""
            why = f"{awarded.offer.asks}; " if awarded.offer.asks else ""
            raise WaitingError(
                f"{why}round {number} promises {self.purse.show(cost)}{limit}: it waits for `bara ledger "
                f"{self.address} approve {number}` or `decline {number}`"
            )

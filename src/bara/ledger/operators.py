"""What an operator may do to a run, while it goes on or between sittings; each is an event of its chain."""

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger import schema
from bara.ledger.books import Books
from bara.ledger.events import Draft
from bara.ledger.reading import last_of
from bara.ledger.store import insert
from bara.records import show_money


def top_up(books: Books, amount: int) -> None:
    """Add to the budget; the next round's offer is made with it."""
    if amount <= 0:
        raise LedgerError(f"a top-up of {show_money(amount)}; required is more than zero")
    with books.store.write() as connection:
        _refuse_ended(books, connection, "topped up")
        number = books.chain.append(connection, Draft("topped up", rows=[amount]))
        insert(connection, schema.top_ups, [(books.chain.run, number, amount)])
    books.write_receipt()


def pause(books: Books) -> None:
    """Stop the run before its next round."""
    with books.store.write() as connection:
        _refuse_ended(books, connection, "paused")
        if _is_paused(books, connection):
            raise LedgerError(f"run {books.name!r} is paused already; `bara resume` continues it")
        books.chain.append(connection, Draft("paused"))
    books.write_receipt()


def go_on(books: Books) -> None:
    """Let a paused run go on; nothing happens to one that is not paused."""
    with books.store.write() as connection:
        if not _is_paused(books, connection):
            return
        books.chain.append(connection, Draft("continued"))
    books.write_receipt()


def approve(books: Books, round_number: int) -> None:
    """Allow a stored award that costs more than may be promised without asking; it is trained as promised."""
    _answer(books, round_number, "approved")


def decline(books: Books, round_number: int) -> None:
    """Refuse such an award: nobody trains in that round, nobody is paid, and no client is held to have failed."""
    _answer(books, round_number, "declined")


def _answer(books: Books, round_number: int, answer: str) -> None:
    with books.store.write() as connection:
        if not _waits(books, connection, round_number):
            raise LedgerError(
                f"round {round_number} waits for no approval; required is an award above ledger.approve_above that is "
                "not settled"
            )
        for kind in ("approved", "declined"):
            if last_of(connection, books.chain.run, kind, round_number=round_number) is not None:
                raise LedgerError(f"round {round_number} is {kind} already")
        books.chain.append(connection, Draft(answer, round_number))
    books.write_receipt()


def _waits(books: Books, connection: sa.Connection, round_number: int) -> bool:
    """Whether the award is above the limit, so that nobody trains before it is approved, and not settled."""
    most, run = books.terms.approve_above, books.chain.run
    table = schema.promises
    cost = sa.select(sa.func.sum(table.c.amount)).where(table.c.run == run, table.c.round == round_number)
    settled = last_of(connection, run, "settled", round_number=round_number)
    return most is not None and int(connection.scalar(cost) or 0) > most and settled is None


def _is_paused(books: Books, connection: sa.Connection) -> bool:
    return last_of(connection, books.chain.run, "paused", "continued", column="kind") == "paused"


def _refuse_ended(books: Books, connection: sa.Connection, what: str) -> None:
    if last_of(connection, books.chain.run, "closed") is not None:
        raise LedgerError(f"run {books.name!r} has ended; it cannot be {what}")

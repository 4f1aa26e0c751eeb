"""What an operator may do to a run, while it goes on or between sessions; each is an event of its chain."""

import contextlib
import json
from collections.abc import Iterator
from typing import Literal

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger import _schema as schema
from bara.ledger._events import Draft
from bara.ledger._reading import ANSWERS, REFUSALS, is_paused, last_of, topped_up, waiting_round
from bara.ledger.books import Books
from bara.ledger.store import insert
from bara.records import MAX_MONEY
from bara.text import UNSTORABLE, note


def top_up(books: Books, amount: int) -> None:
    """Add to the budget; the next round's offer is made with it."""
    if amount <= 0 or amount % books.purse.unit:
        raise LedgerError(
            f"a top-up must be positive and a whole multiple of {books.purse.show(books.purse.unit)}, got "
            f"{books.purse.show(amount)}"
        )
    with writing(books) as connection:
        _refuse_ended(books, connection, "topped up")
        most = MAX_MONEY - books.purse.total - topped_up(connection, books.chain.run)
        if amount > most:
            raise LedgerError(
                f"a top-up must be at most {books.purse.show(most)}, got {books.purse.show(amount)}"
            )
        number = books.chain.append(connection, Draft("topped up", rows=[amount]))
        insert(connection, schema.top_ups, [(books.chain.run, number, amount)])


def pause(books: Books) -> None:
    """Stop the run before its next round."""
    with writing(books) as connection:
        _refuse_ended(books, connection, "paused")
        if is_paused(connection, books.chain.run):
            raise LedgerError(
                f"run {books.name!r} is already paused; `bara ledger {books.address} continue` lets it go on"
            )
        books.chain.append(connection, Draft("paused"))


def continue_run(books: Books) -> None:
    """Let a paused run go on; nothing happens to one that is not paused."""
    with books.store.read() as connection:
        paused = is_paused(connection, books.chain.run)
    if paused:
        let_go_on(books)


def let_go_on(books: Books) -> None:
    """Let a paused run go on; refused where it is not paused."""
    with writing(books) as connection:
        _refuse_ended(books, connection, "continued")
        if not is_paused(connection, books.chain.run):
            raise LedgerError(f"run {books.name!r} is not paused")
        books.chain.append(connection, Draft("continued"))


def check_place(books: Books) -> None:
    """Refuse to play a copy: the run goes on where it was opened, or where it was adopted since."""
    if books.ended() is not None:  # nothing more is paid, wherever it is shown
        return
    if (
        _place(books) is None
    ):  # opened by an earlier version: it belongs where it is first played again
        with books.store.write() as connection:
            books.chain.append(
                connection, Draft("adopted", None, {"place": books.store.identity()})
            )
    require_place(books)


def require_place(books: Books) -> None:
    """Refuse what may be done in one place only, also after the run has ended: a copy would do it again."""
    place = _place(books)
    if place not in {None, books.store.identity()}:
        raise LedgerError(
            f"run {books.name!r} is here as a copy, a moved folder or a restored backup; if it is to go on and be paid "
            f"out here and nowhere else, use `bara ledger {books.address} adopt` (it belongs to: {place}; this is: "
            f"{books.store.identity()})"
        )


def _place(books: Books) -> str | None:
    """Where the run belongs; None for one that an earlier version opened."""
    with books.store.read() as connection:
        adopted = last_of(connection, books.chain.run, "adopted")
    return json.loads(adopted)["place"] if adopted else books.opening.get("place")


def adopt(books: Books) -> None:
    """Let the run go on here and nowhere else: after a move, or from a copy whose original will never go on."""
    with writing(books) as connection:
        books.chain.append(connection, Draft("adopted", None, {"place": books.store.identity()}))


def approve(books: Books, round_number: int) -> None:
    """Allow a stored award that costs more than may be promised without asking; it is trained as promised."""
    _answer(books, round_number, "approved")


def decline(books: Books, round_number: int) -> None:
    """Refuse such an award: nobody trains in that round, nobody is paid, and no client is held to have failed."""
    _answer(books, round_number, "declined")


def void(books: Books, round_number: int, reason: str) -> None:
    """Take back a promise that is never settled, for example because training fails at each resume.

    As when it is declined, nobody trains in that round, nobody is paid, and no client is held to
    have failed. Nobody may play the run meanwhile (`RunFolder.hold_books`).
    """
    if not reason.strip() or UNSTORABLE.search(reason):
        raise LedgerError(
            f"--reason must say for the record why round {round_number} is void, got {reason!r}"
        )
    with writing(books) as connection:
        run = books.chain.run
        known = last_of(
            connection,
            run,
            "awarded",
            "settled",
            *REFUSALS,
            column="kind",
            round_number=round_number,
        )
        if known != "awarded":
            state = "not promised" if known is None else f"already {known}"
            raise LedgerError(
                f"round {round_number} is {state}; only an award that is stored and not settled can be void"
            )
        books.chain.append(connection, Draft("voided", round_number, {"reason": reason.strip()}))


def forget(books: Books, client: str) -> None:
    """Let go of what a client taught: the model is no longer made of its remembered update, from the next round on.

    Nobody may play the run meanwhile (`RunFolder.hold_books`).
    """
    with writing(books) as connection:
        _refuse_ended(books, connection, "made to forget anybody")
        table = schema.settlements
        paid = sa.select(table.c.round).where(
            table.c.run == books.chain.run, table.c.client == client, table.c.paid > 0
        )
        if connection.scalar(paid.limit(1)) is None:
            raise LedgerError(
                f"client {client!r} was never paid in run {books.name!r}, so nothing is remembered of it"
            )
        body = {"client": client, "round": books.last_round() + 1}
        books.chain.append(connection, Draft("forgotten", None, body))


def _answer(books: Books, round_number: int, answer: Literal["approved", "declined"]) -> None:
    with writing(books) as connection:
        if waiting_round(connection, books.chain.run, books.terms.approve_above) != round_number:
            raise LedgerError(
                f"round {round_number} does not wait for approval; only an unsettled award does, if it is above "
                "ledger.approve_above or the allocator asks about it"
            )
        given = last_of(
            connection, books.chain.run, *ANSWERS, column="kind", round_number=round_number
        )
        if given is not None:
            raise LedgerError(f"round {round_number} is already {given}")
        books.chain.append(connection, Draft(answer, round_number))


@contextlib.contextmanager
def writing(books: Books) -> Iterator[sa.Connection]:
    """One commit by an operator, who may have mistyped the key, and a receipt for it where the run belongs."""
    books.check_key()
    books.check_receipt()
    with books.store.write() as connection:
        yield connection
    if _place(books) in {
        None,
        books.store.identity(),
    }:  # what is said to a copy does not stop the original
        books.write_receipt()
    else:
        note(
            f"only this copy of the run was changed; it goes on after `bara ledger {books.address} adopt`"
        )


def _refuse_ended(books: Books, connection: sa.Connection, what: str) -> None:
    if last_of(connection, books.chain.run, "closed") is not None:
        raise LedgerError(f"run {books.name!r} has ended; it cannot be {what}")

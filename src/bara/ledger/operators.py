"""An operator's commands to a run, during or between sessions; each appends an event.

Each takes `by`, the person who gives it, and each that decides takes `reason`. A person that is not
named is the one in the environment variable `BARA_OPERATOR`, or else whoever is logged in.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger import _schema as schema
from bara.ledger._events import Draft
from bara.ledger._reading import (
    ANSWERS,
    REFUSALS,
    endorsement,
    is_paused,
    is_same_person,
    last_of,
    topped_up,
    waiting_round,
)
from bara.ledger._signed import signed
from bara.ledger.books import Books
from bara.ledger.store import insert
from bara.records import MAX_MONEY, Entry
from bara.text import UNSTORABLE, nearest, note


def top_up(
    books: Books,
    amount: int,
    *,
    by: str | None = None,
    reason: str | None = None,
    once: str | None = None,
) -> bool:
    """Add to the budget, which the next round's offer can use; return whether it was added now.

    After an error nobody knows whether the money was added. Called again with the same `once`, a
    top-up that is stored adds nothing.

    Args:
        books: The run's books.
        amount: What to add, in micro-units.
        by: The person who decides it.
        reason: Why.
        once: A name for this top-up, like the number of an invoice; None to add at each call.
    """
    if amount <= 0 or amount % books.purse.unit:
        raise LedgerError(
            "a top-up must be positive and a whole multiple of "
            f"{books.purse.show(books.purse.unit)}, got {books.purse.show(amount)}"
        )
    body = signed(books, by, reason)
    body |= named_once(once)
    with writing(books) as connection:
        stored = stored_once(connection, schema.top_ups, books, body)
        if stored is not None:
            if stored.amount == amount:
                return False
            raise LedgerError(
                f"the top-up {body['once']!r} added {books.purse.show(stored.amount)}, got "
                f"{books.purse.show(amount)}; another top-up needs another --once"
            )
        _refuse_ended(books, connection, "topped up")
        most = MAX_MONEY - books.purse.total - topped_up(connection, books.chain.run)
        if amount > most:
            raise LedgerError(
                f"a top-up must be at most {books.purse.show(most)}, got {books.purse.show(amount)}"
            )
        number = books.chain.append(connection, Draft("topped up", None, body, rows=[amount]))
        insert(connection, schema.top_ups, [(books.chain.run, number, amount)])
    return True


def named_once(once: str | None) -> dict[str, str]:
    """Return the name by which a command is known again, for the body of its event."""
    if once is None:
        return {}
    if not once.strip() or UNSTORABLE.search(once):
        raise LedgerError(f"--once must be a name for what is done once, got {once!r}")
    return {"once": once.strip()}


def stored_once(
    connection: sa.Connection, table: sa.Table, books: Books, body: Mapping[str, Any]
) -> sa.Row[Any] | None:
    """Return the row that a command with the same name has stored; None if there is none.

    Args:
        connection: The database.
        table: The table of the command's amounts.
        books: The run's books.
        body: The body of the command's event, with or without a name.
    """
    if "once" not in body:
        return None
    events, run = schema.events, books.chain.run
    same_event = (table.c.run == events.c.run) & (table.c.number == events.c.number)
    query = sa.select(events.c.body, table).join(table, same_event).where(events.c.run == run)
    for row in connection.execute(query):
        if json.loads(row.body).get("once") == body["once"]:
            return row
    return None


def pause(books: Books, *, by: str | None = None, reason: str | None = None) -> None:
    """Stop the run before its next round; refused if it is paused already."""
    body = signed(books, by, reason)
    with writing(books) as connection:
        _refuse_ended(books, connection, "paused")
        if is_paused(connection, books.chain.run):
            raise LedgerError(
                f"run {books.name!r} is already paused; "
                f"`bara ledger {books.address} continue` lets it go on"
            )
        books.chain.append(connection, Draft("paused", None, body))


def continue_run(books: Books) -> None:
    """Let a run go on if it is paused; otherwise do nothing."""
    with books.store.read() as connection:
        paused = is_paused(connection, books.chain.run)
    if paused:
        let_go_on(books)


def let_go_on(books: Books, *, by: str | None = None) -> None:
    """Let a paused run go on; refused if it is not paused."""
    body = signed(books, by)
    with writing(books) as connection:
        _refuse_ended(books, connection, "continued")
        if not is_paused(connection, books.chain.run):
            raise LedgerError(f"run {books.name!r} is not paused")
        books.chain.append(connection, Draft("continued", None, body))


def check_place(books: Books) -> None:
    """Refuse to play a copy: a run goes on only where it was opened or last adopted."""
    if books.ended() is not None:  # a copy of an ended run pays nothing
        return
    if _place(books) is None:
        # An earlier version stored no place: the run belongs where it is first played again.
        with books.store.write() as connection:
            books.chain.append(
                connection, Draft("adopted", None, {"place": books.store.identity()})
            )
    require_place(books)


def require_place(books: Books) -> None:
    """Refuse a copy, even of an ended run: it would do again what may be done only once."""
    place = _place(books)
    if place not in {None, books.store.identity()}:
        raise LedgerError(
            f"run {books.name!r} is here as a copy, a moved folder or a restored backup; "
            "if it is to go on and be paid out here and nowhere else, "
            f"use `bara ledger {books.address} adopt --reason TEXT` "
            f"(it belongs to: {place}; this is: {books.store.identity()})"
        )


def _place(books: Books) -> str | None:
    """Return the identity of the database where the run belongs; None if none was ever stored."""
    with books.store.read() as connection:
        adopted = last_of(connection, books.chain.run, "adopted")
    return json.loads(adopted)["place"] if adopted else books.opening.get("place")


def adopt(
    books: Books,
    *,
    new_receipt: bool = False,
    by: str | None = None,
    reason: str | None = None,
) -> None:
    """Let the run go on here and nowhere else: after a move, or if the original is abandoned.

    Args:
        books: The run's books.
        new_receipt: Whether to begin a receipt: the first of the run, or in place of a lost one.
            The operator vouches that this record is the newest.
        by: The person who decides it.
        reason: Why the run goes on here.
    """
    body = {"place": books.store.identity(), **signed(books, by, reason)}
    if new_receipt:
        books.check_key()
        books.begin_receipt()
    with writing(books) as connection:
        books.chain.append(connection, Draft("adopted", None, body))


def approve(
    books: Books, round_number: int, *, by: str | None = None, reason: str | None = None
) -> None:
    """Approve an award that waits for an answer; its winners train and are paid as promised.

    Where the terms ask for two approvals, the first is stored as `endorsed`, and the award goes on
    waiting for that of another person.
    """
    body = signed(books, by, reason)
    with writing(books) as connection:
        _refuse_answered(books, connection, round_number)
        first = endorsement(connection, books.chain.run, round_number)
        answer = "approved"
        if books.terms.approvals == 2 and first is None:
            answer = "endorsed"
        elif first is not None and is_same_person(first, body["by"]):
            raise LedgerError(
                f"{first} has approved round {round_number} already; "
                "ledger.approvals = 2 wants another person to approve it, too"
            )
        books.chain.append(connection, Draft(answer, round_number, body))


def decline(
    books: Books, round_number: int, *, by: str | None = None, reason: str | None = None
) -> None:
    """Decline an award that waits for an answer: nobody trains, is paid or counts as failed."""
    body = signed(books, by, reason)
    with writing(books) as connection:
        _refuse_answered(books, connection, round_number)
        books.chain.append(connection, Draft("declined", round_number, body))


def void(books: Books, round_number: int, reason: str, *, by: str | None = None) -> None:
    """Take back an unsettled promise, for example because training fails at each resume.

    As with `decline`, nobody trains, is paid or counts as failed in that round. The caller must see
    to it that nobody plays the run meanwhile (`Place.hold_books`).

    Args:
        books: The run's books.
        round_number: The round.
        reason: Why the round is void, for the record.
        by: The person who decides it.
    """
    body = signed(books, by, reason)
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
                f"round {round_number} is {state}; "
                "only an award that is stored and not settled can be void"
            )
        books.chain.append(connection, Draft("voided", round_number, body))


def register(
    books: Books,
    client: str,
    entry: Entry | None = None,
    *,
    by: str | None = None,
    reason: str | None = None,
) -> int:
    """Enter a client in the register, or change its entry; return the first round that follows it.

    That is the round after the open one, whose bids may be in already.

    Args:
        books: The run's books.
        client: The client's name.
        entry: Its limit and its fee; None for neither.
        by: The person who decides it.
        reason: Why.
    """
    chosen = entry or Entry()
    for name, amount in vars(chosen).items():
        if amount is not None and amount % books.purse.unit:
            raise LedgerError(
                f"a client's {name} must be a whole multiple of "
                f"{books.purse.show(books.purse.unit)}, got {books.purse.show(amount)}"
            )
    if not client.strip() or UNSTORABLE.search(client):
        raise LedgerError(f"a client must have a name, got {client!r}")
    return _change_register(books, "registered", client, {"entry": vars(chosen)}, by, reason)


def strike_off(
    books: Books, client: str, *, by: str | None = None, reason: str | None = None
) -> int:
    """Take a client off the register; return the first round in which its bid is left out."""
    return _change_register(books, "struck off", client, {}, by, reason)


def _change_register(
    books: Books,
    kind: str,
    client: str,
    change: Mapping[str, Any],
    by: str | None,
    reason: str | None,
) -> int:
    person = signed(books, by, reason)
    with writing(books) as connection:
        _refuse_ended(books, connection, "given another register")
        begins = books.last_round() + 2
        known = books.registered(begins)
        if known is None:
            raise LedgerError(
                f"run {books.name!r} was opened without a register (ledger.clients), so everybody "
                "may bid"
            )
        if kind == "struck off" and client not in known:
            hint = nearest(client, list(known))
            raise LedgerError(f"client {client!r} is not in the register; {hint}")
        body = {"client": client, "round": begins, **change, **person}
        books.chain.append(connection, Draft(kind, None, body))
    return begins


def forget(books: Books, client: str, *, by: str | None = None) -> None:
    """Leave a client's remembered update out of the model, from the next round on.

    The caller must see to it that nobody plays the run meanwhile (`Place.hold_books`).
    """
    person = signed(books, by)
    with writing(books) as connection:
        _refuse_ended(books, connection, "made to forget anybody")
        table = schema.settlements
        paid = sa.select(table.c.round).where(
            table.c.run == books.chain.run, table.c.client == client, table.c.paid > 0
        )
        if connection.scalar(paid.limit(1)) is None:
            raise LedgerError(
                f"client {client!r} was never paid in run {books.name!r}, "
                "so nothing is remembered of it"
            )
        body = {"client": client, "round": books.last_round() + 1, **person}
        books.chain.append(connection, Draft("forgotten", None, body))


def _refuse_answered(books: Books, connection: sa.Connection, round_number: int) -> None:
    """Refuse to answer an award that does not wait for an answer, or has one."""
    run = books.chain.run
    if waiting_round(connection, run, books.terms.approve_above) != round_number:
        raise LedgerError(
            f"round {round_number} does not wait for approval; only an unsettled award does, "
            "if it is above ledger.approve_above or the allocator asks about it"
        )
    given = last_of(connection, run, *ANSWERS, column="kind", round_number=round_number)
    if given is not None:
        raise LedgerError(f"round {round_number} is already {given}")


@contextlib.contextmanager
def writing(books: Books) -> Iterator[sa.Connection]:
    """Write an operator's command in one commit, after checking the key and the receipt.

    A new receipt is written only where the run belongs: what is done to a copy must not stop the
    original. One is written before, too: the command may be refused because it was given before,
    and then failed between its commit and its receipt.
    """
    books.check_key()
    books.check_receipt()
    _cover(books)
    with books.store.write() as connection:
        yield connection
    if not _cover(books):
        note(
            "only this copy of the run was changed; "
            f"it goes on after `bara ledger {books.address} adopt --reason TEXT`"
        )


def _cover(books: Books) -> bool:
    """Write the receipt where the run belongs; return whether it does."""
    belongs = _place(books) in {None, books.store.identity()}
    if belongs:
        books.write_receipt()
    return belongs


def _refuse_ended(books: Books, connection: sa.Connection, what: str) -> None:
    if last_of(connection, books.chain.run, "closed") is not None:
        raise LedgerError(f"run {books.name!r} has ended; it cannot be {what}")

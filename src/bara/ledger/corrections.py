"""Corrections of settled payments: entries of their own, which edit nothing.

A correction adds to what a client was paid for a round, or takes from it. The balance counts it
from the next round on, the client's cap at once, and the next batch of payments transfers it; what
a client then owes is kept back from its later payments.
"""

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger import _schema as schema
from bara.ledger._events import Draft
from bara.ledger._verification import require_whole
from bara.ledger.books import Books
from bara.ledger.decisions import signed
from bara.ledger.operators import named_once, stored_once, writing
from bara.ledger.statements import statement, stored_corrections
from bara.ledger.store import insert


def correct(
    books: Books,
    round_number: int,
    client: str,
    amount: int,
    *,
    by: str | None = None,
    reason: str | None = None,
    once: str | None = None,
) -> int:
    """Correct what a client was paid for a settled round; return what it is paid for it now.

    The caller must see to it that nobody plays the run meanwhile (`Place.hold_books`). After an
    error nobody knows whether the correction was stored. Called again with the same `once`, one
    that is stored changes nothing.

    Args:
        books: The run's books.
        round_number: The round.
        client: A winner of that round.
        amount: What to add, in micro-units; negative to take back.
        by: The person who decides it.
        reason: Why, for the record and for the client's statement.
        once: A name for this correction, like the number of a letter; None to correct at each call.
    """
    body = {**signed(books, by, reason), **named_once(once)}
    show = books.purse.show
    if not amount or amount % books.purse.unit:
        raise LedgerError(
            "a correction must be a whole multiple of "
            f"{show(books.purse.unit)} and not zero, got {show(amount)}"
        )
    require_whole(books, needs_key=True)
    account = statement(books)
    with writing(books) as connection:
        run = books.chain.run
        table = schema.settlements
        settled = connection.scalar(
            sa.select(table.c.paid).where(
                table.c.run == run, table.c.round == round_number, table.c.client == client
            )
        )
        if settled is None:
            raise LedgerError(
                f"client {client!r} has no settled payment for round {round_number} of "
                f"{books.name!r}; only a winner's, once the round is settled, can be corrected"
            )
        before = int(settled)
        for one in stored_corrections(connection, run):
            if (one.round, one.client) == (round_number, client):
                before += one.amount
        stored = stored_once(connection, schema.corrections, books, body)
        if stored is not None:
            if (stored.round, stored.client, stored.amount) == (round_number, client, amount):
                return before
            raise LedgerError(
                f"the correction {body['once']!r} is of {show(stored.amount)} for "
                f"{stored.client!r} in round {stored.round}; another needs another --once"
            )
        if before + amount < 0:
            raise LedgerError(
                f"client {client!r} was paid {show(before)} for round {round_number}; at most that "
                f"can be taken back, got {show(amount)}"
            )
        free = account.left - account.outstanding
        if amount > free:
            raise LedgerError(
                f"a correction must be at most the {show(free)} that is left and not promised, got "
                f"{show(amount)}"
            )
        begins = books.last_round() + 1
        if account.rounds[-1].paid is None:  # its promise was made with the balance before
            begins += 1
        body |= {"client": client, "corrects": round_number}
        rows = [round_number, client, begins, amount]
        number = books.chain.append(connection, Draft("corrected", None, body, rows))
        insert(connection, schema.corrections, [(run, number, *rows)])
    return before + amount

"""Corrections of settled payments: entries of their own, which edit nothing.

A correction adds to what a client was paid for a round, or takes from it. The balance counts it
from the next round on, the client's cap at once, and the next batch of payments transfers it; what
a client then owes is kept back from its later payments.
"""

import sqlalchemy as sa

from bara.errors import LedgerError
from bara.ledger import _schema as schema
from bara.ledger._events import Draft
from bara.ledger._reading import is_same_person
from bara.ledger._signed import signed
from bara.ledger._verification import require_whole
from bara.ledger.books import Books
from bara.ledger.decisions import Decision, decisions
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
    again: bool = False,
) -> int | None:
    """Correct what a client was paid for a settled round; return what it is paid for it now.

    Where the terms ask for two approvals, the first call for an amount above their limit is stored
    as `endorsed` and returns None; that of another person makes the correction.

    The caller must see to it that nobody plays the run meanwhile (`Place.hold_books`). After an
    error nobody knows whether the correction was stored. Called again with the same `once`, one
    that is stored changes nothing; without, one like an earlier correction is refused.

    Args:
        books: The run's books.
        round_number: The round.
        client: A winner of that round.
        amount: What to add, in micro-units; negative to take back.
        by: The person who decides it.
        reason: Why, for the record and for the client's statement.
        once: A name for this correction, like the number of a letter.
        again: Whether to correct though the same amount of this payment was corrected before.
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
        before = _paid(connection, books, round_number, client)
        stored = stored_once(connection, schema.corrections, books, body)
        if stored is not None:
            if (stored.round, stored.client, stored.amount) == (round_number, client, amount):
                return before
            raise LedgerError(
                f"the correction {body['once']!r} is of {show(stored.amount)} for "
                f"{stored.client!r} in round {stored.round}; another needs another --once"
            )
        first = _endorsed(books, round_number, client, amount, again=again)
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
        if not _takes_effect(books, amount, first, body["by"]):
            draft = Draft("endorsed", None, {**body, "amount": amount})
            books.chain.append(connection, draft)
            return None
        rows = [round_number, client, begins, amount]
        number = books.chain.append(connection, Draft("corrected", None, body, rows))
        insert(connection, schema.corrections, [(run, number, *rows)])
    return before + amount


def _paid(connection: sa.Connection, books: Books, round_number: int, client: str) -> int:
    """Return what a client is paid for a settled round, with the corrections so far."""
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
    corrections = stored_corrections(connection, run)
    return int(settled) + sum(
        one.amount for one in corrections if (one.round, one.client) == (round_number, client)
    )


def _endorsed(
    books: Books, round_number: int, client: str, amount: int, *, again: bool
) -> Decision | None:
    """Return the first of two approvals of a correction, if any; refuse what was made before."""
    same = (f"{client}, round {round_number}", amount)
    alike = [one for one in decisions(books) if (one.about, one.amount) == same]
    if not alike:
        return None
    last = alike[-1]
    if last.what == "endorsed":
        return last
    if not again:
        raise LedgerError(
            f"{last.by} corrected what {client!r} was paid for round {round_number} by "
            f"{books.purse.show(amount)} before, at {last.at}; say --again to do so once more"
        )
    return None


def _takes_effect(books: Books, amount: int, first: Decision | None, by: str) -> bool:
    """Return whether nobody else must approve a correction; refuse one person's two approvals."""
    limit = books.terms.approve_above
    if books.terms.approvals == 1 or limit is None or abs(amount) <= limit:
        return True
    if first is not None and is_same_person(first.by, by):
        raise LedgerError(
            f"{first.by} has approved this correction already; ledger.approvals = 2 wants another "
            "person to give the same command, too"
        )
    return first is not None

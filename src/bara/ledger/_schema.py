"""The ledger's tables as the code uses them; constraints and triggers are only in the migrations.

runs         one row for each run
events       everything that happened, in order; each row holds the hash of the row before
promises     the amount that an award promises to each winner
settlements  the outcome for each winner: the promised amount, or 0 and the reason
closings     the balance of each round
top_ups      money added to the budget
corrections  what was added to a settled payment, or taken from it
sealed       content that may be dropped (bids, menus); events commit to salted digests of it
memories     what allocator and mechanism learned from bids that are dropped
"""

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

metadata = MetaData()


def _table(name: str, keys: str, /, **columns: type[TypeEngine[Any]]) -> Table:
    """Define a table by the names of its primary keys and the types of its other columns.

    A primary key is an integer, except for `client` and `part`, which are text.
    """
    defined: list[Column[Any]] = []
    for key in keys.split():
        kind = Text if key in {"client", "part"} else Integer
        defined.append(Column(key, kind, primary_key=True))
    defined += [Column(column, kind) for column, kind in columns.items()]
    return Table(name, metadata, *defined)


runs = _table("runs", "id", name=Text, total=BigInteger, max_rounds=Integer)
events = _table(
    "events", "run number", kind=Text, round=Integer, at=Text, body=Text, previous=Text, hash=Text
)
promises = _table("promises", "run round client", rank=Integer, amount=BigInteger)
settlements = _table("settlements", "run round client", paid=BigInteger, reason=Text)
closings = _table(
    "closings",
    "run round",
    total=BigInteger,
    spent_before=BigInteger,
    paid=BigInteger,
    spent_after=BigInteger,
)
top_ups = _table("top_ups", "run number", amount=BigInteger)
corrections = _table(
    "corrections", "run number", round=Integer, client=Text, counts_from=Integer, amount=BigInteger
)
redactable = _table("sealed", "run round part", salt=Text, content=Text)
memories = _table("memories", "run part", round=Integer, salt=Text, content=Text)

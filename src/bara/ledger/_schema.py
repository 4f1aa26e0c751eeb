"""The tables as the code sees them. What they forbid (constraints, triggers) stands in the migrations alone.

runs         one row per run
events       what happened, in order, each row with the hash of the one before
promises     what an award promises each winner
settlements  what each winner got in the end: the promise, or nothing and why
closings     each round's balance
top_ups      money added to the budget
sealed       what may be dropped (bids, menus); events commit to salted digests of it
memories     what allocator and mechanism have learned, where the bids they learned it from are dropped
"""

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

metadata = MetaData()


def _table(name: str, keys: str, /, **columns: type[TypeEngine[Any]]) -> Table:
    """A table: its primary keys, whole numbers but for the names among them, then its other columns."""
    primary = [
        Column(key, Text if key in {"client", "part"} else Integer, primary_key=True)
        for key in keys.split()
    ]
    return Table(
        name, metadata, *primary, *(Column(column, kind) for column, kind in columns.items())
    )


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
redactable = _table("sealed", "run round part", salt=Text, content=Text)
memories = _table("memories", "run part", round=Integer, salt=Text, content=Text)

"""The tables as the code sees them. What they forbid (constraints, triggers) stands in the migrations alone.

runs         one row a run
events       what happened, in order, each row with the hash of the one before
promises     what an award promises each winner
settlements  what each winner got in the end: the promise, or nothing and why
closings     each round's balance
top_ups      money added to the budget
sealed       what may be dropped (bids, menus); events commit to salted digests of it
memories     what allocator and mechanism have learned, where the bids they learned it from are dropped
"""

from sqlalchemy import BigInteger, Column, Integer, MetaData, Table, Text

metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text),
    Column("total", BigInteger),
    Column("max_rounds", Integer),
)

events = Table(
    "events",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("kind", Text),
    Column("round", Integer),
    Column("at", Text),
    Column("body", Text),
    Column("previous", Text),
    Column("hash", Text),
)

promises = Table(
    "promises",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("client", Text, primary_key=True),
    Column("rank", Integer),
    Column("amount", BigInteger),
)

settlements = Table(
    "settlements",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("client", Text, primary_key=True),
    Column("paid", BigInteger),
    Column("reason", Text),
)

closings = Table(
    "closings",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("total", BigInteger),
    Column("spent_before", BigInteger),
    Column("paid", BigInteger),
    Column("spent_after", BigInteger),
)

top_ups = Table(
    "top_ups",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("amount", BigInteger),
)

redactable = Table(
    "sealed",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("part", Text, primary_key=True),
    Column("salt", Text),
    Column("content", Text),
)

memories = Table(
    "memories",
    metadata,
    Column("run", Integer, primary_key=True),
    Column("part", Text, primary_key=True),
    Column("round", Integer),
    Column("salt", Text),
    Column("content", Text),
)

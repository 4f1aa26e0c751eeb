"""The ledger: a durable record of what was promised before anyone trains and paid exactly once.

`Store` is a database, `Books` one run in it. Events are only appended, each with the hash of the
event before, and amounts are whole micro-units whose sums the database itself checks. See
docs/ledger.md.
"""

from bara.ledger._events import Receipt
from bara.ledger._verification import Finding, is_locked, require_whole, verify
from bara.ledger.books import Books, Terms
from bara.ledger.run_state import read_books
from bara.ledger.store import Store

__all__ = [
    "Books",
    "Finding",
    "Receipt",
    "Store",
    "Terms",
    "is_locked",
    "read_books",
    "require_whole",
    "verify",
]

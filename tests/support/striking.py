"""A store that fails once: at one of all its calls, or at one of the fault points."""

import contextlib

from bara.errors import LedgerError
from bara.ledger import Store

STRUCK = "the ledger is locked by another process"


class Misfortune:
    """Raises a `LedgerError` at one call out of all, none if `fails_at` is 0; counts the calls."""

    def __init__(self):
        self.calls = 0
        self.fails_at = 0

    def strike(self, _name=None):
        self.calls += 1
        if self.calls == self.fails_at:
            raise LedgerError(STRUCK)


def strike(monkeypatch, *points):
    """Let a misfortune strike where transactions of the store begin and end, and at fault points.

    Args:
        monkeypatch: pytest's.
        points: Where the fault points are that may fail, as `module.point`.
    """
    bad = Misfortune()

    def around(entered):
        @contextlib.contextmanager
        def transaction(store):
            bad.strike()
            with entered(store) as connection:
                yield connection
            bad.strike()  # stored, or read, and yet the caller hears of an error

        return transaction

    monkeypatch.setattr(Store, "write", around(Store.write))
    monkeypatch.setattr(Store, "read", around(Store.read))
    for point in points:
        monkeypatch.setattr(point, bad.strike)
    return bad

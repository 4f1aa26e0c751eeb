"""A run's books for reading only, while it goes on or afterwards."""

from pathlib import Path

from bara.errors import LedgerError
from bara.ledger.books import Books
from bara.ledger.store import HEAD, Store


def look(place: Path | str, run: str | None = None) -> Books:
    """The books in a ledger's file or database; nothing is made, brought up to date or held.

    Args:
        place: The ledger's file, or the URL of its database.
        run: The run's name in a database that it shares; None for the only run of a file.
    """
    if isinstance(place, Path) and not place.is_file():
        raise LedgerError(f"there is no ledger {str(place)!r} yet")
    store = Store.look(place)
    version = store.version()
    if version != HEAD:
        raise LedgerError(
            f"the ledger {store.place} is of schema {version}; required is {HEAD}, to which `bara ledger DIR` brings it"
        )
    books = Books.find(store, run)
    if books is None:
        raise LedgerError(f"the ledger {store.place} holds no run{f' {run!r}' if run else ''} yet")
    return books

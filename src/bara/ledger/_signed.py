"""Who gives an operator's command, and why: what the event of each command stores."""

import getpass
import os
from typing import Any

from bara.errors import LedgerError
from bara.ledger.books import Books
from bara.text import UNSTORABLE

OPERATOR = "BARA_OPERATOR"
"""The environment variable that names the person who gives an operator's commands."""


def signed(books: Books, by: str | None, reason: str | None = None) -> dict[str, Any]:
    """Return who gives a command and why, for the body of its event.

    Args:
        books: The run's books.
        by: The person; None for the one that `BARA_OPERATOR` names, or else who is logged in.
        reason: Why; None to give no reason.
    """
    login = books.store.server_user() or _login()
    name = (by or os.environ.get(OPERATOR) or login).strip()
    if not name or UNSTORABLE.search(name):
        raise LedgerError(f"--as must name the person who decides, got {name!r}")
    body: dict[str, Any] = {"by": name}
    if login not in ("", name):
        body["login"] = login
    if reason is not None:
        if not reason.strip() or UNSTORABLE.search(reason):
            raise LedgerError(f"--reason must say why, for the record, got {reason!r}")
        body["reason"] = reason.strip()
    return body


def _login() -> str:
    """Return who is logged in on this machine; "" where nobody is, as in some containers."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""

"""What figures show, as CSV, with every round in it."""

from collections.abc import Iterable, Sequence
from typing import Any

from bara.dashboard._run_view import RunView
from bara.ledger.statements import csv_text, exact_values
from bara.records import show_money


def rounds_csv(view: RunView) -> str:
    """A line a round."""
    names = ("round", "at", "n", "void", "cost", "spent", "left", "accuracy", "loss")
    rows = (
        (
            *(one.round, one.at, len(one.delivered), len(one.void)),
            *map(show_money, (one.paid, one.spent, one.total - one.spent)),
            *(one.accuracy, one.loss),
        )
        for one in view.rounds
    )
    return _csv(names, rows)


def clients_csv(view: RunView) -> str:
    """A line a client, best paid first."""
    names = ("client", "won", "void", "asked", "promised", "paid", "returned")
    ranked = sorted(view.totals.values(), key=lambda one: (-one.paid, one.client))
    return _csv(names, (exact_values(one, names) for one in ranked))


def failures_csv(view: RunView) -> str:
    """A line for each winner that did not deliver."""
    names = ("round", "client", "reason", "returned")
    return _csv(names, (exact_values(one, names) for one in view.failures))


TABLES = {"rounds": rounds_csv, "clients": clients_csv, "failures": failures_csv}
"""What can be downloaded of a run, by name."""


def _csv(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    return csv_text(names, (map(_inert, row) for row in rows))


def _inert(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value

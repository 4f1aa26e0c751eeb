"""What figures show, as CSV, with every round in it."""

from bara.dashboard._run_view import RunView
from bara.ledger.statements import exact_values
from bara.records import show_money
from bara.text import csv_text


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
    return csv_text(names, rows)


def clients_csv(view: RunView) -> str:
    """A line a client, best paid first."""
    names = ("client", "won", "void", "asked", "promised", "paid", "returned")
    ranked = sorted(view.totals.values(), key=lambda one: (-one.paid, one.client))
    return csv_text(names, (exact_values(one, names) for one in ranked))


def failures_csv(view: RunView) -> str:
    """A line for each winner that did not deliver."""
    names = ("round", "client", "reason", "returned")
    return csv_text(names, (exact_values(one, names) for one in view.failures))


TABLES = {"rounds": rounds_csv, "clients": clients_csv, "failures": failures_csv}
"""What can be downloaded of a run, by name."""

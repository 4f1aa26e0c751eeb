"""The tables of a run as CSV, with every round in them."""

from bara.dashboard._run_view import RunView
from bara.ledger.decisions import decisions_csv
from bara.ledger.run_state import ClosedRound
from bara.ledger.statements import exact_values
from bara.records import plain_money
from bara.text import csv_text


def rounds_csv(view: RunView) -> str:
    """Return a line for each settled round."""
    names = ("round", "at", "n", "void", "cost", "spent", "left", "accuracy", "loss")
    currency = view.books.purse.currency
    return csv_text(names, (_round_row(one, currency) for one in view.rounds))


def _round_row(one: ClosedRound, currency: str | None) -> tuple[object, ...]:
    return (
        one.round,
        one.at,
        len(one.delivered),
        len(one.void),
        plain_money(one.paid, currency),
        plain_money(one.spent, currency),
        plain_money(one.total - one.spent, currency),
        one.accuracy,
        one.loss,
    )


def clients_csv(view: RunView) -> str:
    """Return a line for each client, best paid first."""
    names = ("client", "won", "void", "asked", "asked_last", "promised", "paid", "returned")
    ranked = sorted(view.totals.values(), key=lambda one: (-one.paid, one.client))
    return csv_text(names, (exact_values(one, names, view.books.purse.currency) for one in ranked))


def failures_csv(view: RunView) -> str:
    """Return a line for each winner that did not deliver."""
    names = ("round", "client", "reason", "returned")
    return csv_text(
        names, (exact_values(one, names, view.books.purse.currency) for one in view.failures)
    )


def decided_csv(view: RunView) -> str:
    """Return a line for each command of an operator."""
    return decisions_csv(view.decisions, view.books.purse.currency)


TABLES = {
    "rounds": rounds_csv,
    "clients": clients_csv,
    "failures": failures_csv,
    "decisions": decided_csv,
}
"""The tables that can be downloaded, by name."""

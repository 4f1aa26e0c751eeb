"""What figures show, as CSV, with every round in it."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from bara.dashboard._run_view import RunView
from bara.records import show_money


def rounds_csv(view: RunView) -> str:
    """A line a round."""
    names = ("round", "at", "n", "void", "cost", "spent", "left", "accuracy", "loss")
    return _csv(
        names,
        (
            (
                one.round,
                one.at,
                len(one.delivered),
                len(one.void),
                show_money(one.paid),
                show_money(one.spent),
                show_money(one.total - one.spent),
                one.accuracy,
                one.loss,
            )
            for one in view.rounds
        ),
    )


def clients_csv(view: RunView) -> str:
    """A line a client, best paid first."""
    names = ("client", "won", "void", "asked", "promised", "paid", "returned")
    ranked = sorted(view.totals.values(), key=lambda one: (-one.paid, one.client))
    return _csv(
        names,
        (
            (
                one.client,
                one.won,
                one.void,
                None if one.asked is None else show_money(one.asked),
                show_money(one.promised),
                show_money(one.paid),
                show_money(one.returned),
            )
            for one in ranked
        ),
    )


def failures_csv(view: RunView) -> str:
    """A line for each winner that did not deliver."""
    rows = ((one.round, one.client, one.reason, show_money(one.returned)) for one in view.failures)
    return _csv(("round", "client", "reason", "returned"), rows)


TABLES = {"rounds": rounds_csv, "clients": clients_csv, "failures": failures_csv}
"""What can be downloaded of a run, by name."""


def _csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_inert(value) for value in row] for row in rows)
    return text.getvalue()


def _inert(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value

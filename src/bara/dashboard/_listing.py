"""The list of runs."""

from typing import Any

from bara.dashboard._json_views import glance, identity, state_tree
from bara.dashboard._labels import shown
from bara.dashboard._run_index import Shelf
from bara.dashboard._run_view import RunView
from bara.dashboard._thinning import thin
from bara.errors import LedgerError

MOST_LISTED = 200
"""Runs that are listed, newest first."""

SPARK = 60
"""Points of the small curve beside each."""


def list_tree(shelf: Shelf) -> dict[str, Any]:
    """Every run with where it stands; one that cannot be read says why."""
    names = shelf.names()
    return {
        "folder": shown(shelf.folder.name),
        "count": len(names),
        "runs": [_row(shelf, n) for n in names[:MOST_LISTED]],
    }


def _row(shelf: Shelf, name: str) -> dict[str, Any]:
    try:
        view = shelf.view(name)
    except (LedgerError, LookupError) as error:
        return {"name": name, "run": shown(name), "error": shown(str(error))}
    with view.lock:
        return {
            "name": name,
            "run": shown(name),
            **identity(view),
            "state": state_tree(view),
            "glance": glance(view),
            "spark": spark(view),
        }


def spark(view: RunView) -> list[float]:
    """The accuracy in few points."""
    values = [one.accuracy for one in view.rounds]
    return [values[i] for i in thin(values, SPARK)]

"""Several runs side by side."""

from collections.abc import Sequence
from typing import Any

from bara.dashboard._json_views import columns, glance, identity, state_tree
from bara.dashboard._labels import shown
from bara.dashboard._run_view import RunView
from bara.dashboard._thinning import thin

MOST_RUNS = 8
"""Runs that one page compares; more lines than that no eye can tell apart."""

POINTS = 400


def compare_tree(views: Sequence[RunView]) -> dict[str, Any]:
    """What they reached and what it cost, and their rounds in columns."""
    return {"runs": [_one(view) for view in views], "most": MOST_RUNS}


def _one(view: RunView) -> dict[str, Any]:
    with view.lock:
        kept = thin([one.accuracy for one in view.rounds], POINTS)
        return {
            "name": view.name,
            "run": shown(view.name),
            **identity(view),
            "state": state_tree(view),
            "glance": glance(view),
            "rounds": columns([view.rounds[i] for i in kept]),
        }

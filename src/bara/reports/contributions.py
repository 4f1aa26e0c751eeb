"""Each client's contribution to the model: leave-one-out and Shapley values, round by round.

A report for operators who ask whether a silo was worth its money, never a basis for payments: the
values depend on the round, on the other clients and on a few held-out samples. The width of their
intervals shows how much.
"""

import math
from array import array
from collections.abc import Mapping
from statistics import fmean
from typing import Any, final

import numpy as np

from bara.records import Shapley
from bara.text import counted

SPREAD = (0.05, 0.95)
"""The quantiles over a client's rounds between which its interval lies."""


@final
class Contributions:
    """The contributions of a run, collected round by round."""

    def __init__(self) -> None:
        self._values: dict[str, array[float]] = {}

    def tell(self, told: Mapping[str, float]) -> None:
        """Add the contributions of one round, by client."""
        for client, value in told.items():
            self._values.setdefault(client, array("d")).append(value)

    def summary(self) -> dict[str, dict[str, Any]] | None:
        """Return each client's mean, interval and number of rounds, the largest mean first.

        None if no round told any contribution.
        """
        found = {}
        for client, values in self._values.items():
            low, high = np.quantile(values, SPREAD).tolist()
            found[client] = {"mean": fmean(values), "low": low, "high": high, "rounds": len(values)}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]["mean"])) or None


@final
class ShapleyScores:
    """The Shapley values of a run, collected over the rounds in which they were estimated."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._errors: dict[str, list[float]] = {}
        self._evaluations = 0

    def tell(self, told: Shapley | None) -> None:
        """Add the estimates of one round, if there are any."""
        if told is None:
            return
        self._evaluations += told.evaluations
        for client, value in told.values.items():
            self._values.setdefault(client, []).append(value)
            self._errors.setdefault(client, []).append(told.errors[client])

    def summary(self) -> dict[str, Any] | None:
        """Return each client's mean, margin and number of rounds, and the evaluations it took.

        The margin is half of the 95 % interval that comes from drawing orders; another held-out
        set, or other rounds, would move the values farther. None if no round told any.
        """
        if not self._values:
            return None
        clients = {}
        for client, values in self._values.items():
            margin = 1.96 * math.hypot(*self._errors[client]) / len(values)
            clients[client] = {"mean": fmean(values), "margin": margin, "rounds": len(values)}
        ordered = sorted(clients.items(), key=lambda pair: -pair[1]["mean"])
        return {"clients": dict(ordered), "evaluations": self._evaluations}


def explain_shapley(found: Mapping[str, Any]) -> str:
    """Say in a sentence or two what the Shapley values of a summary are, and what they cost."""
    return (
        "Shapley values: each client's mean share of what a round's model gained, ± half of the "
        "95 % interval of the orders that were drawn. They took "
        f"{counted(found['evaluations'], 'evaluation')} and no training. Nobody is paid by them: "
        "whoever takes part twice with the same data has two shares."
    )


def caution(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Say in a sentence or two how far the contributions of a summary can be trusted."""
    unsure = sum(one["low"] <= 0 <= one["high"] for one in found.values())
    if unsure == len(found):
        told = "Every interval includes 0: the values do not tell the clients apart"
    elif unsure == 0:
        told = "None of the intervals includes 0"
    else:
        told = f"{unsure} of {len(found)} intervals include 0: these clients' values may be chance"
    return (
        f"{told}. Each is by how much the round's model is better than without the client's last "
        "update, with nine rounds in ten between low and high; it depends on who else takes part, "
        "and nobody is paid by it."
    )


def show_points(one: Mapping[str, Any]) -> str:
    """Show a contribution in points (hundredths), with its interval.

    >>> show_points({"mean": 0.0123, "low": -0.004, "high": 0.031})
    '+1.23 (-0.40 to +3.10)'
    """
    return f"{100 * one['mean']:+.2f} ({100 * one['low']:+.2f} to {100 * one['high']:+.2f})"

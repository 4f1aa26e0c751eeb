"""What each client contributed to the model: leave-one-out over the remembered updates, round by round.

A report for operators who ask whether a silo was worth it, never what anybody is paid by: such
values depend on the round, on who else is there and on a few held-out samples, and say so
themselves by how far they spread.
"""

from array import array
from collections.abc import Mapping
from statistics import fmean
from typing import Any, final

import numpy as np

SPREAD = (0.05, 0.95)
"""Between which parts of its rounds a client's interval lies."""


@final
class Contributions:
    """Adds them up, round by round."""

    def __init__(self) -> None:
        self._values: dict[str, array[float]] = {}

    def tell(self, told: Mapping[str, float]) -> None:
        """One round's."""
        for client, value in told.items():
            self._values.setdefault(client, array("d")).append(value)

    def summary(self) -> dict[str, dict[str, Any]] | None:
        """For each client the mean, nine rounds in ten, and how many rounds, the largest mean first; or None."""
        found = {}
        for client, values in self._values.items():
            low, high = (float(end) for end in np.quantile(values, SPREAD))
            found[client] = {"mean": fmean(values), "low": low, "high": high, "rounds": len(values)}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]["mean"])) or None


def caution(found: Mapping[str, Mapping[str, Any]]) -> str:
    """How far such values are to be trusted, in a sentence or two."""
    unsure = sum(one["low"] <= 0 <= one["high"] for one in found.values())
    told = {
        0: "None of the intervals includes 0",
        len(found): "Every interval includes 0: the values do not tell the clients apart",
    }.get(
        unsure, f"{unsure} of {len(found)} intervals include 0: these clients' values may be chance"
    )
    return (
        f"{told}. Each is by how much the round's model is better than without the client's last update, with nine "
        "rounds in ten between low and high; it depends on who else takes part, and nobody is paid by it."
    )


def show_points(one: Mapping[str, Any]) -> str:
    """In points (hundredths), as people read it.

    >>> show_points({"mean": 0.0123, "low": -0.004, "high": 0.031})
    '+1.23 (-0.40 to +3.10)'
    """
    return f"{100 * one['mean']:+.2f} ({100 * one['low']:+.2f} to {100 * one['high']:+.2f})"

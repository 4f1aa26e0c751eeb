"""Forecasts of a run: the allocator's own plan and outlook, or an extrapolation of the accuracy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bara.ledger.run_state import ClosedRound
from bara.randomness import stream
from bara.records import FloatArray
from bara.surrogates import LearningCurveBelief, interval

RECENT = 10
"""Rounds whose mean size and cost the extrapolation continues."""

FEWEST = 5
"""Rounds with a delivery that the extrapolation needs."""

BLOCKS = 64
"""Observations a curve is fitted to; a longer run is fitted in blocks of rounds, which is fast."""

DRAWS = 200
"""Curves that the extrapolation samples."""


@dataclass(frozen=True)
class AccuracyForecast:
    """A forecast of the final accuracy, with an interval that holds it nine times out of ten.

    Attributes:
        accuracy: The expected accuracy.
        low: The fifth percentile.
        high: The ninety-fifth percentile.
        source: Where the forecast comes from, in words.
    """

    accuracy: float
    low: float
    high: float
    source: str


def planned(belief: Mapping[str, Any] | None) -> AccuracyForecast | None:
    """Return the forecast in the allocator's plan, or None if the allocator told no plan."""
    plan = (belief or {}).get("plan")
    if plan is None:
        return None
    return AccuracyForecast(plan["accuracy"], plan["low"], plan["high"], "the allocator's plan")


def told_outlook(belief: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what the allocator told about more money and its goal, or None if it told nothing."""
    outlook = (belief or {}).get("outlook")
    if not outlook or not outlook.get("prospects"):
        return None
    return dict(outlook)


class Extrapolation:
    """A learning curve that follows a run and continues at the pace of its last rounds.

    Args:
        clients: How many clients the federation has.
    """

    def __init__(self, clients: int) -> None:
        self._clients = max(clients, 2)
        self._curve: LearningCurveBelief | None = None
        self._block = 0  # rounds that the curve counts as one observation
        self._told = 0  # rounds that the curve knows

    def forecast(self, rounds: Sequence[ClosedRound], rounds_left: int) -> AccuracyForecast | None:
        """Forecast the accuracy after the rounds that are left, or those that the money pays for.

        Args:
            rounds: All settled rounds of the run, beginning with the initial model.
            rounds_left: How many rounds the deadline leaves.

        Returns:
            None if too few rounds are known, or none is left.
        """
        played = [one for one in rounds if one.delivered]
        if len(played) < FEWEST:
            return None
        curve = self._fit(rounds[0].accuracy, played)
        if not rounds_left:
            return None
        recent = played[-RECENT:]
        n = float(np.mean([len(one.delivered) for one in recent]))
        cost = float(np.mean([one.paid for one in recent]))
        money_left = rounds[-1].total - rounds[-1].spent
        blocks_ahead = min(rounds_left, money_left / cost) / self._block
        finals = _finals(curve, n, blocks_ahead, len(rounds))
        low, high = interval(finals)
        source = "a learning curve fitted to the rounds so far"
        return AccuracyForecast(float(finals.mean()), low, high, source)

    def _fit(self, initial: float, played: Sequence[ClosedRound]) -> LearningCurveBelief:
        """Tell the curve the rounds it does not know yet, or fit a new one where blocks grow."""
        block = 1 << max((len(played) - 1) // BLOCKS, 0).bit_length()
        if self._curve is None or block != self._block:
            self._curve = LearningCurveBelief(self._clients, initial)
            self._block = block
            self._told = 0
        while len(played) - self._told >= block:
            some = played[self._told : self._told + block]
            n = min(round(np.mean([len(one.delivered) for one in some])), self._clients)
            self._curve.tell(max(n, 1), float(np.mean([one.accuracy for one in some])))
            self._told += block
        return self._curve


def _finals(curve: LearningCurveBelief, n: float, blocks_ahead: float, rounds: int) -> FloatArray:
    """Sample final accuracies, with the noise of a single evaluation."""
    rng = stream(0, "forecast", rounds)
    shapes = curve.draw(rng, DRAWS)
    noise = shapes.deviation(n)[0] * rng.standard_normal(DRAWS)
    finals: FloatArray = np.clip(shapes.after([n], [blocks_ahead], [n], [0])[0] + noise, 0, 1)
    return finals

"""How good the final model will be: the allocator's own plan, or a learning curve fitted to the rounds so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bara.ledger.progress import ClosedRound
from bara.randomness import stream
from bara.surrogates import LearningCurveBelief, interval

FEWEST = 5
"""Rounds before which a curve says nothing."""

BLOCKS = 64
"""Observations a curve is fitted to; a longer run is told in blocks of rounds, so that a page opens at once."""

DRAWS = 200
RECENT = 10


@dataclass(frozen=True)
class Forecast:
    """The final accuracy: expected, and an interval that holds it nine times out of ten.

    Attributes:
        accuracy: What is expected.
        low: The fifth percentile.
        high: The ninety-fifth.
        source: Where it comes from, in words.
    """

    accuracy: float
    low: float
    high: float
    source: str


def planned(belief: Mapping[str, Any] | None) -> Forecast | None:
    """What an allocator that plans expects itself."""
    plan = (belief or {}).get("plan")
    if plan is None:
        return None
    return Forecast(plan["accuracy"], plan["low"], plan["high"], "the allocator's plan")


class Extrapolation:
    """Follows a run and says where it would end if it went on as in its last rounds.

    Args:
        clients: N.
    """

    def __init__(self, clients: int) -> None:
        self._clients = max(clients, 2)
        self._block = 0
        self._told = 0
        self._curve: LearningCurveBelief | None = None

    def forecast(self, rounds: Sequence[ClosedRound], rounds_left: int) -> Forecast | None:
        """The final accuracy after so many more rounds, money permitting."""
        played = [one for one in rounds if one.delivered]
        if len(played) < FEWEST or not rounds_left:
            return None
        curve = self._fit(rounds[0].accuracy, played)
        recent = played[-RECENT:]
        n = float(np.mean([len(one.delivered) for one in recent]))
        cost = float(np.mean([one.paid for one in recent]))
        ahead = min(rounds_left, (rounds[-1].total - rounds[-1].spent) / cost) / self._block
        finals = self._finals(curve, n, ahead, len(rounds))
        return Forecast(float(finals.mean()), *interval(finals), "a learning curve fitted to the rounds so far")

    def _fit(self, initial: float, played: Sequence[ClosedRound]) -> LearningCurveBelief:
        block = 1 << max((len(played) - 1) // BLOCKS, 0).bit_length()
        if self._curve is None or block != self._block:
            self._curve, self._block, self._told = LearningCurveBelief(self._clients, initial), block, 0
        while len(played) - self._told >= block:
            some = played[self._told : self._told + block]
            n = min(round(np.mean([len(one.delivered) for one in some])), self._clients)
            self._curve.tell(max(n, 1), float(np.mean([one.accuracy for one in some])))
            self._told += block
        return self._curve

    def _finals(self, curve: LearningCurveBelief, n: float, ahead: float, rounds: int) -> Any:
        """Draws of the final accuracy, with the noise that a single evaluation has."""
        rng = stream(0, "forecast", rounds)
        shapes = curve.draw(rng, DRAWS)
        noise = shapes.deviation(n)[0] * rng.standard_normal(DRAWS)
        return np.clip(shapes.after([n], [ahead], [n], [0])[0] + noise, 0, 1)

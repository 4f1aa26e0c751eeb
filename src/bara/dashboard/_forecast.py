"""How good the final model will be, and what money buys: the allocator's own plan, or a curve fitted to the rounds."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bara.ledger.progress import ClosedRound
from bara.randomness import stream
from bara.records import Prospect, Purse
from bara.reports.hindsight import DRAWS, FEWEST, FittedCurve, Played
from bara.surrogates import LearningCurveBelief, interval

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
        self._fitted = FittedCurve(clients)

    def forecast(self, rounds: Sequence[ClosedRound], rounds_left: int) -> Forecast | None:
        """The final accuracy after so many more rounds, money permitting."""
        curve, played = self._fit(rounds)
        if curve is None or not rounds_left:
            return None
        recent = played[-RECENT:]
        n = float(np.mean([one.n for one in recent]))
        cost = float(np.mean([one.paid for one in recent]))
        ahead = min(rounds_left, (rounds[-1].total - rounds[-1].spent) / cost) / self._fitted.block
        finals = self._finals(curve, n, ahead, len(rounds))
        return Forecast(
            float(finals.mean()), *interval(finals), "a learning curve fitted to the rounds so far"
        )

    def prospects(
        self, rounds: Sequence[ClosedRound], max_rounds: int, *, ended: bool
    ) -> tuple[Prospect, ...]:
        """What the run comes to for more money; of one that has ended, what it would have come to for other sums."""
        curve, _ = self._fit(rounds)
        if curve is None:
            return ()
        last = rounds[-1]
        if ended:
            return self._fitted.prospects(Purse(last.spent, last.round), fresh=True).curve(
                rounds[0].accuracy
            )
        if last.round >= max_rounds:
            return ()
        purse = Purse(last.total, max_rounds, last.spent, last.round + 1)
        return self._fitted.prospects(purse).curve(max(one.accuracy for one in rounds[-RECENT:]))

    def _fit(
        self, rounds: Sequence[ClosedRound]
    ) -> tuple[LearningCurveBelief | None, Sequence[Played]]:
        played = [
            Played(len(one.delivered), one.paid, one.accuracy) for one in rounds if one.delivered
        ]
        return (
            self._fitted.fit(rounds[0].accuracy, played) if len(played) >= FEWEST else None
        ), played

    def _finals(self, curve: LearningCurveBelief, n: float, ahead: float, rounds: int) -> Any:
        """Draws of the final accuracy, with the noise that a single evaluation has."""
        rng = stream(0, "forecast", rounds)
        shapes = curve.draw(rng, DRAWS)
        noise = shapes.deviation(n)[0] * rng.standard_normal(DRAWS)
        return np.clip(shapes.after([n], [ahead], [n], [0])[0] + noise, 0, 1)


def told_outlook(belief: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What an allocator that can tell says of more money, and of its goal."""
    outlook = (belief or {}).get("outlook")
    return dict(outlook) if outlook and outlook.get("prospects") else None


def fitted_outlook(prospects: Sequence[Prospect]) -> dict[str, Any] | None:
    """The same of a curve fitted to the rounds."""
    return {"prospects": [asdict(one) for one in prospects]} if prospects else None

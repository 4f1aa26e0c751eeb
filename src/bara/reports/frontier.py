"""The frontier: what accuracy each allocator reaches with how much money, and what the baseline's costs the others."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from bara.randomness import stream
from bara.records import FloatArray
from bara.reports.result import Result, measure_of
from bara.reports.statistics import Estimate, stratified
from bara.reports.standings import baseline_of

RESAMPLES = 2000
"""Draws of seeds that an interval is made of."""


@final
@dataclass(frozen=True)
class Needed:
    """Which part of the budget reaches the goal, and the 95 % interval of it.

    Attributes:
        share: Interpolated; the smallest that was tried where that is enough, infinity where none
            is.
        low: The interval, over draws of the seeds; None with fewer than two.
        high: Likewise.
    """

    share: float
    low: float | None = None
    high: float | None = None


@final
class Frontier:
    """Accuracies of the kept models over parts of the budget, every setting counting alike.

    Args:
        results: Runs at several budgets (`share`); a setting counts with the seeds that all of them
            have.

    Attributes:
        names: What is compared: allocators, and what else was varied.
        shares: Parts of the configured budget, the smallest first.
        baseline: Whose accuracy is the goal: `even`, or the first where that was not run.
        measure: What people read of the metric.
        whole: The configured budget; None where settings have different ones.
        full: The part of the budget that it has for that: all of it, or the largest that was tried.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self.names = list(dict.fromkeys(result.name for result in results))
        self.shares = sorted({result.share for result in results if result.share is not None})
        self.baseline = baseline_of(results)
        self.measure = measure_of(results)
        budgets = {round(result.budget / result.share, 6) for result in results if result.share}
        self.whole = budgets.pop() if len(budgets) == 1 else None
        self.full = 1.0 if 1.0 in self.shares else self.shares[-1]
        runs: dict[str | None, dict[tuple[str, float | None], dict[int, float]]] = {}
        for one in results:
            runs.setdefault(one.setting, {}).setdefault((one.name, one.share), {})[one.seed] = (
                one.accuracy_kept
            )
        places = [(name, share) for name in self.names for share in self.shares]
        self._values: dict[str, list[FloatArray]] = {
            name: [] for name in self.names
        }  # [shares, seeds] of each setting
        for found in runs.values():
            seeds = sorted(set.intersection(*(set(found.get(place, ())) for place in places)))
            for name in self.names if seeds else ():
                rows = [[found[name, share][seed] for seed in seeds] for share in self.shares]
                self._values[name].append(np.array(rows))

    @property
    def is_complete(self) -> bool:
        """Whether there is a setting that all were run in with a seed."""
        return bool(self._values[self.baseline])

    def accuracy(self, name: str, share: float) -> Estimate:
        """The mean accuracy with that part of the budget."""
        at = self.shares.index(share)
        return stratified([values[at].tolist() for values in self._values[name]])

    @property
    def goal(self) -> float:
        """What the baseline reaches with all of the money."""
        return self.accuracy(self.baseline, self.full).mean

    def needed(self, name: str) -> Needed:
        """How much money reaches what the baseline reaches with all of it, paired by seed and setting."""
        at = self.shares.index(self.full)
        pairs = zip(self._values[name], self._values[self.baseline], strict=True)
        gains = [mine - theirs[at] for mine, theirs in pairs]
        share = self._crossing(np.mean([gain.mean(axis=1) for gain in gains], axis=0))
        if any(gain.shape[1] < 2 for gain in gains):
            return Needed(share)
        rng, drawn = stream(0, "frontier"), np.zeros((RESAMPLES, len(self.shares)))
        for gain in gains:
            seeds = rng.integers(gain.shape[1], size=(RESAMPLES, gain.shape[1]))
            drawn += gain[:, seeds].mean(axis=2).T
        low, high = np.quantile(
            [self._crossing(one) for one in drawn], [0.025, 0.975], method="nearest"
        )
        return Needed(share, float(low), float(high))

    def _crossing(self, gains: FloatArray) -> float:
        """Where the gain reaches zero, between two parts of the budget along the logarithm of money."""
        best = np.maximum.accumulate(gains)
        if best[-1] < 0:
            return float("inf")
        i = int(np.argmax(best >= 0))
        if i == 0:
            return self.shares[0]
        part = -best[i - 1] / (best[i] - best[i - 1])
        return float(self.shares[i - 1] * (self.shares[i] / self.shares[i - 1]) ** part)

    def to_json(self) -> dict[str, Any]:
        """As a plain tree; a part of the budget that was not found is null."""
        names = {}
        for name in self.names:
            accuracy = [
                {"share": share, **asdict(self.accuracy(name, share))} for share in self.shares
            ]
            needed = {
                key: value if value != float("inf") else None
                for key, value in asdict(self.needed(name)).items()
            }
            names[name] = {"accuracy": accuracy, "needed": needed}
        return {"baseline": self.baseline, "goal": self.goal, "names": names}

"""The frontier: the accuracy that each allocator reaches with each share of the budget.

It also answers which share each allocator needs for the accuracy of the baseline.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, final

import numpy as np

from bara.randomness import stream
from bara.records import FloatArray
from bara.reports.baselines import baseline_of
from bara.reports.result import Result, measure_of
from bara.reports.statistics import Estimate, stratified

RESAMPLES = 2000
"""The number of resamples of the seeds behind an interval."""


@final
@dataclass(frozen=True)
class Needed:
    """The share of the budget that reaches the goal, with its 95 % interval.

    Attributes:
        share: The share, interpolated between those that were tried; the smallest of them if it
            suffices, infinity if none does.
        low: The lower end of the interval over resampled seeds; None with fewer than two seeds.
        high: The upper end of that interval; None with fewer than two seeds.
    """

    share: float
    low: float | None = None
    high: float | None = None


@final
class Frontier:
    """The accuracies of the kept models over shares of the budget, every setting counting alike.

    Args:
        results: Runs at several budgets (`share`). Of each setting, only the seeds count with
            which every allocator was run at every share.
        against: The baseline, as for `baseline_of`.

    Attributes:
        names: The allocators that are compared, each with what else was varied.
        shares: The shares of the configured budget, the smallest first.
        baseline: The line whose accuracy is the goal: that of `against`; else of `even`, or the
            first if `even` was not run.
        measure: The name of the metric for readers.
        whole: The configured budget; None if the settings have different ones.
        full: The share that the baseline reaches the goal with: 1, or the largest that was tried.
    """

    def __init__(self, results: Sequence[Result], against: str = "") -> None:
        self.names = list(dict.fromkeys(result.name for result in results))
        self.shares = sorted({result.share for result in results if result.share is not None})
        self.baseline = baseline_of(results, against)
        self.measure = measure_of(results)
        budgets = {round(result.budget / result.share, 6) for result in results if result.share}
        self.whole = budgets.pop() if len(budgets) == 1 else None
        self.full = 1.0 if 1.0 in self.shares else self.shares[-1]
        settings: dict[str | None, dict[tuple[str, float | None], dict[int, float]]] = {}
        for one in results:
            places = settings.setdefault(one.setting, {})
            places.setdefault((one.name, one.share), {})[one.seed] = one.accuracy_kept
        # for each name an array [shares, seeds] of each setting
        self._values: dict[str, list[FloatArray]] = {name: [] for name in self.names}
        for places in settings.values():
            self._add_setting(places)

    def _add_setting(self, places: dict[tuple[str, float | None], dict[int, float]]) -> None:
        """Add one setting's accuracies by name and share, each by seed, if all share a seed."""
        every = [places.get(place, {}) for place in product(self.names, self.shares)]
        seeds = sorted(set.intersection(*map(set, every)))
        if not seeds:
            return
        for name in self.names:
            rows = []
            for share in self.shares:
                by_seed = places[name, share]
                rows.append([by_seed[seed] for seed in seeds])
            self._values[name].append(np.array(rows))

    @property
    def is_complete(self) -> bool:
        """True if some setting has a seed with which every allocator was run at every share."""
        return bool(self._values[self.baseline])

    def accuracy(self, name: str, share: float) -> Estimate:
        """Return the mean accuracy of an allocator with a share of the budget."""
        at = self.shares.index(share)
        return stratified([values[at].tolist() for values in self._values[name]])

    @property
    def goal(self) -> float:
        """The accuracy that the baseline reaches with the full budget."""
        return self.accuracy(self.baseline, self.full).mean

    def needed(self, name: str) -> Needed:
        """Return the share that reaches the goal, paired with the baseline by seed and setting."""
        at = self.shares.index(self.full)
        pairs = zip(self._values[name], self._values[self.baseline], strict=True)
        gains = [mine - theirs[at] for mine, theirs in pairs]
        share = self._crossing(np.mean([gain.mean(axis=1) for gain in gains], axis=0))
        if any(gain.shape[1] < 2 for gain in gains):
            return Needed(share)
        rng = stream(0, "frontier")
        drawn = np.zeros((RESAMPLES, len(self.shares)))
        for gain in gains:
            seeds = rng.integers(gain.shape[1], size=(RESAMPLES, gain.shape[1]))
            drawn += gain[:, seeds].mean(axis=2).T
        crossings = list(map(self._crossing, drawn))
        low, high = np.quantile(crossings, [0.025, 0.975], method="nearest")
        return Needed(share, float(low), float(high))

    def _crossing(self, gains: FloatArray) -> float:
        """Return the share at which the gain reaches zero, interpolated along the log of money."""
        best = np.maximum.accumulate(gains)
        if best[-1] < 0:
            return float("inf")
        i = int(np.argmax(best >= 0))
        if i == 0:
            return self.shares[0]
        fraction = -best[i - 1] / (best[i] - best[i - 1])
        return float(self.shares[i - 1] * (self.shares[i] / self.shares[i - 1]) ** fraction)

    def to_json(self) -> dict[str, Any]:
        """Return a plain tree; a share that was not found is null."""
        names = {}
        for name in self.names:
            accuracy = []
            for share in self.shares:
                found = self.accuracy(name, share)
                accuracy.append({"share": share, **asdict(found)})
            needed = asdict(self.needed(name))
            for key, value in needed.items():
                if value == float("inf"):
                    needed[key] = None
            names[name] = {"accuracy": accuracy, "needed": needed}
        return {"baseline": self.baseline, "goal": self.goal, "names": names}

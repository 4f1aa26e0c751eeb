"""Where each allocator stands over a suite: against even allocation, and against the best of its rivals."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from bara.experiments.results import Result
from bara.experiments.statistics import Estimate, stratified
from bara.experiments.suites import Setting

BASELINE = "even"

Runs = dict[int, float]
"""Final accuracies by seed."""


@dataclass(frozen=True)
class Standing:
    """One allocator over a whole suite. Accuracies and differences are fractions.

    Attributes:
        allocator: Which.
        final: Its mean final accuracy, every setting counting alike.
        last10: Likewise over the last ten rounds.
        gain: Final accuracy less the baseline's, paired by seed.
        error_removed: Which part of the baseline's remaining error it removed, mean over the settings that are not
            IID; None where there is none.
        over_rivals: Final accuracy less that of the best other allocator of each setting, chosen in hindsight.
        worst: The setting in which it is farthest behind that rival, and by how much.
    """

    allocator: str
    final: float
    last10: float
    gain: Estimate
    error_removed: float | None
    over_rivals: Estimate | None
    worst: tuple[str, Estimate] | None


class Standings:
    """Adds up a suite's results.

    Args:
        settings: The suite.
        results: Its runs; a setting counts once there is a seed with which every allocator has run it.

    Attributes:
        allocators: All that were run.
        baseline: The one that others are measured against: `even`, or the first where that was not run.
        settings: Those that count.
    """

    def __init__(self, settings: Sequence[Setting], results: Sequence[Result]) -> None:
        self.allocators = list(dict.fromkeys(result.allocator for result in results))
        self.baseline = BASELINE if BASELINE in self.allocators else self.allocators[0]
        self._final: dict[str, dict[str, Runs]] = {}
        self._last10: dict[str, dict[str, Runs]] = {}
        for result in results:
            setting = result.setting or ""
            self._final.setdefault(setting, {}).setdefault(result.allocator, {})[result.seed] = result.accuracy_final
            self._last10.setdefault(setting, {}).setdefault(result.allocator, {})[result.seed] = result.accuracy_last10
        self.settings = [one for one in settings if self._is_complete(self._final.get(one.name, {}))]

    def _is_complete(self, runs: dict[str, Runs]) -> bool:
        seeds = [set(runs.get(allocator, ())) for allocator in self.allocators]
        return bool(set.intersection(*seeds))

    def final(self, setting: str, allocator: str) -> Runs:
        """Final accuracies by seed."""
        return self._final[setting][allocator]

    def last10(self, setting: str, allocator: str) -> Runs:
        """Means over the last ten rounds, by seed."""
        return self._last10[setting][allocator]

    def of(self, allocator: str) -> Standing:
        """Where this allocator stands."""
        names = [setting.name for setting in self.settings]
        against = [
            (name, self._over(name, allocator, rival)) for name in names if (rival := self._rival(name, allocator))
        ]
        margins = [(name, stratified([differences])) for name, differences in against]
        return Standing(
            allocator,
            final=fmean(fmean(self.final(name, allocator).values()) for name in names),
            last10=fmean(fmean(self.last10(name, allocator).values()) for name in names),
            gain=stratified([self._over(name, allocator, self.baseline) for name in names]),
            error_removed=self._error_removed(allocator),
            over_rivals=stratified([differences for _, differences in against]) if against else None,
            worst=min(margins, key=lambda pair: pair[1].mean, default=None),
        )

    def _over(self, setting: str, allocator: str, other: str) -> list[float]:
        mine, theirs = self.final(setting, allocator), self.final(setting, other)
        return [mine[seed] - theirs[seed] for seed in mine if seed in theirs]

    def _rival(self, setting: str, allocator: str) -> str | None:
        """The best of the others in this setting."""
        others = [other for other in self.allocators if other != allocator]
        return max(others, key=lambda other: fmean(self.final(setting, other).values()), default=None)

    def _error_removed(self, allocator: str) -> float | None:
        parts = []
        for setting in self.settings:
            error = 1 - fmean(self.final(setting.name, self.baseline).values())
            if error and not setting.iid:
                parts.append(fmean(self._over(setting.name, allocator, self.baseline)) / error)
        return fmean(parts) if parts else None

    def to_json(self) -> list[dict[str, Any]]:
        """Every allocator's standing as a plain tree."""
        return [asdict(self.of(allocator)) for allocator in self.allocators]

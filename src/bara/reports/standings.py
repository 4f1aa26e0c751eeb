"""Where each allocator stands over a suite of settings."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, NamedTuple, Self

from bara.reports.baselines import baseline_of
from bara.reports.result import Result, measure_of
from bara.reports.statistics import Estimate, differences, stratified

Runs = dict[int, float]
"""Accuracies by seed."""


class SuiteSetting(NamedTuple):
    """A setting of a suite: its name, and whether all clients hold alike data."""

    name: str
    iid: bool


@dataclass(frozen=True)
class Standing:
    """The results of one allocator over a whole suite, as fractions.

    Attributes:
        allocator: The allocator, with what else was varied.
        final: Its mean accuracy, every setting counting alike.
        last10: Likewise over the last ten rounds.
        gain: Its accuracy less the baseline's, paired by seed.
        error_removed: The share of the baseline's remaining error that it removed, averaged over
            the settings that are not IID; None where there is none.
        over_rivals: Its accuracy less that of the best other allocator of each setting, chosen in
            hindsight.
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
    """The results of a suite, added up for each allocator.

    Args:
        settings: The settings of the suite.
        results: The runs; a setting counts once every allocator has run it with a common seed.
        accuracy: The field of a result that counts; the kept model's accuracy unless given.
        against: What others are measured against, as for `baseline_of`.

    Attributes:
        allocators: All allocators that were run, each with what else was varied.
        baseline: The allocator that others are measured against.
        measure: The title of the metric.
        settings: The settings that count.
    """

    def __init__(
        self,
        settings: Sequence[SuiteSetting],
        results: Sequence[Result],
        accuracy: str = "accuracy_kept",
        against: str = "",
    ) -> None:
        self.allocators = list(dict.fromkeys(result.name for result in results))
        self.baseline = baseline_of(results, against)
        self.measure = measure_of(results)
        self._final: dict[str, dict[str, Runs]] = {}
        self._last10: dict[str, dict[str, Runs]] = {}
        for result in results:
            setting = result.setting or ""
            final = self._final.setdefault(setting, {}).setdefault(result.name, {})
            final[result.seed] = getattr(result, accuracy)
            last10 = self._last10.setdefault(setting, {}).setdefault(result.name, {})
            last10[result.seed] = result.accuracy_last10
        self.settings = [one for one in settings if self._is_complete(one.name)]

    @classmethod
    def of_suite(
        cls, settings: Sequence[SuiteSetting], results: Sequence[Result], against: str = ""
    ) -> Self | None:
        """Return the standings; None without a suite, or where too much failed to say."""
        if not settings or not results:
            return None
        standings = cls(settings, results, against=against)
        return standings if standings.settings else None

    def _is_complete(self, setting: str) -> bool:
        runs = self._final.get(setting, {})
        seeds = [set(runs.get(allocator, ())) for allocator in self.allocators]
        return bool(set.intersection(*seeds))

    def final(self, setting: str, allocator: str) -> Runs:
        """Return an allocator's accuracies in a setting, by seed."""
        return self._final[setting][allocator]

    def last10(self, setting: str, allocator: str) -> Runs:
        """Return an allocator's means over the last ten rounds in a setting, by seed."""
        return self._last10[setting][allocator]

    def of(self, allocator: str) -> Standing:
        """Add up where an allocator stands."""
        names = [setting.name for setting in self.settings]
        over_rivals = []
        margins = []
        for name in names:
            rival = self._rival(name, allocator)
            if rival is not None:
                differences = self._over(name, allocator, rival)
                over_rivals.append(differences)
                margins.append((name, stratified([differences])))
        return Standing(
            allocator,
            final=fmean(fmean(self.final(name, allocator).values()) for name in names),
            last10=fmean(fmean(self.last10(name, allocator).values()) for name in names),
            gain=stratified([self._over(name, allocator, self.baseline) for name in names]),
            error_removed=self._error_removed(allocator),
            over_rivals=stratified(over_rivals) if over_rivals else None,
            worst=min(margins, key=lambda pair: pair[1].mean, default=None),
        )

    def to_json(self) -> list[dict[str, Any]]:
        """Return every allocator's standing as a plain tree."""
        return [asdict(self.of(allocator)) for allocator in self.allocators]

    def _over(self, setting: str, allocator: str, other: str) -> list[float]:
        return differences(self.final(setting, allocator), self.final(setting, other))

    def _rival(self, setting: str, allocator: str) -> str | None:
        """Name the best of the other allocators in this setting."""
        others = [other for other in self.allocators if other != allocator]
        return max(
            others, key=lambda other: fmean(self.final(setting, other).values()), default=None
        )

    def _error_removed(self, allocator: str) -> float | None:
        shares = []
        for setting in self.settings:
            error = 1 - fmean(self.final(setting.name, self.baseline).values())
            if error and not setting.iid:
                gain = fmean(self._over(setting.name, allocator, self.baseline))
                shares.append(gain / error)
        return fmean(shares) if shares else None

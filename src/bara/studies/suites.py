"""Suites: named sets of settings that allocators are compared over, and where each allocator stands over one."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Any, Self

from bara.errors import UnknownNameError
from bara.plugins import nearest
from bara.reports.result import Result
from bara.reports.statistics import Estimate, stratified
from bara.runs.config import Config, change_key, read_toml, shipped
from bara.runs.data import settled


@dataclass(frozen=True)
class Setting:
    """One experiment of a suite.

    Attributes:
        name: What tables call it.
        config: The experiment; a comparison puts in allocator and seed.
    """

    name: str
    config: Config

    @property
    def iid(self) -> bool:
        """Whether all clients hold alike data, so that it hardly matters how many take part."""
        return self.config.clients.partition == "iid"


def settings(
    suite: str,
    changes: Mapping[str, Any] = MappingProxyType({}),
    *,
    only: Sequence[str] = (),
    full: bool = False,
) -> list[Setting]:
    """A suite's settings.

    Args:
        suite: Its name.
        changes: Keys to change in all of them, as for `Config.load`.
        only: Which of its settings; all unless given.
        full: At full size, for larger machines: all samples of every dataset.
    """
    suites = shipped("suites")
    if suite not in suites:
        raise UnknownNameError(f"no suite is named {suite!r}; {nearest(suite, list(suites))}")
    tree = read_toml(suites[suite])
    known = tree["settings"]
    for name in only:
        if name not in known:
            raise UnknownNameError(
                f"suite {suite!r} has no setting {name!r}; {nearest(name, list(known))}"
            )
    made = {name: _merged(tree["base"], known[name]) for name in known if not only or name in only}
    if full:
        for setting in made.values():
            for key in ("train_samples", "evaluation_samples"):
                setting["data"].pop(key, None)
    for setting in made.values():
        for key, value in changes.items():
            change_key(setting, key, value)
    return [Setting(name, settled(Config.parse(setting))) for name, setting in made.items()]


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes on top of the base, table by table."""
    merged = deepcopy(dict(base))
    for key, value in changes.items():
        merged[key] = _merged(merged.get(key, {}), value) if isinstance(value, Mapping) else value
    return merged


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
        error_removed: Which part of the baseline's remaining error it removed, mean over the
            settings that are not IID; None where there is none.
        over_rivals: Final accuracy less that of the best other allocator of each setting, chosen in
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


def baseline_of(results: Sequence[Result]) -> str:
    """What others are measured against: `even`, as it was first run, or the first where it was not run."""
    return next((result for result in results if result.allocator == BASELINE), results[0]).name


class Standings:
    """Adds up a suite's results.

    Args:
        settings: The suite.
        results: Its runs; a setting counts once there is a seed with which every allocator has run
            it.
        measure: Which of their accuracies counts: that of the model one takes home, unless said
            otherwise.

    Attributes:
        allocators: All that were run, each with what else was varied.
        baseline: The one that others are measured against.
        measure: What people read of the metric.
        settings: Those that count.
    """

    def __init__(
        self, settings: Sequence[Setting], results: Sequence[Result], measure: str = "accuracy_kept"
    ) -> None:
        self.allocators = list(dict.fromkeys(result.name for result in results))
        self.baseline = baseline_of(results)
        self.measure = ", ".join(
            dict.fromkeys(getattr(result, "measure", "accuracy") for result in results)
        )
        self._final: dict[str, dict[str, Runs]] = {}
        self._last10: dict[str, dict[str, Runs]] = {}
        for result in results:
            setting = result.setting or ""
            self._final.setdefault(setting, {}).setdefault(result.name, {})[result.seed] = getattr(
                result, measure
            )
            self._last10.setdefault(setting, {}).setdefault(result.name, {})[result.seed] = (
                result.accuracy_last10
            )
        self.settings = [
            one for one in settings if self._is_complete(self._final.get(one.name, {}))
        ]

    @classmethod
    def of_suite(cls, settings: Sequence[Setting], results: Sequence[Result]) -> Self | None:
        """None without a suite, or where too much failed to say."""
        standings = cls(settings, results) if settings and results else None
        return standings if standings and standings.settings else None

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
            (name, self._over(name, allocator, rival))
            for name in names
            if (rival := self._rival(name, allocator))
        ]
        margins = [(name, stratified([differences])) for name, differences in against]
        return Standing(
            allocator,
            final=fmean(fmean(self.final(name, allocator).values()) for name in names),
            last10=fmean(fmean(self.last10(name, allocator).values()) for name in names),
            gain=stratified([self._over(name, allocator, self.baseline) for name in names]),
            error_removed=self._error_removed(allocator),
            over_rivals=stratified([differences for _, differences in against])
            if against
            else None,
            worst=min(margins, key=lambda pair: pair[1].mean, default=None),
        )

    def _over(self, setting: str, allocator: str, other: str) -> list[float]:
        mine, theirs = self.final(setting, allocator), self.final(setting, other)
        return [mine[seed] - theirs[seed] for seed in mine if seed in theirs]

    def _rival(self, setting: str, allocator: str) -> str | None:
        """The best of the others in this setting."""
        others = [other for other in self.allocators if other != allocator]
        return max(
            others, key=lambda other: fmean(self.final(setting, other).values()), default=None
        )

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

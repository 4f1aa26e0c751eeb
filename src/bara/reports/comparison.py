"""A comparison: the results of several runs side by side."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, final

from bara.reports.frames import frame, round_rows, run_rows
from bara.reports.frontier import Frontier
from bara.reports.result import Plotted, Result, in_short, short_key, varied_keys
from bara.reports.standings import Standings, SuiteSetting
from bara.text import counted, listing


@dataclass(frozen=True)
class Failure:
    """A run of a comparison that failed, and why; the other runs go on."""

    allocator: str
    seed: int
    error: str
    setting: str | None = None
    varied: dict[str, Any] = field(default_factory=dict)
    share: float | None = None
    tuned: dict[str, Any] = field(default_factory=dict)

    @property
    def variant(self) -> str | None:
        """The values that were varied beside the allocator, in short."""
        return in_short(self.varied)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that say something."""
        return {key: value for key, value in vars(self).items() if value not in (None, {})}


def label(outcome: Result | Failure) -> str:
    """Name the run that a result or a failure is of."""
    words = [outcome.setting, outcome.allocator, outcome.variant, in_short(outcome.tuned)]
    if outcome.share is not None:
        words.append(f"{100 * outcome.share:.4g} % of the budget")
    words.append(f"seed {outcome.seed}")
    return ", ".join(word for word in words if word)


@final
@dataclass(frozen=True, repr=False)
class Comparison(Plotted):
    """The results of several allocators, or whatever else was varied, over paired seeds.

    Attributes:
        results: The runs that ended, in the order of the table.
        failures: The runs that failed, and why.
        command: The command that made it; a line for each time that runs were added.
        config: The keys that all runs share, as TOML; empty where the runs are of a suite.
        bases: The experiments before anything was varied, by setting; "" outside of a suite.
        against: What the others are measured against, as for `bara.compare`.
        script: The Python program that repeats it, where no command does.
        pilots: The runs that tuning chose by.
    """

    results: list[Result]
    failures: list[Failure] = field(default_factory=list)
    command: str = ""
    config: str = ""
    bases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    against: str = ""
    script: str = ""
    pilots: list[Result] = field(default_factory=list)

    @property
    def _has_shares(self) -> bool:
        return any(result.share is not None for result in self.results)

    @cached_property
    def frontier(self) -> Frontier | None:
        """Accuracy over money, where several budgets were tried with the same seeds."""
        if not self._has_shares:
            return None
        frontier = Frontier(self.results, self.against)
        return frontier if frontier.is_complete else None

    @cached_property
    def standings(self) -> Standings | None:
        """Where each allocator stands over a suite, with one budget for each setting."""
        if "" in self.bases or self._has_shares:
            return None
        settings = []
        for name, tree in self.bases.items():
            partition = tree.get("clients", {}).get("partition")
            settings.append(SuiteSetting(name, iid=partition == "iid"))
        return Standings.of_suite(settings, self.results, self.against)

    def to_frame(self, *, rounds: bool = False) -> Any:
        """Return a pandas frame with a line for each run; with `rounds`, for each round of each."""
        return frame(round_rows(self.results) if rounds else run_rows(self.results))

    def to_json(self, *, history: bool = False) -> dict[str, Any]:
        """Return the comparison as a plain tree; with `history`, every round, too."""
        tree: dict[str, Any] = {
            "results": [result.to_json(history=history) for result in self.results],
            "failures": [failure.to_json() for failure in self.failures],
        }
        if self.pilots:
            tree["pilots"] = [result.to_json(history=history) for result in self.pilots]
        if self.against:
            tree["against"] = self.against
        if self.standings is not None:
            tree["standings"] = self.standings.to_json()
        if self.frontier is not None:
            tree["frontier"] = self.frontier.to_json()
        return tree

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        from bara.reports.markup import markdown  # noqa: PLC0415 - which knows this module

        return markdown(self)

    def to_latex(self) -> str:
        """Return the table as LaTeX, for the package booktabs."""
        from bara.reports.markup import latex  # noqa: PLC0415 - as above

        return latex(self)

    def save(self, folder: str | Path, *, columns: int = 1) -> None:
        """Write report, tables, data and each figure (PNG, SVG, PDF) into a folder."""
        from bara.reports.publication import publish  # noqa: PLC0415 - as above

        publish(self, Path(folder), columns=columns)

    def __repr__(self) -> str:
        """Describe the comparison in a line."""
        runs = self.results
        words = [_listed(run.allocator for run in runs)]
        for key in varied_keys(runs):
            words.append(f"{short_key(key)}: {_listed(run.varied.get(key) for run in runs)}")
        if any(run.setting for run in runs):
            words.append(counted(len({run.setting for run in runs}), "setting"))
        if any(run.share for run in runs):
            words.append(counted(len({run.share for run in runs}), "budget"))
        words.append(counted(len({run.seed for run in runs}), "seed"))
        if self.failures:
            words.append(f"{len(self.failures)} failed")
        size = counted(len(runs), "run")
        reused = sum(run.reused for run in runs)
        if reused:
            size += f", {reused} of them reused"
        return f"<Comparison: {size}: {'; '.join(words)}>"

    def _repr_html_(self) -> str:
        from bara.reports.html import comparison_in_short  # noqa: PLC0415 - as above

        return comparison_in_short(self)


def _listed(values: Iterable[Any], most: int = 6) -> str:
    """List each value once, at most six of them."""
    names = list(dict.fromkeys(map(str, values)))
    return listing(names, most)

"""Tuning as part of comparing: the same grid and the same pilot seeds for every contestant.

A contestant is one line of the table: an allocator with whatever else is varied, in a setting, with
a share of the budget. Of the values that are tried for it, those count whose pilot runs keep the
best models on validation data; the runs that are reported have other seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean
from typing import Any

from bara.errors import BaraError, ConfigError
from bara.reports.comparison import Failure, label
from bara.reports.result import Result, in_short
from bara.studies.grid import Cell

FIRST_PILOT = 1_000_000
"""The seed of the first pilot run, far from the seeds that people count up from."""

Contestant = tuple[Any, ...]
"""What tells a contestant from the others."""


@dataclass(frozen=True)
class Tuning:
    """The values to try for every contestant.

    Attributes:
        grid: The keys, each with its values.
        pilots: The number of pilot seeds.
    """

    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    pilots: int = 2

    def __post_init__(self) -> None:
        """Refuse tuning without pilots or without a choice."""
        if self.pilots < 1:
            raise ConfigError(f"pilots must be at least 1, got {self.pilots}")
        for key, values in self.grid.items():
            if isinstance(values, str) or len(values) < 2:
                raise ConfigError(f"{key} must have two values or more to tune, got {values!r}")

    @property
    def seeds(self) -> list[int]:
        """The pilot seeds."""
        return list(range(FIRST_PILOT, FIRST_PILOT + self.pilots))

    def check(self, grid: Sequence[Cell]) -> None:
        """Refuse runs to report that leave tuning no data or no seeds of its own."""
        for cell in grid:
            config = cell.config
            if config.engine.has_data and config.data.held_out == "same":
                raise ConfigError(
                    'tuning chooses on validation data, and data.held_out = "same" leaves no other '
                    'data to report on; use data.held_out = "halves"'
                )
            if config.seed in self.seeds:
                raise ConfigError(
                    f"seed {config.seed} is one of the pilots' ({self.seeds[0]} to "
                    f"{self.seeds[-1]}); report others"
                )

    @property
    def points(self) -> list[dict[str, Any]]:
        """All combinations of values."""
        points = []
        for values in product(*self.grid.values()):
            points.append(dict(zip(self.grid, values, strict=True)))
        return points


def chosen(
    results: Sequence[Result], failures: Sequence[Failure]
) -> dict[Contestant, dict[str, Any]]:
    """Return the values whose pilot runs keep the best models, by contestant.

    Values with a failed pilot run are out. Of equally good ones the first count.

    Args:
        results: The pilot runs that ended.
        failures: Those that failed.
    """
    failed = {(contestant(one), in_short(one.tuned)) for one in failures}
    scores: dict[Contestant, dict[str, tuple[dict[str, Any], list[float]]]] = {}
    for result in results:
        point = in_short(result.tuned) or ""
        if (contestant(result), point) not in failed:
            own = scores.setdefault(contestant(result), {})
            own.setdefault(point, (result.tuned, []))[1].append(result.validated)
    for failure in failures:
        if contestant(failure) not in scores:
            raise BaraError(
                f"every value that was tried has a failed pilot run, of which one is "
                f"{label(failure)}: {failure.error}"
            )
    best = {}
    for one, points in scores.items():
        best[one], _ = max(points.values(), key=lambda point: fmean(point[1]))
    return best


def with_chosen(grid: Sequence[Cell], best: Mapping[Contestant, Mapping[str, Any]]) -> list[Cell]:
    """Return the cells with the values that were chosen for their contestants."""
    order = list(best)
    found = [cell for cell in grid if cell.tuned == best[contestant(cell)]]
    return sorted(found, key=lambda cell: (cell.config.seed, order.index(contestant(cell))))


def contestant(run: Cell | Result | Failure) -> Contestant:
    """Return what tells the contestant of a run from the others."""
    allocator = run.config.allocator.label if isinstance(run, Cell) else run.allocator
    return run.setting, in_short(run.varied), run.share, allocator

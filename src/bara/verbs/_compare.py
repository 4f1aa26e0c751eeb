"""Allocators, mechanisms and whatever else side by side, over one federation or a suite of them."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from bara.errors import BaraError, ConfigError, InterruptionError
from bara.files import write_whole
from bara.records import decimal_money
from bara.reports.comparison import Comparison, Kept, in_one_table
from bara.reports.data_files import write_runs
from bara.reports.html import comparison_report
from bara.reports.result import Result
from bara.runs.config import Config, Source
from bara.runs.progress import Wanted
from bara.runs.sections import AllocatorSection, MechanismSection, Named
from bara.studies.grid import Cell, Failure, cells, label
from bara.studies.suites import settings
from bara.verbs._grid import run_grid

USUAL = ("even", "even:carry_over=true", "increasing", "finale", "bara", "planner")
"""The allocators that are compared unless others are asked for."""

Parts = Sequence[Any] | Mapping[str, Any]
"""Names, classes or objects; or, to call them otherwise, a mapping from what they are called to them."""


def compare(
    source: Source = None,
    /,
    *,
    allocators: Parts | None = None,
    mechanisms: Parts | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    budgets: Sequence[float] = (),
    seeds: int = 5,
    suite: str | None = None,
    only: Sequence[str] = (),
    full: bool = False,
    out: str | Path | None = None,
    jobs: int = -1,
    cluster: str | None = None,
    progress: Wanted = None,
    command: str = "",
    **keys: Any,
) -> Comparison:
    """Run the same federation, or a suite of them, under several allocators and seeds, side by side on all cores.

    Args:
        source: The experiment, as for `run`; None for the defaults, or for a suite.
        allocators: Names (`even:carry_over=true`), classes or objects, also such as a notebook
            defines; a mapping calls them otherwise (`{"mine": MyAllocator()}`). Unless given, the
            experiment's own, if any, and the usual.
        mechanisms: Likewise; the experiment's own unless given.
        grid: What else to vary: any keys, each with its values (`{"training.memory": ["off",
            "plain"]}`).
        budgets: Parts of the budget to try each with (0.25, 0.5, 1), or amounts where one is above
            10.
        seeds: How many, from the experiment's own upwards.
        suite: Every setting of a suite instead of one experiment: `development`, `report`.
        only: These settings of the suite.
        full: All samples of the suite's datasets, for larger machines.
        out: A folder for the results, a table and a report; what an earlier call finished there is
            not run again, and what else it compared stays in the table.
        jobs: Processes; -1 for all cores.
        cluster: Run on a cluster instead: `dask:tcp://HOST:8786` or `ray:HOST:6379`.
        progress: Whether to show how far it is; None for where somebody watches, a terminal or a
            notebook.
        command: What repeats it, for reports.
        **keys: Changes to the experiment, as for `run`.

    Raises:
        InterruptionError: After Ctrl-C; `so_far` holds the runs that had ended.
    """
    chosen = dict(grid or {})
    allocators = _taken(chosen, "allocator", allocators)
    mechanisms = _taken(chosen, "mechanism", mechanisms)
    if mechanisms is not None:
        chosen = {"mechanism": _named(mechanisms, MechanismSection), **chosen}
    bases, played = _experiments(source, suite, keys, chosen, only=only, full=full)
    first = played[0][2]
    wanted = _named(allocators, AllocatorSection) if allocators is not None else _usual(first)
    shares = _shares(budgets, first, suite)
    every = [
        cell
        for name, varied, one in played
        for cell in cells(one, wanted, seeds, name, varied, shares)
    ]
    folder = None if out is None else Path(out)
    kept = _kept(folder, every, command, bases)
    try:
        results, failures = run_grid(every, folder, jobs, cluster, progress=progress)
    except InterruptionError as stopped:
        results, failures = stopped.so_far
        stopped.so_far = _comparison(results, failures, kept, None)
        raise
    found = _comparison(results, failures, kept, folder)
    if not found.results:
        raise BaraError(
            f"all runs ({len(every)}) failed; the first was {label(failures[0])}: {failures[0].error}"
        )
    if folder is not None:
        write_runs(found, folder)
        write_whole(folder / "report.html", [comparison_report(found)])
    return found


def _taken(grid: dict[str, Sequence[Any]], part: str, given: Parts | None) -> Parts | None:
    """Allocators and mechanisms may be varied as any key; there they are what is compared."""
    for key in (part, f"{part}.name"):
        if key in grid:
            if given is not None:
                raise ConfigError(f"give either {part}s or values of {key} to vary, not both")
            given = grid.pop(key)
    return given


def _named(parts: Parts, kind: type[Named]) -> list[Named]:
    """Each as a configuration has it; of a mapping, under its name there."""
    if isinstance(parts, str):
        raise ConfigError(
            f"what is compared must be a list of names, classes or objects, got the text {parts!r}"
        )
    if not isinstance(parts, Mapping):
        return [kind.model_validate(one) for one in parts]
    return [kind.model_validate(part).renamed(name) for name, part in parts.items()]


def _usual(experiment: Config) -> list[Named]:
    own = [experiment.allocator] if "allocator" in experiment.model_fields_set else []
    return [*own, *_named(USUAL, AllocatorSection)]


def _experiments(
    source: Source,
    suite: str | None,
    keys: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    *,
    only: Sequence[str],
    full: bool,
) -> tuple[dict[str, Config], list[tuple[str | None, dict[str, Any], Config]]]:
    """The experiments before anything is varied, by setting; and setting, what is varied and experiment of each."""
    if suite and source is not None:
        raise ConfigError(f"give either an experiment or the suite {suite!r}, not both")
    if (full or only) and not suite:
        raise ConfigError("full and only need a suite")
    if "seed" in grid:
        raise ConfigError(
            "seed cannot be varied like other keys; set seeds to how many there are, and seed to the first"
        )
    for key, values in grid.items():
        if isinstance(values, str) or not values:
            raise ConfigError(f"{key} must have a list of values to vary over, got {values!r}")
    bases: dict[str, Config] = {}
    played: list[tuple[str | None, dict[str, Any], Config]] = []
    for values in product(*grid.values()):
        varied = dict(zip(grid, values, strict=True))
        shown = {key: _shown(value) for key, value in varied.items()}
        if suite:
            made = {
                one.name: one.config
                for one in settings(suite, {**keys, **varied}, only=only, full=full)
            }
            played += [(name, shown, config) for name, config in made.items()]
        else:
            made = {"": Config.load(source, **{**keys, **varied})}
            played.append((None, shown, made[""]))
        bases = bases or made
    return bases, played


def _shown(value: Any) -> Any:
    """A varied value as tables name it."""
    if isinstance(value, Named):
        return value.label
    return value if isinstance(value, bool | int | float | str) else str(value)


MOST_SHARE = 10.0
"""The largest number that is taken for a part of the configured budget, not for an amount."""


def _shares(budgets: Sequence[float], experiment: Config, suite: str | None) -> list[float]:
    """The parts of the configured budget that are asked for."""
    found = sorted(set(map(float, budgets)))
    if not all(0 < one < float("inf") for one in found):
        raise ConfigError(
            f"budgets must be positive numbers, got {', '.join(f'{one:g}' for one in found)}"
        )
    if not found or found[-1] <= MOST_SHARE:
        return found
    if suite:
        raise ConfigError(
            "budgets above 10 are amounts, but each setting of a suite has its own budget; give shares, like 0.5"
        )
    total = decimal_money(experiment.purse().total)
    return [one / total for one in found]


def _kept(
    folder: Path | None, grid: Sequence[Cell], command: str, bases: Mapping[str, Config]
) -> Kept:
    """How the comparison is made, also in the folder, joined to what that holds already."""
    config = bases[""].to_toml() if "" in bases else ""
    trees = {name: one.model_dump(mode="json") for name, one in bases.items()}
    if folder is None:
        return Kept(command, config, [], trees)
    kept = Kept(command, config, [cell.key for cell in grid], trees)
    if Kept.is_in(folder):
        kept = Kept.find(folder).joined(folder, kept, grid)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept.keep(folder)
    except OSError as error:
        raise ConfigError(f"cannot keep results in {str(folder)!r}: {error.strerror}") from None
    return kept


def _comparison(
    results: Sequence[Result], failures: Sequence[Failure], kept: Kept, folder: Path | None
) -> Comparison:
    if folder is not None and len(kept.cells) > len(results) + len(
        failures
    ):  # others were there before
        results = kept.results(folder)
    return Comparison(
        in_one_table(results, kept.bases), list(failures), kept.command, kept.config, kept.bases
    )

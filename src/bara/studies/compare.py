"""Allocators, mechanisms and whatever else side by side, over one federation or a suite."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from bara.errors import BaraError, ConfigError, InterruptionError
from bara.files import write_whole
from bara.records import decimal_money
from bara.reports.baselines import baselines
from bara.reports.comparison import Comparison, Failure, label
from bara.reports.html import comparison_report
from bara.reports.publication import write_runs
from bara.reports.result import Result
from bara.runs.config import Config, Source
from bara.runs.config_sections import AllocatorSection, MechanismSection, Named
from bara.runs.progress import Wanted
from bara.studies.grid import Cell, cells, run_grid, run_of
from bara.studies.script import python_script
from bara.studies.stored import Description, in_one_table, to_come
from bara.studies.suites import settings
from bara.studies.tuning import Contestant, Tuning, chosen, with_chosen

USUAL = ("even", "even:carry_over=true", "increasing", "finale", "bara", "planner")
"""The allocators that are compared unless others are asked for."""

MOST_SHARE = 10.0
"""The largest number that is taken for a share of the configured budget, not for an amount."""

Parts = Sequence[Any] | Mapping[str, Any]
"""Names, classes or objects; or, to call them otherwise, a mapping from names to them."""


class _Experiment(NamedTuple):
    """An experiment of the grid: its setting, what is varied in it, and its configuration."""

    setting: str | None
    varied: dict[str, Any]
    config: Config


def compare(
    source: Source = None,
    /,
    *,
    allocators: Parts | None = None,
    mechanisms: Parts | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    budgets: Sequence[float] = (),
    tune: Mapping[str, Sequence[Any]] | None = None,
    pilots: int = 2,
    seeds: int | Sequence[int] = 5,
    against: str = "",
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
    """Run one federation, or a suite, under several allocators and seeds, side by side.

    Args:
        source: The experiment, as for `run`; None for the defaults, or for a suite.
        allocators: Names (`even:carry_over=true`), classes or objects, also such as a notebook
            defines; a mapping calls them otherwise (`{"mine": MyAllocator()}`). Unless given, the
            experiment's own, if any, and the usual.
        mechanisms: Likewise; the experiment's own unless given.
        grid: What else to vary: any keys, each with its values
            (`{"training.memory": ["off", "plain"]}`).
        budgets: Shares of the budget to try each with (0.25, 0.5, 1), or amounts where one is above
            10.
        tune: Keys, each with its values, of which every line of the table takes those that keep
            the best model on validation data (`{"training.learning_rate": [0.03, 0.1, 0.3]}`).
        pilots: How many seeds to tune with; they are others than those of the table.
        seeds: How many seeds, from the experiment's own upwards; or which (`[3, 7]`).
        against: What the others are measured against, with everything else equal: an allocator, a
            mechanism, the value of another key (`memory=off`), or a whole line of the table (`even,
            mechanism=fair`); unless given, the first allocator, or `even` in a suite.
        suite: Every setting of a suite instead of one experiment: `development`, `report`.
        only: The names of the settings of the suite to run; all unless given.
        full: Use all samples of the suite's datasets, for larger machines.
        out: A folder for the results, a table and a report; what an earlier call finished there is
            not run again, and what else it compared stays in the table.
        jobs: Processes; -1 for all cores.
        cluster: Run on a cluster instead: `dask:tcp://HOST:8786` or `ray:HOST:6379`.
        progress: Whether to show how far it is; None for where somebody watches, a terminal or a
            notebook.
        command: The command that repeats it, for reports.
        **keys: Changes to the experiment, as for `run`.

    Raises:
        InterruptionError: After Ctrl-C; `so_far` holds the runs that had ended.
    """
    varied = dict(grid or {})
    allocators = _taken(varied, "allocator", allocators)
    mechanisms = _taken(varied, "mechanism", mechanisms)
    if mechanisms is not None:
        varied = {"mechanism": _named(mechanisms, MechanismSection), **varied}
    bases, experiments = _experiments(source, suite, keys, varied, only=only, full=full)
    first = experiments[0].config
    if allocators is None:
        wanted = _usual(first)
    else:
        wanted = _named(allocators, AllocatorSection)
    shares = _shares(budgets, first, suite)
    folder = None if out is None else Path(out)
    run = partial(run_grid, folder=folder, jobs=jobs, cluster=cluster, progress=progress)
    made = _made(command, bases, against)
    pilot_cells: list[Cell] = []
    tried: list[Result] = []
    if tune:
        tuning = Tuning(tune, pilots)
        choices = []
        for point in tuning.points:
            changed = {**keys, **point}
            _, made_so = _experiments(source, suite, changed, varied, only=only, full=full)
            choices += [(point, one) for one in made_so]
        every = _choices(choices, wanted, seeds, shares)
        _check_before_pilots(tuning, folder, made, every)
        pilot_cells = _choices(choices, wanted, tuning.seeds, shares)
        tried, best = _tried(pilot_cells, run)
        every = with_chosen(every, best)
    else:
        every = _choices([({}, one) for one in experiments], wanted, seeds, shares)
    if not command:
        options: dict[str, Any] = {
            "tune": dict(tune or {}),
            "pilots": pilots if tune else None,
            "seeds": seeds,
            "against": against,
            "suite": suite,
            "only": list(only),
            "full": full,
            "budgets": list(budgets),
            "out": out and str(out),
        }
        made = replace(made, script=python_script(bases, wanted, varied, options, keys))
    description = _in_folder(folder, made, every, pilot_cells)
    try:
        results, failures = run(every)
    except InterruptionError as stopped:
        results, failures = stopped.so_far
        stopped.so_far = description.comparison(results, failures, tried)
        raise
    if folder is not None:
        results = _with_earlier(results, failures, description, folder, every)
        tried = description.tried(folder)
    found = description.comparison(results, failures, tried)
    if not found.results:
        raise BaraError(
            f"all runs ({len(every)}) failed; the first was {label(failures[0])}: "
            f"{failures[0].error}"
        )
    if folder is not None:
        write_runs(found, folder)
        write_whole(folder / "report.html", [comparison_report(found)])
    return found


def _choices(
    choices: Sequence[tuple[dict[str, Any], _Experiment]],
    wanted: Sequence[Named],
    seeds: int | Sequence[int],
    shares: Sequence[float],
) -> list[Cell]:
    """Make the cells of every experiment, each with the values that are tuned in it."""
    every: list[Cell] = []
    for tuned, one in choices:
        every += cells(one.config, wanted, seeds, one.setting, one.varied, shares, tuned)
    return every


def _check_before_pilots(
    tuning: Tuning, folder: Path | None, made: Description, grid: Sequence[Cell]
) -> None:
    """Refuse what would be refused after the pilots, which may take hours."""
    tuning.check(grid)
    if folder is not None and Description.is_in(folder):
        Description.read(folder).refuse_another_experiment(folder, made, grid)


def _tried(
    pilots: Sequence[Cell], run: Callable[[Sequence[Cell]], tuple[list[Result], list[Failure]]]
) -> tuple[list[Result], dict[Contestant, dict[str, Any]]]:
    """Play the pilot runs; return them, and the values that they choose by contestant."""
    try:
        results, failures = run(pilots)
    except InterruptionError as stopped:
        stopped.so_far = Comparison([], pilots=stopped.so_far[0])
        raise
    return results, chosen(results, failures)


def _taken(grid: dict[str, Sequence[Any]], part: str, given: Parts | None) -> Parts | None:
    """Take allocators or mechanisms out of the grid, where they may be varied as any key."""
    for key in (part, f"{part}.name"):
        if key in grid:
            if given is not None:
                raise ConfigError(f"give either {part}s or values of {key} to vary, not both")
            given = grid.pop(key)
    return given


def _named(parts: Parts, kind: type[Named]) -> list[Named]:
    """Read each part as a configuration has it; of a mapping, under its name there."""
    if isinstance(parts, str):
        raise ConfigError(
            f"what is compared must be a list of names, classes or objects, got the text {parts!r}"
        )
    if isinstance(parts, Mapping):
        return [kind.model_validate(part).renamed(name) for name, part in parts.items()]
    return list(map(kind.model_validate, parts))


def _usual(experiment: Config) -> list[Named]:
    usual = _named(USUAL, AllocatorSection)
    if "allocator" in experiment.model_fields_set:
        return [experiment.allocator, *usual]
    return usual


def _experiments(
    source: Source,
    suite: str | None,
    keys: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    *,
    only: Sequence[str],
    full: bool,
) -> tuple[dict[str, Config], list[_Experiment]]:
    """Make the experiments: before anything is varied, by setting; and one for each variation."""
    if suite and source is not None:
        raise ConfigError(f"give either an experiment or the suite {suite!r}, not both")
    if (full or only) and not suite:
        raise ConfigError("full and only need a suite")
    _check_grid(grid)
    bases: dict[str, Config] = {}
    experiments = []
    for values in product(*grid.values()):
        varied = dict(zip(grid, values, strict=True))
        shown = {key: _shown(value) for key, value in varied.items()}
        changes = {**keys, **varied}
        if suite:
            made = {}
            for setting in settings(suite, changes, only=only, full=full):
                made[setting.name] = setting.config
                experiments.append(_Experiment(setting.name, shown, setting.config))
        else:
            made = {"": Config.load(source, **changes)}
            experiments.append(_Experiment(None, shown, made[""]))
        bases = bases or made
    return bases, experiments


def _check_grid(grid: Mapping[str, Sequence[Any]]) -> None:
    if "seed" in grid:
        raise ConfigError(
            "seed cannot be varied like other keys; set seeds to how many there are, and seed to "
            "the first"
        )
    for key, values in grid.items():
        if isinstance(values, str) or not values:
            raise ConfigError(f"{key} must have a list of values to vary over, got {values!r}")


def _shown(value: Any) -> Any:
    """Name a varied value as tables do."""
    if isinstance(value, Named):
        return value.label
    if isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _shares(budgets: Sequence[float], experiment: Config, suite: str | None) -> list[float]:
    """Turn budgets into shares of the configured budget."""
    found = sorted(set(map(float, budgets)))
    if not all(0 < one < float("inf") for one in found):
        given = ", ".join(f"{one:g}" for one in found)
        raise ConfigError(f"budgets must be positive numbers, got {given}")
    if not found or found[-1] <= MOST_SHARE:
        return found
    if suite:
        raise ConfigError(
            "budgets above 10 are amounts, but each setting of a suite has its own budget; give "
            "shares, like 0.5"
        )
    total = decimal_money(experiment.purse().total)
    return [one / total for one in found]


def _made(command: str, bases: Mapping[str, Config], against: str) -> Description:
    """Describe how the comparison is made, but for the keys of its runs."""
    config = bases[""].to_toml() if "" in bases else ""
    trees = {name: one.model_dump(mode="json") for name, one in bases.items()}
    return Description(command, config, [], trees, against)


def _in_folder(
    folder: Path | None, made: Description, grid: Sequence[Cell], pilots: Sequence[Cell]
) -> Description:
    """Write the description into the folder, joined to what that holds already."""
    if folder is None or not Description.is_in(folder):
        baselines(in_one_table(list(map(to_come, grid)), made.bases), made.against)
    if folder is None:
        return made
    keys = [cell.key for cell in grid]
    made = replace(made, cells=keys, pilots=[cell.key for cell in pilots])
    if Description.is_in(folder):
        made = Description.read(folder).joined(folder, made, grid)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made.write(folder)
    except OSError as error:
        raise ConfigError(f"cannot keep results in {str(folder)!r}: {error.strerror}") from None
    return made


def _with_earlier(
    results: list[Result],
    failures: Sequence[Failure],
    description: Description,
    folder: Path,
    grid: Sequence[Cell],
) -> list[Result]:
    """Add the runs of earlier calls, which count as reused."""
    if len(description.cells) <= len(results) + len(failures):
        return results
    played = {run_of(one) for one in results if not one.reused}
    fresh = {cell.key for cell in grid if run_of(cell) in played}
    found = []
    for key, result in description.by_key(folder).items():
        found.append(replace(result, reused=key not in fresh))
    return found

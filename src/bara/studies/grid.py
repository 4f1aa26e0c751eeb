"""A grid of runs: allocators, seeds and whatever else is varied, on all cores, resumable."""

import copy
import hashlib
import json
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky import get_reusable_executor

from bara import datasets
from bara.errors import ConfigError, DatasetError, InterruptionError
from bara.files import replacing
from bara.plugins import explain
from bara.reports.comparison import Failure, label
from bara.reports.result import Result, read_result
from bara.reports.terminal import per_cent
from bara.runs.config import Config
from bara.runs.config_sections import AllocatorSection
from bara.runs.factory import build_allocator, build_mechanism, check_engine
from bara.runs.fingerprints import MadeBy, differences, digest_of, made_by, objects_of
from bara.runs.play import play_run
from bara.runs.progress import Wanted, audience, counting
from bara.studies.cluster import cluster_backend
from bara.text import counted, note

Play = Callable[[Config], Result]
"""Plays the run of a configuration."""

_CLEARED_UP = "ignore:resource_tracker"
"""A warning after Ctrl-C: what clears up behind the workers may find that done already."""


@dataclass(frozen=True)
class Cell:
    """A run of a comparison.

    Attributes:
        config: The configuration of the run.
        setting: The setting of a suite, if it is one.
        varied: The keys that are varied beside the allocator, with their values here.
        share: The share of the configured budget, where several are tried.
        tuned: The keys that are tuned, with their values here.
    """

    config: Config
    setting: str | None = None
    varied: Mapping[str, Any] = field(default_factory=dict)
    share: float | None = None
    tuned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> dict[str, Any]:
        """The fields of a result that say where it belongs in the comparison."""
        return {
            "setting": self.setting,
            "varied": dict(self.varied),
            "share": self.share,
            "tuned": dict(self.tuned),
        }

    @cached_property
    def made_by(self) -> MadeBy:
        """The fingerprints of what makes the result."""
        return self.code | objects_of(self.config)

    @cached_property
    def code(self) -> MadeBy:
        """The fingerprints of code and data."""
        return made_by(self.config)

    @cached_property
    def experiment(self) -> str:
        """A digest of the configuration."""
        return hashlib.sha256(self.config.model_dump_json().encode()).hexdigest()[:16]

    @cached_property
    def key(self) -> str:
        """The name of the stored result: that of the experiment, and of what makes the result."""
        return f"{self.experiment}-{digest_of(self.made_by)[:8]}"


def cells(
    config: Config,
    allocators: Sequence[Any],
    seeds: int | Sequence[int],
    setting: str | None = None,
    varied: Mapping[str, Any] = MappingProxyType({}),
    shares: Sequence[float] = (),
    tuned: Mapping[str, Any] = MappingProxyType({}),
) -> list[Cell]:
    """Make a cell for every seed, share of the budget and allocator; refuse what cannot be run.

    Args:
        config: The experiment; its seed is the first one, where only their number is given.
        allocators: Names, classes or objects.
        seeds: How many seeds, or which.
        setting: The setting of a suite, if it is one.
        varied: The keys that are varied beside the allocator, with their values here.
        shares: The shares of the configured budget; all of it unless given.
        tuned: The keys that are tuned, with their values here.
    """
    every_seed = _seeds(config.seed, seeds)
    if not allocators:
        raise ConfigError("there is no allocator to compare; name at least one")
    # The cells share the cores; a federation that trained on all of them would wait for the others.
    federation = config.federation.model_copy(update={"workers": 1})
    alone = config.model_copy(update={"federation": federation})
    budgets: dict[float | None, Config] = {None: alone}
    if shares:
        budgets = {share: alone.with_budget(share) for share in shares}
    sections = _each_once(allocators)
    grid = []
    for seed in every_seed:
        for share, experiment in budgets.items():
            for section in sections:
                made = experiment.with_allocator(section, seed)
                grid.append(Cell(made, setting, dict(varied), share, dict(tuned)))
    of_first_seed = grid[: len(grid) // len(every_seed)]
    for cell in of_first_seed:  # other seeds differ in nothing that could be refused
        build_allocator(cell.config)
        build_mechanism(cell.config)
        check_engine(cell.config)
    return grid


def _seeds(first: int, seeds: Any) -> list[int]:
    """Return the seeds that are wanted: so many from the first one upwards, or those given."""
    if isinstance(seeds, int):
        if seeds < 1:
            raise ConfigError(f"seeds must be a whole number of at least 1, got {seeds}")
        return list(range(first, first + seeds))
    if not isinstance(seeds, Sequence) or isinstance(seeds, str):
        raise ConfigError(f"seeds must be a whole number, or a list of seeds, got {seeds!r}")
    found = list(seeds)
    are_seeds = all(type(seed) is int and seed >= 0 for seed in found)
    if not found or not are_seeds or len(set(found)) < len(found):
        raise ConfigError(f"seeds must be different whole numbers of at least 0, got {found}")
    return found


def _each_once(allocators: Sequence[Any]) -> list[AllocatorSection]:
    """Take every allocator once; refuse two that a table could not tell apart."""
    found: dict[str, AllocatorSection] = {}
    for allocator in allocators:
        section = AllocatorSection.model_validate(allocator)
        if found.setdefault(section.label, section) != section:
            raise ConfigError(
                f"two allocators are called {section.label!r}; name them: {{'one': ..., 'other': "
                "...}"
            )
    return list(found.values())


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that joblib does not know."""
    if jobs == 0:
        raise ConfigError("jobs must be at least 1, or -1 for all cores, got 0")


def run_grid(
    grid: Sequence[Cell],
    folder: Path | None = None,
    jobs: int = -1,
    cluster: str | None = None,
    *,
    progress: Wanted = None,
) -> tuple[list[Result], list[Failure]]:
    """Run a grid behind a progress bar; return results and failures in the grid's order.

    Args:
        grid: The runs.
        folder: The folder to store each result in as soon as it is there; None for none.
        jobs: How many processes; -1 for all cores.
        cluster: The cluster to run on instead of this machine.
        progress: Whether to show how far it is; None for where somebody watches.

    Raises:
        DatasetError: If data is missing on this machine, where the runs would look for it.
        InterruptionError: After Ctrl-C; `so_far` holds what would have been returned.
    """
    # joblib restarts a worker whose memory has grown, as it does with another dataset, and warns.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
    if _CLEARED_UP not in sys.warnoptions:
        sys.warnoptions.append(_CLEARED_UP)
    todo = grid if folder is None else unfinished(grid, folder)
    if cluster is None:
        _require_data(todo)
    _renew_workers(grid)
    if len(todo) < len(grid) and audience(progress) != "nobody":
        note(f"{len(grid) - len(todo)} of {counted(len(grid), 'run')} reused from {folder}")
    done: list[Result | Failure] = []
    try:
        with cluster_backend(cluster) as backend, counting(len(grid), progress=progress) as tell:
            for outcome in outcomes(grid, folder=folder, jobs=jobs, backend=backend):
                done.append(outcome)
                if isinstance(outcome, Failure):
                    tell(f"{label(outcome)}: {outcome.error}")
                    continue
                shown = f"{label(outcome)}: {per_cent(outcome.accuracy_final)}"
                tell(f"{shown}, reused" if outcome.reused else shown)
    except KeyboardInterrupt:
        stored = "nothing is kept without a folder"
        if folder is not None:
            stored = f"kept in {folder}; run the same again to go on"
        runs = counted(len(grid), "run")
        stopped = InterruptionError(f"stopped after {len(done)} of {runs}: {stored}")
        stopped.so_far = in_order(grid, done)
        raise stopped from None
    return in_order(grid, done)


_seen_by_workers: dict[str, ModuleSpec | None] = {}
"""The modules that the processes of earlier grids may have imported; joblib keeps them a while."""


def _renew_workers(grid: Sequence[Cell]) -> None:
    """End joblib's idle processes where a module was reloaded: they would run its old code."""
    for cell in grid:
        digest_of(cell.code)  # refuses code that was edited and not reloaded
    modules = list(sys.modules.items())
    now = {name: getattr(module, "__spec__", None) for name, module in modules}
    if any(_seen_by_workers.get(name, spec) is not spec for name, spec in now.items()):
        get_reusable_executor().shutdown()
    _seen_by_workers.update(now)


def _require_data(grid: Sequence[Cell]) -> None:
    """Say once what is missing, before the first run: each run would say it again."""
    wanted: dict[tuple[str, str | None], None] = {}
    for cell in grid:
        data = cell.config.data
        if cell.config.engine.has_data and data.part is None:
            wanted[data.name, data.path] = None
    missing: list[DatasetError] = []
    for name, path in wanted:
        try:
            datasets.require(name, path)
        except DatasetError as error:
            missing.append(error)
    if len(missing) == 1:
        raise missing[0]
    if missing:
        raise DatasetError("; ".join(map(str, missing)))


def outcomes(
    grid: Sequence[Cell],
    folder: Path | None = None,
    jobs: int = -1,
    backend: str | None = None,
    play: Play = play_run,
) -> Iterator[Result | Failure]:
    """Yield the outcome of every cell: those that an earlier session stored first.

    Args:
        grid: The runs.
        folder: The folder to store each result in as soon as it is there; None for none.
        jobs: How many processes; -1 for all cores.
        backend: A joblib backend (`loky`, `ray`, `dask`, ...) that the caller has set up; None for
            joblib's own.
        play: Plays the run of a configuration.
    """
    check_jobs(jobs)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot keep results in {str(folder)!r}: {error.strerror}") from None
    todo = []
    for cell in grid:
        stored = None if folder is None else stored_result(folder, cell.key)
        if folder is None or stored is None:
            todo.append(cell)
            continue
        named = replace(stored, **cell.config.identity(), **cell.place)
        if named != stored:  # it is called otherwise now
            _store(folder, cell, named)
        yield replace(named, reused=True)
    with parallel_config(backend=backend) if backend else parallel_config():
        for number, outcome in _played(play, todo, jobs):
            cell = todo[number]
            placed = replace(outcome, **cell.place)
            if folder is not None and isinstance(placed, Result):
                placed = replace(placed, made_by=cell.made_by)
                _store(folder, cell, placed)
            yield placed


def _played(play: Play, todo: Sequence[Cell], jobs: int) -> Iterator[tuple[int, Result | Failure]]:
    """Play runs side by side; yield the number of each and its outcome as they come.

    A backend that returns only lists (Ray's) is given as many runs at a time as it has processors.
    """
    calls = [delayed(_play_cell)(play, number, cell.config) for number, cell in enumerate(todo)]
    try:
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(calls)
    except pickle.PicklingError as error:
        raise ConfigError(
            f"what is compared cannot be sent to other processes ({error.__cause__ or error}); "
            "give classes, or functions that make it, or run on one process (jobs=1)"
        ) from error
    except ValueError as error:
        if "return_as" not in str(error):
            raise
        size = effective_n_jobs(jobs)
        for first in range(0, len(calls), size):
            yield from Parallel(n_jobs=jobs, batch_size=1)(calls[first : first + size])


def _play_cell(play: Play, number: int, config: Config) -> tuple[int, Result | Failure]:
    try:
        return number, play(_with_own_federation(config))
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; the others go on
        return number, Failure(config.allocator.label, config.seed, explain(error))


def _with_own_federation(config: Config) -> Config:
    """Give each run a copy of a federation that was handed over as an object."""
    if config.federation.part is None:
        return config
    own = copy.deepcopy(config.federation)
    return config.model_copy(update={"federation": own})


def in_order(
    grid: Sequence[Cell], done: Sequence[Result | Failure]
) -> tuple[list[Result], list[Failure]]:
    """Sort outcomes into the grid's order, seed by seed within each place."""
    rank: dict[tuple[Any, ...], int] = {}
    for cell in grid:
        rank.setdefault((*_place(cell), cell.config.allocator.label), len(rank))
    ranked = sorted(done, key=lambda one: (rank[*_place(one), one.allocator], one.seed))
    results = [one for one in ranked if isinstance(one, Result)]
    failures = [one for one in ranked if isinstance(one, Failure)]
    return results, failures


def _place(one: Cell | Result | Failure) -> tuple[Any, ...]:
    return one.setting, json.dumps(dict(one.varied)), one.share


def run_of(one: Cell | Result) -> tuple[Any, ...]:
    """Return what tells the runs of one comparison apart."""
    if isinstance(one, Cell):
        return *_place(one), one.config.allocator.label, one.config.seed
    return *_place(one), one.allocator, one.seed


def unfinished(grid: Sequence[Cell], folder: Path) -> list[Cell]:
    """List the cells that no earlier session has stored."""
    return [cell for cell in grid if stored_result(folder, cell.key) is None]


def tell_replaced(grid: Sequence[Cell], folder: Path) -> None:
    """Say which results of earlier sessions are not reused, and what has changed since."""
    found: dict[str, list[str]] = {}
    for cell in unfinished(grid, folder):
        for path in folder.glob(f"{cell.experiment}-*.json"):
            old = stored_result(folder, path.stem)
            if old is not None:
                changes = differences(old.made_by or {}, cell.made_by)
                found.setdefault(", ".join(changes), []).append(label(old))
                break
    for line in told_again(found):
        note(f"{folder} holds {line}; played again")


def told_again(found: Mapping[str, Sequence[str]]) -> list[str]:
    """Say which runs are played again, by what has changed since they were stored."""
    told = []
    for changes, runs in found.items():
        shown = "; ".join(runs[:3])
        if len(runs) > 3:
            shown += f" and {len(runs) - 3} more"
        told.append(
            f"{counted(len(runs), 'result')} made by other code or data ({changes}): {shown}"
        )
    return told


def stored_result(folder: Path, key: str) -> Result | None:
    """Read a stored result by its cell's key; None where it must be run again."""
    try:
        return read_result(folder / f"{key}.json")
    except ConfigError:  # not there, damaged, or of another version
        return None


def _store(folder: Path, cell: Cell, result: Result) -> None:
    with replacing(folder / f"{cell.key}.json", durable=False) as file:
        file.write(json.dumps(result.to_json()).encode())

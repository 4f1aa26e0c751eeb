"""A grid of runs: allocators, seeds and whatever else is varied, side by side on all cores, resumable."""

import copy
import hashlib
import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from bara import __version__
from bara.errors import ConfigError
from bara.files import replacing
from bara.plugins import explain
from bara.reports.result import Result, read_result, told
from bara.runs.config import Config
from bara.runs.factory import build_allocator, build_mechanism, check_engine
from bara.runs.play import run
from bara.runs.sections import AllocatorSection
from bara.studies.fingerprints import fingerprint


@dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    Attributes:
        config: What is run.
        setting: Which setting of a suite it is, if it is one.
        varied: What is varied beside the allocator, by key (`training.memory`), if anything is.
        share: Which part of the configured budget it has, where several are tried.
    """

    config: Config
    setting: str | None = None
    varied: Mapping[str, Any] = field(default_factory=dict)
    share: float | None = None

    @property
    def place(self) -> dict[str, Any]:
        """Where its outcome belongs in the comparison."""
        return {"setting": self.setting, "varied": dict(self.varied), "share": self.share}

    @cached_property
    def key(self) -> str:
        """The same configuration has the same key, in any session; so have parts of it that are the same objects."""
        content = f"{__version__} {self.config.model_dump_json()}"
        content += "".join(
            f" {name} {fingerprint(part, name)}" for name, part in self.config.parts().items()
        )
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Failure:
    """A run that did not end, and why; the others go on."""

    allocator: str
    seed: int
    error: str
    setting: str | None = None
    varied: dict[str, Any] = field(default_factory=dict)
    share: float | None = None

    @property
    def variant(self) -> str | None:
        """What was varied beside the allocator, in short."""
        return told(self.varied)

    def to_json(self) -> dict[str, Any]:
        """What there is to say of it."""
        return {key: value for key, value in vars(self).items() if value not in (None, {})}


def cells(
    config: Config,
    allocators: Sequence[Any],
    seeds: int,
    setting: str | None = None,
    varied: Mapping[str, Any] = MappingProxyType({}),
    shares: Sequence[float] = (),
) -> list[Cell]:
    """Every allocator with every part of the budget and every seed, seed by seed, each checked before anything runs."""
    if not isinstance(seeds, int) or seeds < 1:
        raise ConfigError(f"seeds must be a whole number of at least 1, got {seeds}")
    if not allocators:
        raise ConfigError("there is no allocator to compare; name at least one")
    # The cells share the cores; a federation that trained on all of them would only wait for the
    # others.
    alone = config.model_copy(
        update={"federation": config.federation.model_copy(update={"workers": 1})}
    )
    budgets = {share: alone.with_budget(share) for share in shares} if shares else {None: alone}
    grid = [
        Cell(one.with_allocator(allocator, seed), setting, dict(varied), share)
        for seed in range(config.seed, config.seed + seeds)
        for share, one in budgets.items()
        for allocator in _each_once(allocators)
    ]
    for cell in grid[: len(grid) // seeds]:
        build_allocator(cell.config)
        build_mechanism(cell.config)
        check_engine(cell.config)
    return grid


def _each_once(allocators: Sequence[Any]) -> list[Any]:
    """Every allocator once; two that a table could not tell apart are refused."""
    found: dict[str, Any] = {}
    for one in allocators:
        section = AllocatorSection.model_validate(one)
        if found.setdefault(section.label, section) != section:
            raise ConfigError(
                f"two allocators are called {section.label!r}; name them: {{'one': ..., 'other': ...}}"
            )
    return list(found.values())


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that joblib does not know."""
    if jobs == 0:
        raise ConfigError("jobs must be at least 1, or -1 for all cores, got 0")


def outcomes(
    grid: Sequence[Cell],
    folder: Path | None = None,
    jobs: int = -1,
    backend: str | None = None,
    play: Callable[[Config], Result] = run,
) -> Iterator[Result | Failure]:
    """Yield the result of every cell: first those that an earlier session finished, then the others as they come.

    Args:
        grid: What to run.
        folder: Where each result is kept as soon as it is there; None to keep nothing.
        jobs: How many processes; -1 for all cores.
        backend: A joblib backend (`loky`, `ray`, `dask`, ...) that the caller has set up; None for
            joblib's own.
        play: What runs a configuration.
    """
    check_jobs(jobs)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot keep results in {str(folder)!r}: {error.strerror}") from None
    todo = []
    for cell in grid:
        stored = _stored(folder, cell)
        if stored is None:
            todo.append(cell)
        else:
            yield replace(stored, allocator=cell.config.allocator.label, **cell.place)
    with parallel_config(backend=backend) if backend else parallel_config():
        for number, outcome in _outcomes(play, todo, jobs):
            cell = todo[number]
            named = replace(outcome, **cell.place)
            if folder is not None and isinstance(named, Result):
                _store(folder, cell, named)
            yield named


def label(outcome: Result | Failure) -> str:
    """Which cell an outcome is of."""
    budget = None if outcome.share is None else f"{100 * outcome.share:.4g} % of the budget"
    parts = (outcome.setting, outcome.allocator, outcome.variant, budget, f"seed {outcome.seed}")
    return ", ".join(part for part in parts if part)


def in_order(
    grid: Sequence[Cell], done: Sequence[Result | Failure]
) -> tuple[list[Result], list[Failure]]:
    """Results and failures in the grid's order, seed by seed within each place."""
    places = [(*_place(cell), cell.config.allocator.label) for cell in grid]
    rank = {place: i for i, place in reversed(list(enumerate(places)))}
    ranked = sorted(done, key=lambda one: (rank[*_place(one), one.allocator], one.seed))
    results = [one for one in ranked if isinstance(one, Result)]
    return results, [one for one in ranked if isinstance(one, Failure)]


def _place(one: Cell | Result | Failure) -> tuple[Any, ...]:
    return one.setting, json.dumps(dict(one.varied)), one.share


def _outcomes(
    play: Callable[[Config], Result], todo: Sequence[Cell], jobs: int
) -> Iterator[tuple[int, Result | Failure]]:
    """As they come; from a backend that gives only lists (Ray's), as many at a time as it has processors."""
    calls = [delayed(_play)(play, number, cell.config) for number, cell in enumerate(todo)]
    try:
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(calls)
    except pickle.PicklingError as error:
        raise ConfigError(
            f"what is compared cannot be sent to other processes ({error.__cause__ or error}); give classes, or "
            "functions that make it, or run on one process (jobs=1)"
        ) from error
    except ValueError as error:
        if "return_as" not in str(error):
            raise
        size = effective_n_jobs(jobs)
        for first in range(0, len(calls), size):
            yield from Parallel(n_jobs=jobs, batch_size=1)(calls[first : first + size])


def unfinished(grid: Sequence[Cell], folder: Path) -> list[Cell]:
    """The cells that no earlier session finished."""
    return [cell for cell in grid if _stored(folder, cell) is None]


def _play(
    play: Callable[[Config], Result], number: int, config: Config
) -> tuple[int, Result | Failure]:
    try:
        return number, play(_with_own_federation(config))
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; the others go on
        return number, Failure(config.allocator.label, config.seed, explain(error))


def _with_own_federation(config: Config) -> Config:
    """A run of many has a federation of its own: where an object was handed over, a copy of it."""
    if config.federation.part is None:
        return config
    own = copy.deepcopy(config.federation)
    return config.model_copy(update={"federation": own})


def _stored(folder: Path | None, cell: Cell) -> Result | None:
    return None if folder is None else read_stored(folder / f"{cell.key}.json")


def read_stored(path: Path) -> Result | None:
    """A run's result, if there is one."""
    try:
        return read_result(path)
    except ConfigError:
        return None  # not there, damaged, or of another version: it is run again


def _store(folder: Path, cell: Cell, result: Result) -> None:
    with replacing(folder / f"{cell.key}.json", durable=False) as file:
        file.write(json.dumps(result.to_json()).encode())

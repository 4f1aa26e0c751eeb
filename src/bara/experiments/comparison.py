"""The same federation under several allocators and seeds, side by side on all cores, resumable."""

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from bara import __version__
from bara.errors import ConfigError, MissingExtraError
from bara.experiments.config import Config
from bara.experiments.factory import build_allocator, build_mechanism, check_engine
from bara.experiments.results import Result, read_result, write_table
from bara.experiments.runs import run
from bara.files import read_whole, replacing
from bara.plugins import explain, nearest


@dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    Attributes:
        config: What is run.
        setting: Which setting of a suite it is, if it is one.
        variant: What is varied beside the allocator (`memory=off`), if anything is.
        share: Which part of the configured budget it has, where several are tried.
    """

    config: Config
    setting: str | None = None
    variant: str | None = None
    share: float | None = None

    @property
    def place(self) -> dict[str, Any]:
        """Where its outcome belongs in the comparison."""
        return {"setting": self.setting, "variant": self.variant, "share": self.share}

    @property
    def key(self) -> str:
        """The same configuration has the same key, in any session."""
        content = f"{__version__} {self.config.model_dump_json()}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Failure:
    """A run that did not end, and why; the others go on."""

    allocator: str
    seed: int
    error: str
    setting: str | None = None
    variant: str | None = None
    share: float | None = None


@dataclass(frozen=True)
class Comparison:
    """What a folder of results says of how it was made.

    Attributes:
        command: The command line.
        config: What all runs share, as TOML; empty where they are of a suite.
        cells: The runs, by key, in the order of the table.
    """

    command: str
    config: str
    cells: list[str]

    _FILE: ClassVar = "comparison.json"

    @classmethod
    def is_in(cls, folder: Path) -> bool:
        """Whether a folder holds one."""
        return (folder / cls._FILE).is_file()

    @classmethod
    def find(cls, folder: Path) -> Self:
        """The one that a folder holds."""
        try:
            found = cls(**json.loads(read_whole(folder / cls._FILE)))
            return replace(found, cells=[str(cell) for cell in found.cells])
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise ConfigError(f"{str(folder / cls._FILE)!r} is of no comparison: {error}") from None

    def keep(self, folder: Path) -> None:
        """Write it beside the results."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self._FILE).write_text(json.dumps(vars(self), indent=1))

    def results(self, folder: Path) -> list[Result]:
        """Those of its runs that have ended."""
        return [result for key in self.cells if (result := _read(folder / f"{key}.json")) is not None]


def cells(
    config: Config,
    allocators: Sequence[str],
    seeds: int,
    setting: str | None = None,
    variant: str | None = None,
    shares: Sequence[float] = (),
) -> list[Cell]:
    """Every allocator with every part of the budget and every seed, seed by seed, each checked before anything runs."""
    if seeds < 1:
        raise ConfigError(f"{seeds} seeds; required is at least 1")
    if not allocators:
        raise ConfigError("no allocator to compare; required is at least one")
    # The cells share the cores; a federation that trained on all of them would only wait for the others.
    alone = config.model_copy(update={"federation": config.federation.model_copy(update={"workers": 1})})
    budgets = {share: alone.with_budget(share) for share in shares} if shares else {None: alone}
    grid = [
        Cell(one.with_allocator(allocator, seed), setting, variant, share)
        for seed in range(config.seed, config.seed + seeds)
        for share, one in budgets.items()
        for allocator in dict.fromkeys(allocators)
    ]
    for cell in grid[: len(grid) // seeds]:
        build_allocator(cell.config)
        build_mechanism(cell.config)
        check_engine(cell.config)
    return grid


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that joblib does not know."""
    if jobs == 0:
        raise ConfigError("0 jobs; required is at least 1, or -1 for all cores")


def compare(
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
        backend: A joblib backend (`loky`, `ray`, `dask`, ...) that the caller has set up; None for joblib's own.
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
            yield replace(stored, **cell.place)
    with parallel_config(backend=backend) if backend else parallel_config():
        for cell, outcome in _outcomes(play, todo, jobs):
            named = replace(outcome, **cell.place)
            if folder is not None and isinstance(named, Result):
                _store(folder, cell, named)
            yield named


def label(outcome: Result | Failure) -> str:
    """Which cell an outcome is of."""
    budget = None if outcome.share is None else f"{outcome.share:.4g} of the budget"
    parts = (outcome.setting, outcome.allocator, outcome.variant, budget, f"seed {outcome.seed}")
    return ", ".join(part for part in parts if part)


def in_order(
    grid: Sequence[Cell], outcomes: Sequence[Result | Failure], folder: Path | None = None
) -> tuple[list[Result], list[Failure]]:
    """Results and failures in the grid's order; the results also as a table in the folder."""
    places = [(cell.setting, cell.variant, cell.share, cell.config.allocator.label) for cell in grid]
    rank = {place: i for i, place in reversed(list(enumerate(places)))}
    done = sorted(outcomes, key=lambda one: (rank[one.setting, one.variant, one.share, one.allocator], one.seed))
    results = [one for one in done if isinstance(one, Result)]
    if folder is not None:
        write_table(results, folder / "results.csv")
    return results, [one for one in done if isinstance(one, Failure)]


def _outcomes(
    play: Callable[[Config], Result], todo: Sequence[Cell], jobs: int
) -> Iterator[tuple[Cell, Result | Failure]]:
    """As they come; from a backend that gives only lists (Ray's), as many at a time as it has processors."""
    calls = [delayed(_play)(play, cell) for cell in todo]
    try:
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(calls)
    except ValueError as error:
        if "return_as" not in str(error):
            raise
        size = effective_n_jobs(jobs)
        for first in range(0, len(calls), size):
            yield from Parallel(n_jobs=jobs, batch_size=1)(calls[first : first + size])


def unfinished(grid: Sequence[Cell], folder: Path) -> list[Cell]:
    """The cells that no earlier session finished."""
    return [cell for cell in grid if _stored(folder, cell) is None]


def _play(play: Callable[[Config], Result], cell: Cell) -> tuple[Cell, Result | Failure]:
    try:
        return cell, play(cell.config)
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything; the others go on
        return cell, Failure(cell.config.allocator.label, cell.config.seed, explain(error))


def _stored(folder: Path | None, cell: Cell) -> Result | None:
    return None if folder is None else _read(folder / f"{cell.key}.json")


def _read(path: Path) -> Result | None:
    try:
        return read_result(path)
    except ConfigError:
        return None  # not there, damaged, or of another version: it is run again


def _store(folder: Path, cell: Cell, result: Result) -> None:
    with replacing(folder / f"{cell.key}.json", durable=False) as file:
        file.write(json.dumps(result.to_json()).encode())


_CLUSTERS = {"dask": "distributed", "ray": "ray"}
"""Which package each kind of cluster needs."""


@contextmanager
def connected(where: str | None) -> Iterator[str | None]:
    """Connect to a cluster and give joblib's name for it; None stays on this machine.

    Args:
        where: `dask:tcp://host:8786`, `ray:host:6379`, `ray:auto`, or None.
    """
    if where is None:
        yield None
        return
    engine, _, address = where.partition(":")
    if engine not in _CLUSTERS or not address:
        raise ConfigError(f"--cluster {where!r}; required is ENGINE:ADDRESS, and {nearest(engine, list(_CLUSTERS))}")
    package = _import(engine)
    try:
        client = package.Client(address, timeout=10) if engine == "dask" else _ray(package, address)
    except (OSError, ConnectionError, ValueError) as error:
        raise ConfigError(f"--cluster {where!r} does not answer: {error}") from None
    with client, redirect_stdout(sys.stderr):  # engines print notes; what is asked for stands alone
        yield engine


def _ray(package: Any, address: str) -> Any:
    importlib.import_module("ray.util.joblib").register_ray()
    return package.init(address=address)


def _import(engine: str) -> Any:
    try:
        return importlib.import_module(_CLUSTERS[engine])
    except ModuleNotFoundError:
        raise MissingExtraError(f"{engine} is not installed: pip install '{_CLUSTERS[engine]}'") from None

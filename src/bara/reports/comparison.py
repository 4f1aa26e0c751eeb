"""A comparison: the runs of a grid side by side, kept in a folder and opened from it again."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, final

from bara.errors import ConfigError
from bara.experiments.views import Plotted, view
from bara.files import read_whole, write_whole
from bara.reports.frames import frame, round_rows, run_rows
from bara.reports.frontier import Frontier
from bara.reports.result import Result, short_key
from bara.runs.config import Config, flat
from bara.studies.grid import Cell, Failure, read_stored
from bara.studies.suites import Setting, Standings
from bara.text import counted


@final
@dataclass(frozen=True, repr=False)
class Comparison(Plotted):
    """Several allocators, and whatever else was varied, side by side over paired seeds.

    Attributes:
        results: The runs that ended, in the order of the table.
        failures: Those that did not, and why.
        command: What made it; of one that was added to, a line for each time.
        config: What all runs share, as TOML; empty where they are of a suite.
        bases: The experiments as they were before anything was varied, by setting; outside a suite
            the setting is "".
    """

    results: list[Result]
    failures: list[Failure] = field(default_factory=list)
    command: str = ""
    config: str = ""
    bases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The one that a folder holds; runs that have not ended, or failed, are not in it."""
        kept = Kept.find(folder)
        return cls(kept.results(folder), [], kept.command, kept.config, kept.bases)

    @cached_property
    def frontier(self) -> Frontier | None:
        """Accuracy over money, where several budgets were tried with the same seeds."""
        if not any(result.share is not None for result in self.results):
            return None
        found = Frontier(self.results)
        return found if found.is_complete else None

    @cached_property
    def standings(self) -> Standings | None:
        """Where each allocator stands over a suite, with one budget for each setting."""
        if "" in self.bases or any(result.share is not None for result in self.results):
            return None
        settings = [Setting(name, Config.parse(tree)) for name, tree in self.bases.items()]
        return Standings.of_suite(settings, self.results)

    def to_frame(self, *, rounds: bool = False) -> Any:
        """A pandas frame with a line for each run; with `rounds`, for each round of each."""
        return frame(round_rows(self.results) if rounds else run_rows(self.results))

    def to_json(self, *, history: bool = False) -> dict[str, Any]:
        """A plain tree; with `history`, every round, too."""
        tree: dict[str, Any] = {
            "results": [result.to_json(history=history) for result in self.results]
        }
        tree["failures"] = [failure.to_json() for failure in self.failures]
        tree |= {"standings": self.standings.to_json()} if self.standings else {}
        return tree | ({"frontier": self.frontier.to_json()} if self.frontier else {})

    def to_markdown(self) -> str:
        """The table as Markdown."""
        return str(view("markup:markdown")(self))

    def to_latex(self) -> str:
        """The table as LaTeX, for the package booktabs."""
        return str(view("markup:latex")(self))

    def save(self, folder: str | Path, *, columns: int = 1) -> None:
        """Write report, tables, data and each figure (PNG, SVG, PDF) into a folder."""
        view("publication:publish")(self, Path(folder), columns=columns)

    def __repr__(self) -> str:
        """What it is, in a line."""
        runs = self.results
        told = [_listed(run.allocator for run in runs)]
        keys = dict.fromkeys(key for run in runs for key in run.varied)
        told += [
            f"{short_key(key)}: {_listed(run.varied.get(key) for run in runs)}" for key in keys
        ]
        told += (
            [counted(len({run.setting for run in runs}), "setting")]
            if any(run.setting for run in runs)
            else []
        )
        told += (
            [counted(len({run.share for run in runs}), "budget")]
            if any(run.share for run in runs)
            else []
        )
        told += [counted(len({run.seed for run in runs}), "seed")]
        told += [f"{len(self.failures)} failed"] if self.failures else []
        return f"<Comparison: {counted(len(runs), 'run')}: {'; '.join(told)}>"

    def _repr_html_(self) -> str:
        return str(view("html:comparison_in_short")(self))


def _listed(values: Iterable[Any]) -> str:
    """Each of them once, in a line."""
    names = list(dict.fromkeys(map(str, values)))
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


@dataclass(frozen=True)
class Kept:
    """What a folder of results says of how they were made: `comparison.json`.

    Attributes:
        command: As in `Comparison`.
        config: Likewise.
        cells: The runs, by key, in the order of the table.
        bases: As in `Comparison`; none in what earlier versions wrote.
    """

    command: str
    config: str
    cells: list[str]
    bases: dict[str, dict[str, Any]] = field(default_factory=dict)

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
            bases = found.bases or ({"": tomllib.loads(found.config)} if found.config else {})
            return replace(found, cells=[str(cell) for cell in found.cells], bases=bases)
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError(
                f"{str(folder / cls._FILE)!r} does not describe a comparison: {error}"
            ) from None

    def keep(self, folder: Path) -> None:
        """Write it beside the results."""
        write_whole(folder / self._FILE, [json.dumps(vars(self), indent=1)])

    def results(self, folder: Path) -> list[Result]:
        """Those of its runs that have ended, in its order, each with a value of all that was varied in any."""
        found = [
            result
            for key in self.cells
            if (result := read_stored(folder / f"{key}.json")) is not None
        ]
        return in_one_table(found, self.bases)

    def joined(self, folder: Path, new: "Kept", grid: Sequence[Cell]) -> "Kept":
        """Both in one; refused where one table cannot hold both, or where a result would take another's place."""
        if set(self.cells) <= set(new.cells):
            return new
        self._refuse_another_experiment(folder, new, grid)
        old = {
            key: result
            for key in self.cells
            if (result := read_stored(folder / f"{key}.json")) is not None
        }
        due = {cell.key: _to_come(cell) for cell in grid}
        every = dict.fromkeys(
            key for result in (*old.values(), *due.values()) for key in result.varied
        )
        shares = any(result.share is not None for result in (*old.values(), *due.values()))
        places = {
            _place(_filled(result, self.bases, every, shares=shares)): key
            for key, result in old.items()
        }
        for key, result in due.items():
            if places.get(_place(_filled(result, new.bases, every, shares=shares)), key) != key:
                raise ConfigError(
                    f"{str(folder)!r} has a result of {result.name}, seed {result.seed}, made by other code: another "
                    "version of bara or of the part; give another folder or another name"
                )
        commands = dict.fromkeys([*self.command.split("\n"), *new.command.split("\n")])
        keys = list(dict.fromkeys([*self.cells, *new.cells]))
        return Kept("\n".join(commands), self.config, keys, {**new.bases, **self.bases})

    def _refuse_another_experiment(self, folder: Path, new: "Kept", grid: Sequence[Cell]) -> None:
        places: list[Result | Cell] = [*self.results(folder), *grid]
        free = {"seed", "federation.workers", *(key for one in places for key in one.varied)}
        if not self.bases or ("" in self.bases) != ("" in new.bases):
            raise ConfigError(
                f"{str(folder)!r} holds a comparison of another kind; give this one a folder of its own"
            )
        for setting in self.bases.keys() & new.bases.keys():
            old, now = flat(self.bases[setting]), flat(new.bases[setting])
            for key in sorted(old.keys() | now.keys()):
                section = key.partition(".")[0]
                if (
                    section == "allocator"
                    or key in free
                    or section in free
                    or old.get(key) == now.get(key)
                ):
                    continue
                raise ConfigError(
                    f"{str(folder)!r} holds a comparison with {key} = {old.get(key)!r}, this one has {now.get(key)!r}: "
                    f"give it a folder of its own, or vary the key (--set {key}={old.get(key)},{now.get(key)})"
                )


Bases = Mapping[str, Mapping[str, Any]]
"""The experiments before anything was varied, by setting."""


def in_one_table(results: Sequence[Result], bases: Bases) -> list[Result]:
    """The same results, each with a value of everything that was varied in any of them, those of a place together."""
    every = dict.fromkeys(key for result in results for key in result.varied)
    shares = any(result.share is not None for result in results)
    filled = [_filled(result, bases, every, shares=shares) for result in results]
    rank = {_place(result)[:-1]: i for i, result in reversed(list(enumerate(filled)))}
    return sorted(filled, key=lambda one: (rank[_place(one)[:-1]], one.seed))


def _filled(result: Result, bases: Bases, every: Iterable[str], *, shares: bool) -> Result:
    base = flat(bases.get(result.setting or "", {})) | {"mechanism": result.mechanism}
    varied = {key: result.varied.get(key, base.get(key)) for key in every}
    return replace(
        result, varied=varied, share=1.0 if shares and result.share is None else result.share
    )


def _place(result: Result) -> tuple[Any, ...]:
    return (
        result.setting,
        json.dumps(result.varied, sort_keys=True),
        result.share,
        result.allocator,
        result.seed,
    )


def _to_come(cell: Cell) -> Result:
    """Where the result of a cell is going to stand."""
    numbers = ("budget", "spent", "rounds", "accuracy_final", "accuracy_last10", "accuracy_best")
    unknown: dict[str, Any] = {**dict.fromkeys(numbers, 0), "ended": ""}
    return Result(**cell.config.identity(), **unknown, **cell.place)

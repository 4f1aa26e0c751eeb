"""Comparisons in folders: how their runs were made, which results are there, and opening them."""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from bara.errors import ConfigError
from bara.files import read_whole, write_whole
from bara.reports.baselines import baselines
from bara.reports.comparison import Comparison, Failure, label
from bara.reports.result import Result, varied_keys
from bara.runs.database import find_run
from bara.runs.fingerprints import differences, outdated
from bara.runs.folder import RunFolder
from bara.runs.summary import result_of
from bara.studies.grid import Cell, stored_result, told_again
from bara.text import flat, note

Bases = Mapping[str, Mapping[str, Any]]
"""The experiments before anything was varied, by setting."""


@dataclass(frozen=True)
class Description:
    """The description of how the results in a folder were made, in `comparison.json`.

    Attributes:
        command: As in `Comparison`.
        config: As in `Comparison`.
        cells: The keys of the runs, in the order of the table.
        bases: As in `Comparison`; version 0.1 wrote none.
        against: As in `Comparison`.
        script: As in `Comparison`.
        pilots: The keys of the runs that tuning chose by.
    """

    command: str
    config: str
    cells: list[str]
    bases: dict[str, dict[str, Any]] = field(default_factory=dict)
    against: str = ""
    script: str = ""
    pilots: list[str] = field(default_factory=list)

    _FILE: ClassVar = "comparison.json"

    @classmethod
    def is_in(cls, folder: Path) -> bool:
        """True for a folder that holds a comparison."""
        return (folder / cls._FILE).is_file()

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the description in a folder."""
        path = folder / cls._FILE
        try:
            found = cls(**json.loads(read_whole(path)))
            cells = list(map(str, found.cells))
            bases = found.bases
            if not bases and found.config:
                bases = {"": tomllib.loads(found.config)}
            return replace(found, cells=cells, bases=bases)
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError(f"{str(path)!r} does not describe a comparison: {error}") from None

    def write(self, folder: Path) -> None:
        """Write the description beside the results."""
        write_whole(folder / self._FILE, [json.dumps(vars(self), indent=1)])

    def by_key(self, folder: Path) -> dict[str, Result]:
        """Read the results that are there, by the keys of their runs."""
        return _stored(folder, self.cells)

    def results(self, folder: Path) -> list[Result]:
        """Read the results that are there, in one table."""
        return in_one_table(list(self.by_key(folder).values()), self.bases)

    def comparison(
        self,
        results: Sequence[Result],
        failures: Sequence[Failure],
        pilots: Sequence[Result] = (),
    ) -> Comparison:
        """Put results and failures into one table, with what this says of how they were made."""
        return Comparison(
            in_one_table(results, self.bases),
            list(failures),
            self.command,
            self.config,
            self.bases,
            self.against,
            self.script,
            list(pilots),
        )

    def tried(self, folder: Path) -> list[Result]:
        """Read the results of the pilot runs, by which tuning chose."""
        return list(_stored(folder, self.pilots).values())

    def joined(self, folder: Path, new: "Description", grid: Sequence[Cell]) -> "Description":
        """Join a folder's comparison with a new one; refuse what one table cannot hold.

        A result of a run that was made by something else gives way to the run of today, and that
        is said. A result of another run that was made by something else is refused.

        Args:
            folder: The folder that this describes.
            new: The comparison that is added.
            grid: The runs of the new one.
        """
        if set(self.cells) <= set(new.cells):
            return new
        self.refuse_another_experiment(folder, new, grid)
        old = self.by_key(folder)
        due = {cell.key: to_come(cell) for cell in grid}
        made_by = {cell.key: cell.made_by for cell in grid}
        table = _Table([*old.values(), *due.values()])
        rows = {table.row(table.filled(due[key], new.bases)): key for key in due}
        gone: set[str] = set()
        again: dict[str, list[str]] = {}
        others: dict[str, list[str]] = {}
        for key, result in old.items():
            takes_over = rows.get(table.row(table.filled(result, self.bases)))
            if key in due or takes_over == key:
                continue
            if takes_over is None:
                changes = outdated(result.made_by)
                told = others
            else:
                changes = differences(result.made_by or {}, made_by[takes_over])
                told = again
                gone.add(key)
                if not changes:
                    raise ConfigError(
                        f"{str(folder)!r} has a result of {result.name}, seed {result.seed}, with "
                        "another configuration; give another folder or another name"
                    )
            if changes:
                told.setdefault(", ".join(changes), []).append(label(result))
        if others:
            raise ConfigError(
                f"{str(folder)!r} holds {', '.join(told_again(others))}; compare these again with "
                "the others, or give another folder"
            )
        for line in told_again(again):
            note(f"{folder} holds {line}; played again")
        commands = dict.fromkeys([*self.command.split("\n"), *new.command.split("\n")])
        script = self.script
        if new.script not in script:
            script = f"{script}\n{new.script}".lstrip("\n")
        against = new.against or self.against
        staying = [result for key, result in old.items() if key not in gone]
        baselines([*staying, *due.values()], against)
        keys = [key for key in dict.fromkeys([*self.cells, *new.cells]) if key not in gone]
        bases = {**new.bases, **self.bases}
        command = "\n".join(filter(None, commands))
        pilots = list(dict.fromkeys([*self.pilots, *new.pilots]))
        return Description(command, self.config, keys, bases, against, script, pilots)

    def refuse_another_experiment(
        self, folder: Path, new: "Description", grid: Sequence[Cell]
    ) -> None:
        """Refuse a comparison whose experiment differs in a key that neither of the two varies."""
        if not self.bases or ("" in self.bases) != ("" in new.bases):
            raise ConfigError(
                f"{str(folder)!r} holds a comparison of another kind; give this one a folder of "
                "its own"
            )
        may_differ = {"seed", "federation.workers"}
        for result in self.results(folder):
            may_differ |= result.varied.keys() | result.tuned.keys()
        for cell in grid:
            may_differ |= cell.varied.keys() | cell.tuned.keys()
        for setting in self.bases.keys() & new.bases.keys():
            old = flat(self.bases[setting])
            now = flat(new.bases[setting])
            for key in sorted(old.keys() | now.keys()):
                section = key.partition(".")[0]
                if section == "allocator" or key in may_differ or section in may_differ:
                    continue
                if old.get(key) != now.get(key):
                    raise ConfigError(
                        f"{str(folder)!r} holds a comparison with {key} = {old.get(key)!r}, this "
                        f"one has {now.get(key)!r}: give it a folder of its own, or vary the key "
                        f"(--set {key}={old.get(key)},{now.get(key)})"
                    )


def _stored(folder: Path, keys: Sequence[str]) -> dict[str, Result]:
    """Read the results that are there, by the keys of their runs."""
    found = {}
    for key in keys:
        result = stored_result(folder, key)
        if result is not None:
            found[key] = result
    return found


class _Table:
    """One table for several results: every result has a value of every key varied in any of them.

    Args:
        results: The results that share the table.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        self._varied = varied_keys(results)
        self._has_shares = any(result.share is not None for result in results)

    def filled(self, result: Result, bases: Bases) -> Result:
        """Give a result the values of its experiment for keys that were varied elsewhere."""
        base = flat(bases.get(result.setting or "", {}))
        base["mechanism"] = result.mechanism
        varied = {key: result.varied.get(key, base.get(key)) for key in self._varied}
        share = result.share
        if share is None and self._has_shares:
            share = 1.0
        return replace(result, varied=varied, share=share)

    @staticmethod
    def place(result: Result) -> tuple[Any, ...]:
        """Return what tells the groups of rows apart: all but the seed."""
        varied = json.dumps(result.varied, sort_keys=True)
        return result.setting, varied, result.share, result.allocator

    def row(self, result: Result) -> tuple[Any, ...]:
        """Return what tells the rows apart."""
        return *self.place(result), result.seed


def in_one_table(results: Sequence[Result], bases: Bases) -> list[Result]:
    """Give all results the same columns, and sort them so that the seeds of a line are together."""
    table = _Table(results)
    filled = [table.filled(result, bases) for result in results]
    rank = _ranks(table.place(result) for result in filled)
    return sorted(filled, key=lambda result: (rank[table.place(result)], result.seed))


def _ranks(places: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    """Number places in the order in which they first occur."""
    rank: dict[tuple[Any, ...], int] = {}
    for place in places:
        rank.setdefault(place, len(rank))
    return rank


def to_come(cell: Cell) -> Result:
    """Stand in for the result of a run that is still to be played."""
    unknown: dict[str, Any] = {
        "budget": 0,
        "spent": 0,
        "rounds": 0,
        "accuracy_final": 0,
        "accuracy_last10": 0,
        "accuracy_best": 0,
        "ended": "",
    }
    return Result(**cell.config.identity(), **unknown, **cell.place)


def open_comparison(folder: Path) -> Comparison:
    """Open the comparison in a folder, with the runs that have ended.

    Results that were made by something else than is here today are told.
    """
    found = Description.read(folder)
    results = found.results(folder)
    tell_outdated(folder, results)
    return found.comparison(results, [], found.tried(folder))


def tell_outdated(place: Path, results: Sequence[Result]) -> None:
    """Say which stored results were made by other code or data, or by another version of bara."""
    found: dict[str, list[str]] = {}
    for result in results:
        changes = outdated(result.made_by)
        if changes:
            found.setdefault(", ".join(changes), []).append(label(result))
    for line in told_again(found):
        note(f"{place} holds {line}")


def open(place: str | Path, *, run: str | None = None) -> Result | Comparison:  # noqa: A001 - bara.open
    """Open a run or a comparison, from its folder or its database; nothing is changed there.

    A run that has not ended is opened as far as it has come. Of a database, accuracies are those of
    the final model: models that were saved beside it are in the folder.

    Args:
        place: A run's folder, the folder of a comparison, a ledger's file, or a database's URL.
        run: The run's name in a database.
    """
    path = Path(place)
    where = str(place)
    if "://" not in where:
        if Description.is_in(path):
            return open_comparison(path)
        if not path.exists():
            raise ConfigError(f"there is no run and no comparison in {str(path)!r}")
        if path.is_file():
            where = f"sqlite:///{path.resolve()}"
    with find_run(where, run) as found:
        if not isinstance(found, RunFolder):
            return result_of(found.read_books())
        if found.has_result:
            result = found.result()
        else:
            so_far = result_of(found.read_books())
            result = replace(so_far, folder=path, made_by=found.made_by())
        if result.made_by is not None:
            tell_outdated(path, [result])
        return result

"""Runs and their rounds as rows of plain values and as pandas frames: one type per column."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from types import NoneType
from typing import Any

from bara.errors import MissingExtraError
from bara.reports.result import COLUMNS, Result, varied_keys

Row = dict[str, Any]

_TEXT = ("setting", "allocator", "variant", "mechanism", "dataset", "metric", "ended")
_WHOLE = ("seed", "rounds", "round", "n", "remembered")

_OF_RUN = ("setting", "allocator", "variant", "mechanism", "dataset", "metric")

OF_ROUND = ("round", "n", "cost", "spent", "accuracy", "loss", "remembered", "age", "estimate")
"""The columns of a table of rounds, after those that identify the run."""

_DTYPES = {str: "str", int: "int64", float: "float64", bool: "bool"}


def column(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the values of one column, row by row."""
    return [row[name] for row in rows]


def run_rows(results: Sequence[Result]) -> list[Row]:
    """Return a row for each run, with a column for each key that was varied."""
    varied = _varied(results)
    rows = []
    for run in results:
        row = {name: getattr(run, name) for name in COLUMNS}
        row["share"] = run.share
        row |= _values(run, varied)
        rows.append(row)
    return rows


def round_rows(results: Sequence[Result]) -> list[Row]:
    """Return a row for each round of each run."""
    varied = _varied(results)
    rows = []
    for run in results:
        identity = {name: getattr(run, name) for name in _OF_RUN}
        identity |= {"seed": run.seed, "share": run.share}
        identity |= _values(run, varied)
        spent = accumulate(column(run.history, "cost"))
        for entry, so_far in zip(run.history, spent, strict=True):
            told = {"remembered": 0, **entry, "spent": so_far}
            rows.append(identity | {name: told.get(name) for name in OF_ROUND})
    return rows


def type_of(column: str, rows: Iterable[Row]) -> type:
    """Return the one type of a column, missing values aside: bool, int, float or str."""
    if column in _TEXT:
        return str
    if column in _WHOLE:
        return int
    found = {type(row[column]) for row in rows}
    if found in ({bool}, {int}):
        return found.pop()
    return float if found <= {int, float, NoneType} else str


def frame(rows: Sequence[Row]) -> Any:
    """Return a pandas frame of the rows, without the columns that hold no value at all."""
    try:
        import pandas as pd  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError:
        raise MissingExtraError("frames need pandas: pip install 'bara-fl[frames]'") from None
    columns: dict[str, Any] = {}
    for name in rows[0] if rows else ():
        values = column(rows, name)
        if values.count(None) == len(values):
            continue
        kind = type_of(name, rows)
        for place, value in enumerate(values):
            if value is not None:
                values[place] = kind(value)
        columns[name] = pd.Series(values, dtype=_DTYPES[kind])
    return pd.DataFrame(columns)


def _varied(results: Sequence[Result]) -> list[str]:
    """Return the keys varied in any run; the mechanism has a column in every table."""
    return [key for key in varied_keys(results) if key != "mechanism"]


def _values(run: Result, varied: Sequence[str]) -> Row:
    return {key: run.varied.get(key) for key in varied}

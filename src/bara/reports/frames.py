"""Runs and their rounds as rows of plain values, and as frames of pandas: every column has one type."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from types import NoneType
from typing import Any

from bara.errors import MissingExtraError
from bara.reports.result import COLUMNS, Result

Row = dict[str, Any]

_TEXT = ("setting", "allocator", "variant", "mechanism", "dataset", "metric", "ended")
_WHOLE = ("seed", "rounds", "round", "n", "remembered")

_OF_RUN = ("setting", "allocator", "variant", "mechanism", "dataset", "metric")

OF_ROUND = ("round", "n", "cost", "spent", "accuracy", "loss", "remembered", "age", "estimate")
"""What a table of rounds says of each, after whose round it is."""


def run_rows(results: Sequence[Result]) -> list[Row]:
    """A row for each run, with a column for each key that was varied."""
    keys = _varied(results)
    return [
        {
            **{column: getattr(run, column) for column in COLUMNS},
            "share": run.share,
            **_values(run, keys),
        }
        for run in results
    ]


def round_rows(results: Sequence[Result]) -> list[Row]:
    """A row for each round of each run."""
    keys = _varied(results)
    rows = []
    for run in results:
        whose = {column: getattr(run, column) for column in _OF_RUN}
        whose |= {"seed": run.seed, "share": run.share, **_values(run, keys)}
        spent = accumulate(entry["cost"] for entry in run.history)
        for entry, so_far in zip(run.history, spent, strict=True):
            told = {"remembered": 0, **entry, "spent": so_far}
            rows.append(whose | {column: told.get(column) for column in OF_ROUND})
    return rows


def type_of(column: str, rows: Iterable[Row]) -> type:
    """The one type of a column, whatever is missing in it: bool, int, float or str."""
    if column in _TEXT:
        return str
    if column in _WHOLE:
        return int
    found = {type(row[column]) for row in rows}
    if found in ({bool}, {int}):
        return found.pop()
    return float if found <= {int, float, NoneType} else str


def frame(rows: Sequence[Row]) -> Any:
    """A pandas frame; columns in which nothing is known are left out."""
    try:
        import pandas as pd  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError:
        raise MissingExtraError("frames need pandas: pip install 'bara-fl[frames]'") from None
    known = [
        column
        for column in (rows[0] if rows else ())
        if any(row[column] is not None for row in rows)
    ]
    columns = {}
    for column in known:
        kind = type_of(column, rows)
        values = [None if row[column] is None else kind(row[column]) for row in rows]
        columns[column] = pd.Series(
            values, dtype={str: "str", int: "int64", float: "float64", bool: "bool"}[kind]
        )
    return pd.DataFrame(columns)


def _varied(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(key for run in results for key in run.varied if key != "mechanism"))


def _values(run: Result, keys: Sequence[str]) -> Row:
    return {key: run.varied.get(key) for key in keys}

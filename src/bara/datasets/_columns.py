"""The columns of a table: what each holds, and what to say of one that cannot be used."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bara.datasets._formats.table import arrow
from bara.datasets._record import Labels, Task
from bara.errors import DatasetError, UnfitDatasetError

MOST_LABELS = 20
"""Whole numbers of more kinds than this are a regression's target."""

MOST_DIFFERENT = 1_000
"""A column of more names than this is no category but says who a row is."""

QUESTION = re.compile(r"(.+?)\s*(>=|<=|==|>|<)\s*(-?\d+(?:\.\d+)?)")
ANSWERS: dict[str, Callable[[Any, float], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}


class Target(NamedTuple):
    """What is learned: labels or numbers, how many labels there are, the task, and the column they come from."""

    y: NDArray[Any]
    classes: int
    task: Task
    column: str


@dataclass(frozen=True, eq=False)
class Feature:
    """One column to learn from: its numbers, NaN where it has none; of names, their codes."""

    values: NDArray[np.float64]
    named: bool


def check_named_once(name: str, columns: list[str]) -> None:
    """Refuse a name that two columns have."""
    twice = next((one for place, one in enumerate(columns) if one in columns[:place]), None)
    if twice is not None:
        raise DatasetError(f"{name} has two columns named {twice!r}")


def target_of(name: str, table: Any, asked: str, task: Task | Literal["auto"]) -> Target:
    """The column to learn, or the answers to a question about it."""
    if not asked:
        raise UnfitDatasetError(
            f"{name}: data.target must name the column to learn; {known(table.column_names)}"
        )
    question = None if asked in table.column_names else QUESTION.fullmatch(asked)
    column = question[1] if question else asked
    found = _column(name, table, column, "data.target")
    if found.null_count:
        raise DatasetError(
            f"{name}: row {_first(found.is_null())} has no {column!r} (data.target); leave it out"
        )
    values = _numeric(name, column, found) if _holds_numbers(found) or question else None
    if values is not None and not np.isfinite(values).all():
        at = int(np.argmax(~np.isfinite(values)))
        raise DatasetError(
            f"{name}: row {at + 1} has {column!r} = {values[at]} (data.target); leave it out"
        )
    if question and values is not None:
        values = ANSWERS[question[2]](values, float(question[3])).astype(float)
    if (task if task != "auto" else _task(values)) == "regression":
        return _number(name, column, values)
    texts = found.to_numpy(zero_copy_only=False).astype(str) if values is None else values
    return _label(name, column, texts, task)


def _task(values: NDArray[np.float64] | None) -> Task:
    """By the target: text, and whole numbers of few kinds, are labels."""
    whole = values is None or bool((values == np.rint(values)).all())
    return (
        "classes"
        if whole and (values is None or len(np.unique(values)) <= MOST_LABELS)
        else "regression"
    )


def _number(name: str, column: str, values: NDArray[np.float64] | None) -> Target:
    if values is None:
        raise UnfitDatasetError(
            f"{name}: {column!r} (data.target) is text; a regression needs numbers"
        )
    _check_varied(name, column, np.unique(values))
    return Target(values, 0, "regression", column)


def _label(name: str, column: str, values: NDArray[Any], asked: Task | Literal["auto"]) -> Target:
    labels, y = np.unique(values, return_inverse=True)
    _check_varied(name, column, labels)
    if asked == "binary" and len(labels) > 2:
        raise UnfitDatasetError(
            f"{name}: {column!r} (data.target) has {len(labels)} values; a binary task needs 2"
        )
    if len(labels) > MOST_DIFFERENT:
        raise DatasetError(
            f"{name}: {column!r} (data.target) has {len(labels)} different values; it looks like a name"
        )
    task: Task = "binary" if len(labels) == 2 and asked != "classes" else "classes"
    return Target(y, len(labels), task, column)


def _check_varied(name: str, column: str, values: NDArray[Any]) -> None:
    if len(values) < 2:
        raise DatasetError(
            f"{name}: {column!r} (data.target) is the same in every row, {values[0]}: nothing to learn"
        )


def silos_of(name: str, table: Any, client: str | None) -> tuple[tuple[str, ...], Labels]:
    """The clients' names, sorted, and who owns which row."""
    if client is None:
        return (), np.empty(0, np.int64)
    found = _column(name, table, client, "data.client")
    if found.null_count:
        raise DatasetError(
            f"{name}: row {_first(found.is_null())} has no {client!r} (data.client); every row needs an owner"
        )
    coded = found.cast(arrow().string()).dictionary_encode()
    names = [str(one).strip() for one in coded.dictionary.to_pylist()]
    if "" in names:
        at = np.flatnonzero(coded.indices.to_numpy(zero_copy_only=False) == names.index(""))[0]
        raise DatasetError(
            f"{name}: row {at + 1} has no {client!r} (data.client); every row needs an owner"
        )
    silos, numbers = np.unique(names, return_inverse=True)
    return tuple(silos.tolist()), numbers[coded.indices.to_numpy(zero_copy_only=False)]


def feature_of(name: str, table: Any, column: str, *, named: bool) -> Feature:
    found = _column(name, table, column, "data.features")
    types = arrow().types
    if _holds_numbers(found):
        values = _numeric(name, column, found)
        if np.isinf(values).any():
            raise DatasetError(
                f"{name}: row {int(np.argmax(np.isinf(values))) + 1} has {column!r} = infinity"
            )
        return Feature(values, named)
    if types.is_null(found.type):
        return Feature(np.full(len(found), np.nan), named=False)
    if not (types.is_string(found.type) or types.is_large_string(found.type)):
        raise DatasetError(
            f"{name}: column {column!r} holds {found.type}; make numbers or text of it, or leave it out of "
            "data.features"
        )
    if not named:
        _refuse_text_among_numbers(name, column, found)
    coded = found.dictionary_encode()
    if len(coded.dictionary) > MOST_DIFFERENT:
        raise DatasetError(
            f"{name}: column {column!r} has {len(coded.dictionary):,} different values: it says who a row is; leave it "
            "out of data.features"
        )
    return Feature(coded.indices.cast(arrow().float64()).to_numpy(zero_copy_only=False), named=True)


def _holds_numbers(found: Any) -> bool:
    types = arrow().types
    kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(is_kind(found.type) for is_kind in kinds)


def _numeric(name: str, column: str, found: Any) -> NDArray[np.float64]:
    package = arrow()
    try:
        numbers = found.cast(package.float64(), safe=False)
    except package.ArrowException:
        raise UnfitDatasetError(
            f"{name}: column {column!r} holds {found.type}, not numbers"
        ) from None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), np.float64)


def _refuse_text_among_numbers(name: str, column: str, found: Any) -> None:
    """A column that is mostly numbers was meant to be one."""
    values = found.drop_null().to_pylist()
    text = [one for one in values if not _is_number(one)]
    if values and len(text) < len(values) / 2:
        rows = found.to_pylist()
        raise DatasetError(
            f"{name}: row {rows.index(text[0]) + 1} has {column!r} = {text[0]!r}, and most of the column is numbers; "
            f"correct it, or name the column in data.categorical"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first(mask: Any) -> int:
    """The number of the first row that is so, counted from 1 below the header."""
    return int(mask.index(arrow().scalar(value=True)).as_py()) + 1


def _column(name: str, table: Any, column: str, key: str) -> Any:
    if column not in table.column_names:
        raise UnfitDatasetError(
            f"{name} has no column {column!r} ({key}); {known(table.column_names)}"
        )
    found = table.column(column).combine_chunks()
    package = arrow()
    if package.types.is_dictionary(found.type):
        return found.cast(found.type.value_type)
    return found


def known(columns: Any) -> str:
    """The end of a message: which columns there are."""
    return f"it has {', '.join(columns)}"

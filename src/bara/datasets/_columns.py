"""The columns of a table: what each of them holds, and messages for those that cannot be used."""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Labels, Task
from bara.datasets._table_files import arrow
from bara.errors import DatasetError, UnfitDatasetError

MOST_LABELS = 20
"""A target with more different whole numbers than this is a regression's."""

MOST_DIFFERENT = 1_000
"""A column with more different texts than this is no category: it identifies its rows."""

QUESTION = re.compile(r"(.+?)\s*(>=|<=|==|>|<)\s*(-?\d+(?:\.\d+)?)")
"""A target such as ``visits > 0``: a column, a comparison and a number."""

ANSWERS: dict[str, Callable[[Any, float], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}


class Target(NamedTuple):
    """The target of a table: labels or numbers, how many labels, the task, and the column."""

    y: NDArray[Any]
    classes: int
    task: Task
    column: str


@dataclass(frozen=True, eq=False)
class Feature:
    """A column to learn from: numbers, or the codes of names; NaN where a value is missing."""

    values: NDArray[np.float64]
    named: bool


def check_named_once(name: str, columns: list[str]) -> None:
    """Refuse a table in which two columns have the same name."""
    seen = set()
    for column in columns:
        if column in seen:
            raise DatasetError(f"{name} has two columns named {column!r}")
        seen.add(column)


def target_of(name: str, table: Any, asked: str, task: Task | Literal["auto"]) -> Target:
    """Return the target of an Arrow table: a column, or the answers to a question about one."""
    if not asked:
        raise UnfitDatasetError(
            f"{name}: data.target must name the column to learn; {known(table.column_names)}"
        )
    column = asked
    question = None
    if asked not in table.column_names:
        question = QUESTION.fullmatch(asked)
    if question:
        column = question[1]
    found = _column(name, table, column, "data.target")
    if found.null_count:
        raise DatasetError(
            f"{name}: row {_first(found.is_null())} has no {column!r} (data.target); leave it out"
        )
    if not _holds_numbers(found) and not question:
        if task == "regression":
            raise UnfitDatasetError(
                f"{name}: {column!r} (data.target) is text; a regression needs numbers"
            )
        texts = found.to_numpy(zero_copy_only=False).astype(str)
        return _label(name, column, texts, task)
    values = _numeric(name, column, found)
    if not np.isfinite(values).all():
        at = int(np.argmax(~np.isfinite(values)))
        raise DatasetError(
            f"{name}: row {at + 1} has {column!r} = {values[at]} (data.target); leave it out"
        )
    if question:
        values = ANSWERS[question[2]](values, float(question[3])).astype(float)
    if task == "regression" or (task == "auto" and not _are_labels(values)):
        _check_varied(name, column, np.unique(values))
        return Target(values, 0, "regression", column)
    return _label(name, column, values, task)


def _are_labels(values: NDArray[np.float64]) -> bool:
    """Return True for whole numbers of few kinds."""
    return bool((values == np.rint(values)).all()) and len(np.unique(values)) <= MOST_LABELS


def _label(name: str, column: str, values: NDArray[Any], asked: Task | Literal["auto"]) -> Target:
    labels, y = np.unique(values, return_inverse=True)
    _check_varied(name, column, labels)
    if asked == "binary" and len(labels) > 2:
        raise UnfitDatasetError(
            f"{name}: {column!r} (data.target) has {len(labels)} values; a binary task needs 2"
        )
    if len(labels) > MOST_DIFFERENT:
        raise DatasetError(
            f"{name}: {column!r} (data.target) has {len(labels)} different values; "
            "it looks like a name"
        )
    task: Task = "binary" if len(labels) == 2 and asked != "classes" else "classes"
    return Target(y, len(labels), task, column)


def _check_varied(name: str, column: str, values: NDArray[Any]) -> None:
    if len(values) < 2:
        raise DatasetError(
            f"{name}: {column!r} (data.target) is the same in every row, {values[0]}: "
            "nothing to learn"
        )


def silos_of(name: str, table: Any, client: str | None) -> tuple[tuple[str, ...], Labels]:
    """Return the names of the silos, sorted, and the number of the silo that owns each row."""
    if client is None:
        return (), np.empty(0, np.int64)
    found = _column(name, table, client, "data.client")
    if found.null_count:
        raise _without_owner(name, client, _first(found.is_null()))
    coded = found.cast(arrow().string()).dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    names = [str(one).strip() for one in coded.dictionary.to_pylist()]
    if "" in names:
        at = np.flatnonzero(codes == names.index(""))[0]
        raise _without_owner(name, client, int(at) + 1)
    silos, numbers = np.unique(names, return_inverse=True)
    return tuple(silos.tolist()), numbers[codes]


def _without_owner(name: str, client: str, row: int) -> DatasetError:
    return DatasetError(
        f"{name}: row {row} has no {client!r} (data.client); every row needs an owner"
    )


def feature_of(name: str, table: Any, column: str, *, named: bool) -> Feature:
    """Return a column to learn from, or refuse a column that a model cannot learn from.

    Numbers in a `named` column are names, such as codes.
    """
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
            f"{name}: column {column!r} holds {found.type}; make numbers or text of it, "
            "or leave it out of data.features"
        )
    if not named:
        _refuse_text_among_numbers(name, column, found)
    coded = found.dictionary_encode()
    if len(coded.dictionary) > MOST_DIFFERENT:
        raise DatasetError(
            f"{name}: column {column!r} has {len(coded.dictionary):,} different values: "
            "it says who a row is; leave it out of data.features"
        )
    codes = coded.indices.cast(arrow().float64()).to_numpy(zero_copy_only=False)
    return Feature(codes, named=True)


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
    """Refuse a column of text that is mostly numbers, and so was meant to hold numbers."""
    values = found.drop_null().to_pylist()
    text = [one for one in values if not _is_number(one)]
    if values and len(text) < len(values) / 2:
        rows = found.to_pylist()
        raise DatasetError(
            f"{name}: row {rows.index(text[0]) + 1} has {column!r} = {text[0]!r}, "
            "and most of the column is numbers; "
            "correct it, or name the column in data.categorical"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first(mask: Any) -> int:
    """Return the number of the first row where the mask is true, counted from 1."""
    return int(mask.index(arrow().scalar(value=True)).as_py()) + 1


def _column(name: str, table: Any, column: str, key: str) -> Any:
    """Return a column as one Arrow array, or refuse a name that the table does not have."""
    if column not in table.column_names:
        raise UnfitDatasetError(
            f"{name} has no column {column!r} ({key}); {known(table.column_names)}"
        )
    found = table.column(column).combine_chunks()
    if arrow().types.is_dictionary(found.type):
        return found.cast(found.type.value_type)
    return found


def known(columns: Iterable[str]) -> str:
    """Return the end of a message: which columns the table has."""
    return f"it has {', '.join(columns)}"

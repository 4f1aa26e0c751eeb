"""From a table to a dataset: which columns are what, numbers and names as a model takes them, rows held out.

What is learned of the columns (means, deviations, which names there are, what stands for a missing
number) is learned from training rows alone, by scikit-learn. A regression's target is standardised,
too.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bara.datasets._columns import Feature, check_named_once, feature_of, known, silos_of, target_of
from bara.datasets._formats.table import arrow
from bara.datasets._record import Dataset, Labels, Task
from bara.datasets._splits import stratified_order
from bara.errors import DatasetError, MissingExtraError, UnfitDatasetError
from bara.randomness import stream

MOST_NAMES = 50
"""Of a column of names, the most frequent so many count; the others are one."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what; `Dataset.from_frame` says what each is."""

    target: str = ""
    client: str | None = None
    features: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    task: Task | Literal["auto"] = "auto"
    test_share: float = 0.25

    def over(self, other: "Columns") -> "Columns":
        """These, and what they leave open as the other has it."""
        changed = {
            key: value for key, value in vars(self).items() if value != getattr(Columns(), key)
        }
        return replace(other, **changed)


def table_of(name: str, frame: Any) -> Any:
    """A frame as an Arrow table."""
    package = arrow()
    columns = [str(column) for column in getattr(frame, "columns", ())]
    check_named_once(name, columns if columns and isinstance(columns[0], str) else [])
    try:
        if hasattr(frame, "iloc"):  # pandas, whose index is no column
            return package.Table.from_pandas(frame, preserve_index=False)
        return package.table(frame)
    except (package.ArrowException, TypeError, ValueError) as error:
        raise DatasetError(f"{name} is not a table that Arrow can read: {error}") from error


def dataset_of(name: str, table: Any, columns: Columns) -> dict[str, Any]:
    """What `Dataset` is made of."""
    check_named_once(name, table.column_names)
    if not table.num_rows:
        raise DatasetError(f"{name} has columns, but no rows")
    if not 0 < columns.test_share < 1:
        raise UnfitDatasetError(
            f"data.test_share must be between 0 and 1, got {columns.test_share}"
        )
    y, classes, task, asked = target_of(name, table, columns.target, columns.task)
    silos, owners = silos_of(name, table, columns.client)
    features = columns.features or [
        one for one in table.column_names if one not in (asked, columns.client)
    ]
    kinds = {
        one: feature_of(name, table, one, named=one in columns.categorical) for one in features
    }
    if unknown := [one for one in columns.categorical if one not in kinds]:
        raise UnfitDatasetError(
            f"data.categorical names {unknown[0]!r}, which is not a feature; {known(kinds)}"
        )
    if asked in kinds or columns.client in kinds or not kinds:
        wrong = "no column" if not kinds else repr(asked if asked in kinds else columns.client)
        raise UnfitDatasetError(
            f"{name}: data.features has {wrong}; it must have columns to learn from"
        )
    whole = Dataset(name, np.zeros((len(y), 1)), y, np.zeros((1, 1)), y[:1], classes, "", task, silos, owners,
                    owners[:1])  # fmt: skip
    train, test = _held_out(whole, columns.test_share)
    x_train, x_test = _learned(kinds, train, test)
    if task == "regression":  # the same for a model, whatever the unit
        y = (y - y[train].mean()) / (y[train].std() or 1.0)
    return {
        "name": name,
        "x_train": x_train,
        "y_train": y[train],
        "x_test": x_test,
        "y_test": y[test],
        "classes": classes,
        "task": task,
        "silos": silos,
        **({"owners": owners[train], "test_owners": owners[test]} if silos else {}),
    }


def _held_out(whole: Dataset, share: float) -> tuple[Labels, Labels]:
    """The training rows and the held-out rows, each in the table's order: the same whatever a run's seed."""
    strata = whole.strata[0]
    order = stratified_order(strata, stream(0, "table").permutation(len(strata)))
    count = round((1 - share) * len(order))
    if not 0 < count < len(order):
        raise UnfitDatasetError(
            f"{whole.name}: {len(order)} rows cannot be divided with data.test_share {share}"
        )
    train, test = np.sort(order[:count]), np.sort(order[count:])
    if whole.silos:
        lacking = np.setdiff1d(np.arange(len(whole.silos)), whole.owners[train])
        if len(lacking):
            raise UnfitDatasetError(
                f"{whole.name}: client {whole.silos[lacking[0]]!r} has no rows in training; lower data.test_share"
            )
    return train, test


def _learned(
    kinds: dict[str, Feature], train: Labels, test: Labels
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both parts as a model takes them: numbers standardised, missing ones told, a column for each name."""
    try:
        from sklearn.compose import ColumnTransformer  # noqa: PLC0415  (heavy, and an extra)
        from sklearn.impute import SimpleImputer  # noqa: PLC0415
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415
        from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("tables need scikit-learn: pip install 'bara-fl[sim]'") from error
    numbers = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    names = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_NAMES, sparse_output=False
    )
    named = np.array([one.named for one in kinds.values()])
    transform = ColumnTransformer(
        [
            ("numbers", make_pipeline(numbers, StandardScaler()), np.flatnonzero(~named)),
            ("names", names, np.flatnonzero(named)),
        ]
    )
    table = np.stack([one.values for one in kinds.values()], axis=1)
    x_train = transform.fit_transform(table[train]).astype(np.float32)
    return x_train, transform.transform(table[test]).astype(np.float32)

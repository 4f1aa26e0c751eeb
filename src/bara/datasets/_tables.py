"""The way from a table to a dataset: the roles of its columns, their encoding, the held-out rows.

Everything that the encoding learns from the columns (means, deviations, which names there are, what
stands for a missing number) it learns from training rows alone, by scikit-learn. A regression's
target is standardised, too.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bara.datasets._catalogue import CATALOGUE, altered
from bara.datasets._columns import Feature, check_named_once, feature_of, known, silos_of, target_of
from bara.datasets._places import whole_path
from bara.datasets._record import Dataset, Labels, Task
from bara.datasets._splits import stratified_order
from bara.datasets._table_files import SiloTable, arrow, compare_table, read_table
from bara.errors import DatasetError, MissingExtraError, UnfitDatasetError
from bara.randomness import stream

MOST_NAMES = 50
"""How many different names of a column are told apart, the most frequent; the rest count as one."""


@dataclass(frozen=True)
class Columns:
    """The roles of a table's columns; `Dataset.from_frame` explains each field."""

    target: str = ""
    client: str | None = None
    features: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    task: Task | Literal["auto"] = "auto"
    test_share: float = 0.25

    def over(self, other: "Columns") -> "Columns":
        """Return the other columns, replaced by every field that is not at its default here."""
        defaults = vars(Columns())
        changed = {key: value for key, value in vars(self).items() if value != defaults[key]}
        return replace(other, **changed)


def arrow_table(name: str, frame: Any) -> Any:
    """Return a frame, or a mapping of names to columns, as an Arrow table."""
    package = arrow()
    check_named_once(name, list(map(str, getattr(frame, "columns", ()))))
    try:
        if hasattr(frame, "iloc"):  # pandas, whose index is no column
            return package.Table.from_pandas(frame, preserve_index=False)
        return package.table(frame)
    except (package.ArrowException, TypeError, ValueError) as error:
        raise DatasetError(f"{name} is not a table that Arrow can read: {error}") from error


def dataset_of(name: str, table: Any, columns: Columns) -> dict[str, Any]:
    """Return the arguments of `Dataset` for an Arrow table with these columns."""
    check_named_once(name, table.column_names)
    if not table.num_rows:
        raise DatasetError(f"{name} has columns, but no rows")
    if not 0 < columns.test_share < 1:
        raise UnfitDatasetError(
            f"data.test_share must be between 0 and 1, got {columns.test_share}"
        )
    y, classes, task, target = target_of(name, table, columns.target, columns.task)
    silos, owners = silos_of(name, table, columns.client)
    features = _features(name, table, columns, target)
    # All rows without their features, to draw the held-out rows stratum by stratum.
    whole = Dataset(
        name,
        x_train=np.zeros((len(y), 1)),
        y_train=y,
        x_test=np.zeros((1, 1)),
        y_test=y[:1],
        classes=classes,
        task=task,
        silos=silos,
        owners=owners,
        test_owners=owners[:1],
    )
    train, test = _held_out(whole, columns.test_share)
    x_train, x_test = _encoded(features, train, test)
    if task == "regression":  # so that its unit makes no difference to a model
        y = (y - y[train].mean()) / (y[train].std() or 1.0)
    made = {
        "name": name,
        "x_train": x_train,
        "y_train": y[train],
        "x_test": x_test,
        "y_test": y[test],
        "classes": classes,
        "task": task,
        "silos": silos,
    }
    if silos:
        made["owners"] = owners[train]
        made["test_owners"] = owners[test]
    return made


def _features(name: str, table: Any, columns: Columns, target: str) -> dict[str, Feature]:
    """Return the columns to learn from, by their names."""
    asked = list(columns.features)
    if not asked:
        asked = [one for one in table.column_names if one not in (target, columns.client)]
    features = {}
    for column in asked:
        named = column in columns.categorical
        features[column] = feature_of(name, table, column, named=named)
    for column in columns.categorical:
        if column not in features:
            raise UnfitDatasetError(
                f"data.categorical names {column!r}, which is not a feature; {known(features)}"
            )
    wrong = ""
    if not features:
        wrong = "no column"
    elif target in features:
        wrong = repr(target)
    elif columns.client in features:
        wrong = repr(columns.client)
    if wrong:
        raise UnfitDatasetError(
            f"{name}: data.features has {wrong}; it must have columns to learn from"
        )
    if all(np.isnan(feature.values).all() for feature in features.values()):
        empty = ", ".join(map(repr, features))
        raise UnfitDatasetError(
            f"{name}: every column to learn from is empty ({empty}); fill one, or name others in "
            "data.features"
        )
    return features


def _held_out(whole: Dataset, share: float) -> tuple[Labels, Labels]:
    """Return the training rows and the held-out rows, in order and whatever the run's seed."""
    strata = whole.strata[0]
    order = stratified_order(strata, stream(0, "table").permutation(len(strata)))
    count = round((1 - share) * len(order))
    if not 0 < count < len(order):
        raise UnfitDatasetError(
            f"{whole.name}: {len(order)} rows cannot be divided with data.test_share {share}"
        )
    train = np.sort(order[:count])
    test = np.sort(order[count:])
    if whole.silos:
        lacking = np.setdiff1d(np.arange(len(whole.silos)), whole.owners[train])
        if len(lacking):
            raise UnfitDatasetError(
                f"{whole.name}: client {whole.silos[lacking[0]]!r} has no rows in training; "
                "lower data.test_share"
            )
    return train, test


def _encoded(
    features: dict[str, Feature], train: Labels, test: Labels
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return training and held-out rows as a model takes them.

    Numbers are standardised, missing numbers are marked, and each name has a column of its own.
    """
    try:
        # Heavy, and an extra.
        from sklearn import compose, impute, pipeline, preprocessing  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("tables need scikit-learn: pip install 'bara-fl[sim]'") from error
    imputer = impute.SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    numbers = pipeline.make_pipeline(imputer, preprocessing.StandardScaler())
    names = preprocessing.OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_NAMES, sparse_output=False
    )
    named = np.array([feature.named for feature in features.values()])
    transform = compose.ColumnTransformer(
        [
            ("numbers", numbers, np.flatnonzero(~named)),
            ("names", names, np.flatnonzero(named)),
        ]
    )
    table = np.stack([feature.values for feature in features.values()], axis=1)
    x_train = transform.fit_transform(table[train]).astype(np.float32)
    return x_train, transform.transform(table[test]).astype(np.float32)


def load_table(
    name: str,
    path: str | os.PathLike[str] | None,
    found: SiloTable | None,
    columns: Columns,
    *,
    verify: bool,
) -> Dataset:
    """Return the dataset that a table makes.

    Args:
        name: The table's file, or its name in the catalogue.
        path: The folder that a relative file starts from.
        found: The files of a table of the catalogue; None for a user's own table.
        columns: The roles of the columns; for a table of the catalogue, those that differ from the
            catalogue's.
        verify: True if a table of the catalogue must be as published.
    """
    if found is None:
        table = read_table(whole_path(name, path))
        return Dataset(**dataset_of(Path(name).name, table, columns))
    version, checks = compare_table(found)
    for check in checks:
        if verify and not check.right:
            raise DatasetError(altered(name, check))
    known = Columns(**CATALOGUE[name].table)
    made = dataset_of(name, found.read(), columns.over(known))
    return Dataset(**made, version=version if verify else "")

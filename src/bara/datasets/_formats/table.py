"""Tables in files, read by Arrow: Parquet and CSV (perhaps gzipped; commas, semicolons or tabs)."""

import gzip
from pathlib import Path
from typing import Any

from bara.errors import DatasetError, MissingExtraError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet")
"""The endings of the names of tables' files."""

MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""The texts that stand for a missing value in a CSV file."""


def is_table(name: str) -> bool:
    """Return True if a dataset's name is that of a table's file.

    >>> is_table("patients.csv"), is_table("mnist"), is_table("my.module:patients")
    (True, False, False)
    """
    return name.lower().endswith(SUFFIXES)


def arrow() -> Any:
    """Return pyarrow, the package that reads tables, or say how to install it."""
    try:
        import pyarrow  # noqa: PLC0415, ICN001  (heavy, and an extra)
    except ImportError as error:
        raise MissingExtraError(
            "tables are read by pyarrow: pip install 'bara-fl[tables]'"
        ) from error
    return pyarrow


def read_table(path: Path, header: tuple[str, ...] = ()) -> Any:
    """Read an Arrow table from a file; a column holds numbers, or text if any of it is text.

    Args:
        path: The file.
        header: The columns' names, if the file's first row does not have them.
    """
    package = arrow()
    if not path.is_file():
        raise DatasetError(f"there is no table {str(path)!r}")
    if not path.stat().st_size:
        raise DatasetError(f"{path} is empty")
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet  # noqa: PLC0415  (heavy, and an extra)

            return parquet.read_table(path)
        return _read_csv(path, header)
    except (OSError, EOFError, package.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read: {' '.join(str(error).split())}") from error


def _read_csv(path: Path, header: tuple[str, ...]) -> Any:
    from pyarrow import csv  # noqa: PLC0415  (heavy, and an extra)

    broken: list[Any] = []

    def refuse(row: Any) -> str:
        broken.append(row)
        return "error"

    try:
        return csv.read_csv(
            path,
            # With one thread, Arrow knows the number of a broken row.
            read_options=csv.ReadOptions(use_threads=False, column_names=list(header) or None),
            parse_options=csv.ParseOptions(delimiter=_delimiter(path), invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(null_values=list(MISSING), strings_can_be_null=True),
        )
    except arrow().ArrowInvalid as error:
        if not broken:
            raise
        row = broken[0]
        raise DatasetError(
            f"{path}: line {row.number} has {row.actual_columns} fields; "
            f"the header has {row.expected_columns}"
        ) from error


def _delimiter(path: Path) -> str:
    """Return the separator that is most frequent in the first line."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        first = file.readline(1_000_000)
    return max(",;\t", key=lambda sign: first.count(sign.encode()))

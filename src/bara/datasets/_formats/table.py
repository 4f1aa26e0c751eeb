"""Tables in files: CSV (gzipped or not, with commas, semicolons or tabs) and Parquet, read by Arrow."""

import gzip
from pathlib import Path
from typing import Any

from bara.errors import DatasetError, MissingExtraError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet")
"""How the name of a table's file ends."""

MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "?")
"""What stands for a missing value in a CSV file."""


def is_table(name: str) -> bool:
    """Whether a dataset's name is that of a table's file.

    >>> is_table("patients.csv"), is_table("mnist"), is_table("my.module:patients")
    (True, False, False)
    """
    return name.lower().endswith(SUFFIXES)


def arrow() -> Any:
    """The package that reads tables."""
    try:
        import pyarrow  # noqa: PLC0415, ICN001  (heavy, and an extra)
    except ImportError as error:
        raise MissingExtraError(
            "tables are read by pyarrow: pip install 'bara-fl[tables]'"
        ) from error
    return pyarrow


def read_table(path: Path, header: tuple[str, ...] = ()) -> Any:
    """The table in a file, as Arrow has it; a column has numbers, or text where any of it is text.

    Args:
        path: The file.
        header: The columns' names, where its first row does not say them.
    """
    package = arrow()
    if not path.is_file():
        raise DatasetError(f"there is no table {str(path)!r}")
    if not path.stat().st_size:
        raise DatasetError(f"{path} is empty")
    try:
        if path.suffix == ".parquet":
            from pyarrow.parquet import read_table as read_parquet  # noqa: PLC0415  (as above)

            return read_parquet(path)
        return _read_csv(path, header)
    except (OSError, EOFError, package.ArrowException) as error:
        raise DatasetError(f"{path} cannot be read: {' '.join(str(error).split())}") from error


def _read_csv(path: Path, header: tuple[str, ...]) -> Any:
    from pyarrow import csv  # noqa: PLC0415  (as above)

    broken: list[Any] = []

    def refuse(row: Any) -> str:
        broken.append(row)
        return "error"

    try:
        return csv.read_csv(
            path,
            # One thread: then it knows the number of a broken row.
            read_options=csv.ReadOptions(use_threads=False, column_names=list(header) or None),
            parse_options=csv.ParseOptions(delimiter=_delimiter(path), invalid_row_handler=refuse),
            convert_options=csv.ConvertOptions(null_values=list(MISSING), strings_can_be_null=True),
        )
    except arrow().ArrowInvalid as error:
        if not broken:
            raise
        row = broken[0]
        raise DatasetError(
            f"{path}: line {row.number} has {row.actual_columns} fields; the header has {row.expected_columns}"
        ) from error


def _delimiter(path: Path) -> str:
    """What separates the fields of the first line."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        first = file.readline(1_000_000)
    return max(",;\t", key=lambda sign: first.count(sign.encode()))

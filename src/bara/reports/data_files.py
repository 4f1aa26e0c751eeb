"""CSV files with their origin: the command, the configuration and the columns' types beside each.

The metadata of `NAME.csv` are in `NAME.csv-metadata.json`, where W3C's "CSV on the Web" has readers
look for them: the CSV itself stays plain.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bara import __version__
from bara.files import write_whole
from bara.reports.comparison import Comparison
from bara.reports.frames import Row, run_rows, type_of
from bara.reports.result import Result
from bara.text import csv_text


@dataclass(frozen=True)
class Origin:
    """The origin of a file, for its metadata.

    Attributes:
        command: The command that made the file.
        config: The configuration, as TOML.
    """

    command: str = ""
    config: str = ""


UNKNOWN = Origin()
"""The origin of a file when nobody told it."""

_TYPES = {str: "string", int: "integer", float: "double", bool: "boolean"}


def origin_of(shown: Result | Comparison) -> Origin:
    """Return the origin that a run or a comparison states."""
    if isinstance(shown, Comparison):
        return Origin(shown.command, shown.config)
    return Origin(repr(shown))


def write_csv(rows: Sequence[Row], path: Path, origin: Origin = UNKNOWN) -> None:
    """Write rows as a CSV file, and its metadata into a file beside it."""
    names = list(rows[0]) if rows else []
    columns = [{"name": name, "datatype": _TYPES[type_of(name, rows)]} for name in names]
    metadata = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": path.name,
        "dc:creator": f"bara {__version__}",
        "dc:source": origin.command,
        "dc:description": origin.config,
        "tableSchema": {"columns": columns},
    }
    write_whole(path, [csv_text(names, (list(row.values()) for row in rows))])
    write_whole(path.with_name(f"{path.name}-metadata.json"), [json.dumps(metadata, indent=1)])


def write_runs(shown: Comparison, folder: Path) -> None:
    """Write the runs of a comparison as `results.csv`."""
    write_csv(run_rows(shown.results), folder / "results.csv", origin_of(shown))

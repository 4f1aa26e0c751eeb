"""Rows as CSV files that say what made them: command, configuration and the columns' types stand in a file beside each.

That file is `NAME.csv-metadata.json`, where W3C's "CSV on the Web" has readers look for it: the CSV
stays plain.
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
    """What made a file, for its metadata.

    Attributes:
        command: The command.
        config: The configuration, as TOML.
    """

    command: str = ""
    config: str = ""


UNKNOWN = Origin()
"""Nobody said what made it."""

_TYPES = {str: "string", int: "integer", float: "double", bool: "boolean"}


def origin_of(shown: Result | Comparison) -> Origin:
    """What a run or a comparison says of itself."""
    return (
        Origin(shown.command, shown.config)
        if isinstance(shown, Comparison)
        else Origin(repr(shown))
    )


def write_csv(rows: Sequence[Row], path: Path, origin: Origin = UNKNOWN) -> None:
    """A CSV file, and beside it what is in it and what made it."""
    names = list(rows[0]) if rows else []
    told = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": path.name,
        "dc:creator": f"bara {__version__}",
        "dc:source": origin.command,
        "dc:description": origin.config,
        "tableSchema": {
            "columns": [{"name": name, "datatype": _TYPES[type_of(name, rows)]} for name in names]
        },
    }
    write_whole(path, [csv_text(names, ([row[name] for name in names] for row in rows))])
    write_whole(path.with_name(f"{path.name}-metadata.json"), [json.dumps(told, indent=1)])


def write_runs(shown: Comparison, folder: Path) -> None:
    """The runs of a comparison as `results.csv`."""
    write_csv(run_rows(shown.results), folder / "results.csv", origin_of(shown))

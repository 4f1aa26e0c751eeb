"""A run or a comparison as files to read and to print: page, tables, figures, data."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bara import __version__
from bara.files import make_folder, write_whole
from bara.reports.comparison import Comparison
from bara.reports.frames import Row, run_rows, type_of
from bara.reports.html import comparison_report, run_report
from bara.reports.result import Result
from bara.text import csv_text


def publish(shown: Comparison, folder: Path, *, columns: int = 1) -> None:
    """Write a comparison's page, its tables (CSV, Markdown, LaTeX) and its `figures/`."""
    make_folder(folder)
    write_runs(shown, folder)
    write_whole(folder / "report.html", [comparison_report(shown)])
    write_whole(folder / "table.md", [shown.to_markdown(), f"\n<!--\n{shown.config}-->\n"])
    write_whole(folder / "table.tex", [shown.to_latex()])

    from bara.reports.drawings import save_figures  # noqa: PLC0415 - the page needs no extra

    save_figures(shown, folder / "figures", columns)


def publish_run(
    result: Result, folder: Path, *, command: str, config: str, columns: int = 1
) -> None:
    """Write a run's page and its `figures/`.

    Args:
        result: The run's result, as far as it has come.
        folder: The folder to write to.
        command: The command that repeats the run, or makes it go on.
        config: The run's configuration, as TOML.
        columns: How many columns of a two-column page each figure is wide.
    """
    make_folder(folder)
    write_whole(folder / "report.html", [run_report(result, config, command)])

    from bara.reports.drawings import save_figures  # noqa: PLC0415 - as above

    save_figures(result, folder / "figures", columns, Origin(command, config))


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
        return Origin(shown.command or shown.script, shown.config)
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

"""The verb `report`: a run or a comparison as an HTML page, with figures and data."""

import re
from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import Debug, RunName
from bara.cli.output import errors, say


def report_command(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DIR|URL",
            help="A run's folder, the --out of a comparison, or a database's URL.",
        ),
    ],
    run: RunName = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="With a URL: the folder to write to. Default: a folder with the run's name."
        ),
    ] = None,
    columns: Annotated[
        int, typer.Option(min=1, max=2, help="The width of each figure, in columns of a page.")
    ] = 1,
    debug: Debug = False,
) -> None:
    """Write a self-contained HTML page, its figures (PNG, SVG, PDF), tables and data."""
    with errors(debug):
        from bara.reports.comparison import Comparison, Kept
        from bara.reports.publication import publish, publish_run
        from bara.runs.database import DatabaseRun, find_run

        folder = Path(place)
        if "://" not in place and Kept.is_in(folder):
            publish(Comparison.open(folder), folder, columns=columns)
        else:
            with find_run(place, run) as found:
                if isinstance(found, DatabaseRun):
                    folder = out or Path(re.sub(r"[^\w-]+", "-", found.name))
                publish_run(found, folder, columns=columns)
        say(f"open {folder / 'report.html'}; figures and data are in {folder / 'figures'}")

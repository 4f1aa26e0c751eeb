"""The verb `report`: a run or a comparison as one page, figures and data."""

import re
from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import Debug, RunName
from bara.cli.output import errors, say


def report_command(
    place: Annotated[
        str, typer.Argument(metavar="DIR|URL", help="A run's folder, the --out of a comparison, or a database's URL.")
    ],
    run: RunName = None,
    out: Annotated[
        Path | None, typer.Option(help="With a URL: the folder to write to; the run's name below here.")
    ] = None,
    columns: Annotated[int, typer.Option(min=1, max=2, help="How many columns of a page each figure is wide.")] = 1,
    debug: Debug = False,
) -> None:
    """Write one self-contained HTML page, each figure on it (PNG, SVG, PDF), the tables and the data behind them."""
    with errors(debug):
        from bara.experiments.comparison import Comparison, Kept
        from bara.experiments.database_run import DatabaseRun, find_run
        from bara.reports.publication import publish, publish_run

        folder = Path(place)
        if "://" not in place and Kept.is_in(folder):
            publish(Comparison.open(folder), folder, columns=columns)
        else:
            with find_run(place, run) as found:
                if isinstance(found, DatabaseRun):
                    folder = out or Path(re.sub(r"[^\w-]+", "-", found.name))
                publish_run(found, folder, columns=columns)
        say(f"open {folder / 'report.html'}; figures and data are in {folder / 'figures'}")

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
        from bara.reports.publication import publish, publish_run
        from bara.runs.database import find_run
        from bara.runs.folder import RunFolder
        from bara.runs.summary import result_of
        from bara.studies.stored import Description, open_comparison

        folder = Path(place)
        if "://" not in place and Description.is_in(folder):
            publish(open_comparison(folder), folder, columns=columns)
        else:
            with find_run(place, run) as found:
                if isinstance(found, RunFolder):
                    result = found.result()
                    command = found.command
                else:
                    folder = out or Path(re.sub(r"[^\w-]+", "-", found.name))
                    result = result_of(found.read_books())
                    command = found.resume_command
                config = found.config.to_toml()
                publish_run(result, folder, command=command, config=config, columns=columns)
        say(f"open {folder / 'report.html'}; figures and data are in {folder / 'figures'}")

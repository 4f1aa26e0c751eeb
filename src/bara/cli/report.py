"""The verb `report`: a run or a comparison as an HTML page, with figures and data."""

import re
from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import Debug, RunName
from bara.cli.output import errors, say
from bara.errors import ConfigError


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
            help="The folder to write to. Default: a new one here, named after what is shown; "
            "nothing is written into DIR."
        ),
    ] = None,
    columns: Annotated[
        int, typer.Option(min=1, max=2, help="The width of each figure, in columns of a page.")
    ] = 1,
    debug: Debug = False,
) -> None:
    """Write a self-contained HTML page, its figures (PNG, SVG, PDF), tables and data."""
    with errors(debug):
        from bara.ledger import require_whole
        from bara.reports.publication import publish, publish_run
        from bara.runs.database import find_run
        from bara.runs.folder import RunFolder
        from bara.runs.summary import result_of
        from bara.studies.stored import Description, open_comparison

        folder = Path(place)
        if "://" not in place and Description.is_in(folder):
            comparison = open_comparison(folder)
            target = out or _beside(folder.resolve().name, folder)
            publish(comparison, target, columns=columns)
        else:
            with find_run(place, run) as found:
                if isinstance(found, RunFolder):
                    target = out or _beside(folder.resolve().name, folder)
                    result = found.result()
                    command = found.command
                else:
                    target = out or _beside(found.name, None)
                    result = result_of(found.read_books())
                    command = found.resume_command
                require_whole(found.read_books())
                config = found.config.to_toml()
                publish_run(result, target, command=command, config=config, columns=columns)
        say(f"open {target / 'report.html'}; figures and data are in {target / 'figures'}")


def _beside(name: str, read: Path | None) -> Path:
    """Choose a folder here for the report; refuse one in the folder that is only read.

    Args:
        name: The name of what is shown.
        read: The folder that is read; None for a database.
    """
    plain = re.sub(r"[^\w.-]+", "-", name)
    target = Path(f"{plain}-report")
    if read is not None and Path.cwd().is_relative_to(read.resolve()):
        raise ConfigError(
            f"the report would be written into {str(read)!r}, which is only read; "
            "say with --out where it should go"
        )
    if target.is_symlink():
        raise ConfigError(f"{str(target)!r} is a link; say with --out where the report should go")
    return target

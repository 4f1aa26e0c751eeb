"""The verb `dashboard`: live pages over runs in the browser."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import Debug
from bara.cli.output import errors, say
from bara.text import note

TOKEN = "BARA_DASHBOARD_TOKEN"  # noqa: S105 - the name of a variable, not a secret


def dashboard_command(
    place: Annotated[
        str,
        typer.Argument(
            metavar="DIR|URL", help="A run's folder, one that holds runs, or a database's URL."
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="PORT", help="The port; 0 for any free one.")
    ] = 8765,
    host: Annotated[
        str, typer.Option(help="The address; visitors from other machines need a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            help=f"The access token that visitors need; ${TOKEN} hides it from other users."
        ),
    ] = None,
    allow_host: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Another host name to answer to; may be repeated."),
    ] = [],
    debug: Debug = False,
) -> None:
    """Show runs in the browser, live and afterwards. Read-only."""
    with errors(debug):
        from bara.plugins import import_path

        address = import_path("bara.dashboard.server:Address")
        serve = import_path("bara.dashboard.server:serve")
        serve(
            place if "://" in place else Path(place),
            address(host, port, token or os.environ.get(TOKEN), allow_host),
            _tell,
            private=sys.stdout.isatty(),
        )


def _tell(line: str) -> None:
    """Print the dashboard's address to standard output, and warnings to standard error."""
    if line.startswith("http"):
        say(line)
    else:
        note(line)

"""The verb `new`: a folder to start from, for a plug-in or a Flower app."""

from pathlib import Path
from typing import Annotated

import typer

from bara.cli.options import Debug
from bara.cli.output import errors, say


def new_command(
    template: Annotated[
        str, typer.Argument(help="What to make: allocator, mechanism or flower-app.")
    ],
    name: Annotated[
        str, typer.Argument(help="The new folder's name, in lower case: my-allocator.")
    ],
    debug: Debug = False,
) -> None:
    """Make a folder to start from: an allocator or a mechanism with its tests, or a Flower app."""
    with errors(debug):
        from bara.templates import create

        folder = create(template, name, Path())
        say(f"{folder} is ready; {folder / 'README.md'} says how to run it")

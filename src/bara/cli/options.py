"""What all verbs of the command line share."""

import json
import shlex
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bara.errors import BaraError, ConfigError

ConfigFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[CONFIG.toml]", help="The experiment: a file, or a preset by name (figures-mnist); none for defaults."
    ),
]
Changes = Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change one key; may be repeated.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def examples(*lines: str) -> str:
    """What stands beneath a verb's help."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def command_line() -> str:
    """What the user typed, to be repeated."""
    return shlex.join(["bara", *sys.argv[1:]])


def listed(text: str, option: str | None = None) -> list[str]:
    """The names in an option that takes several, by comma; with the option's name, at least one is required."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if option is not None and not names:
        raise ConfigError(f"{option} {text!r} names none; required is at least one")
    return names


def print_json(tree: Any) -> None:
    """One document."""
    typer.echo(json.dumps(tree, indent=1))


@contextmanager
def errors(debug: bool) -> Iterator[None]:
    """One clear line: exit 2 for what was asked wrongly, 1 for work that failed."""
    try:
        yield
    except BaraError as error:
        if debug:
            traceback.print_exc()
        typer.echo(f"bara: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, ConfigError) else 1) from None


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Progress]:
    """A live bar on a terminal; nothing elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, TextColumn("{task.fields[note]}"), console=console, disable=quiet or not console.is_terminal
    ) as progress:
        yield progress

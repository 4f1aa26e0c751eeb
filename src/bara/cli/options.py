"""What the verbs' arguments and options share."""

from pathlib import Path
from typing import Annotated

import typer

from bara.errors import ConfigError

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
Jobs = Annotated[int, typer.Option(help="Processes; -1 for all cores.")]


def examples(*lines: str) -> str:
    """What stands beneath a verb's help."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def listed(text: str, option: str | None = None) -> list[str]:
    """The names in an option that takes several, by comma; with the option's name, at least one is required."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if option is not None and not names:
        raise ConfigError(f"{option} {text!r} names none; required is at least one")
    return names

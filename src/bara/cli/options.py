"""What the verbs' arguments and options share."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from bara.errors import ConfigError

ConfigFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[CONFIG.toml]",
        help="The experiment: a file or the name of a preset (figures-mnist). Default: all defaults.",
    ),
]
Changes = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Set one key; may be repeated.")
]
Place = Annotated[
    str,
    typer.Argument(
        metavar="DIR|URL", help="A run's folder, or the URL of a database that holds runs."
    ),
]
RunName = Annotated[
    str | None, typer.Option("--run", metavar="NAME", help="Which run of the database.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Jobs = Annotated[int, typer.Option(help="How many processes; -1 for one per core.")]


def examples(*lines: str) -> str:
    """What stands beneath a verb's help."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def listed(text: str, option: str | None = None) -> list[str]:
    """The names in an option that takes several, by comma; with the option's name, at least one is required."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if option is not None and not names:
        raise ConfigError(f"{option} must name at least one, got {text!r}")
    return names


def numbers(text: str, option: str) -> list[float]:
    """The numbers in an option that takes several, by comma."""
    try:
        return [float(part) for part in listed(text)]
    except ValueError:
        raise ConfigError(
            f"{option} {text!r} must be numbers separated by commas, like 0.25,0.5,1 or 500,1000"
        ) from None


def varied(changes: list[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """What --set changes, and what it varies: keys with one value, and keys with several, by comma.

    >>> varied(["budget.total=600", "training.memory=off,plain", "clients.bids=uniform(1, 2)"])
    ({'budget.total': 600, 'clients.bids': 'uniform(1, 2)'}, {'training.memory': ['off', 'plain']})
    """
    from bara.plugins import toml_value

    keys: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    for change in changes:
        key, equals, text = (part.strip() for part in change.partition("="))
        parts = [part.strip() for part in re.split(r",(?![^(\[{]*[)\]}])", text) if part.strip()]
        if not key or not equals or not parts:
            raise ConfigError(
                f"--set {change!r} must be KEY=VALUE, like budget.total=600, or KEY=VALUE,VALUE to vary it"
            )
        whole = toml_value(text)
        if len(parts) == 1 or not isinstance(whole, str) or whole != text:  # a list, or in quotes
            keys[key] = whole
        else:
            grid[key] = [toml_value(part) for part in parts]
    return keys, grid

"""Arguments and options that several verbs share, and helpers that read their values."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from bara.errors import ConfigError

ConfigFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[CONFIG.toml]",
        help="The experiment: a file or the name of a preset (figures-mnist). "
        "Default: all defaults.",
    ),
]
Changes = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Set one key; may be repeated.")
]
PlaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="DIR|URL", help="A run's folder, or the URL of a database that holds runs."
    ),
]
RunName = Annotated[
    str | None, typer.Option("--run", metavar="NAME", help="Which run of the database.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
By = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="PERSON",
        help="Who gives this command, for the record. Default: BARA_OPERATOR, or your login.",
    ),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")]
Once = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A name for this amount, like an invoice's number: given again after an error, "
        "it changes nothing if it is stored.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Jobs = Annotated[int, typer.Option(help="How many processes; -1 for one per core.")]


COMMA = re.compile(r",(?![^(\[{]*[)\]}])")
"""A comma outside all brackets."""


def examples(*lines: str) -> str:
    """Return the examples that stand beneath a verb's help, one to a line."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def listed(text: str, option: str | None = None) -> list[str]:
    """Return the names in a text, which are separated by commas.

    Args:
        text: The value of an option that takes several names.
        option: The option's name, if it must name at least one.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if option is not None and not names:
        raise ConfigError(f"{option} must name at least one, got {text!r}")
    return names


def numbers(text: str, option: str) -> list[float]:
    """Return the numbers in a text, which are separated by commas.

    Args:
        text: The value of an option that takes several numbers.
        option: The option's name, for the error message.
    """
    try:
        return list(map(float, listed(text)))
    except ValueError:
        raise ConfigError(
            f"{option} {text!r} must be numbers separated by commas, like 0.25,0.5,1 or 500,1000"
        ) from None


def whole_numbers(text: str, option: str) -> int | list[int]:
    """Return the number in a text; a list where there is a comma.

    Args:
        text: The value of an option.
        option: The option's name, for the error message.

    >>> [whole_numbers(text, "--seeds") for text in ("5", "3,7", "7,")]
    [5, [3, 7], [7]]
    """
    try:
        if "," in text:
            return list(map(int, listed(text, option)))
        return int(text)
    except ValueError:
        raise ConfigError(
            f"{option} {text!r} must be how many (5), or which, with a comma (3,7 or 7,)"
        ) from None


def varied(changes: list[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the keys that `--set` gives one value, and those that it gives several, by comma.

    Args:
        changes: The values of `--set`, each KEY=VALUE or KEY=VALUE,VALUE.

    >>> varied(["budget.total=600", "training.memory=off,plain", "clients.bids=uniform(1, 2)"])
    ({'budget.total': 600, 'clients.bids': 'uniform(1, 2)'}, {'training.memory': ['off', 'plain']})
    """
    from bara.plugins import toml_value

    keys: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    for change in changes:
        key, _, text = map(str.strip, change.partition("="))
        values = [value.strip() for value in COMMA.split(text) if value.strip()]
        if not key or not values:
            raise ConfigError(
                f"--set {change!r} must be KEY=VALUE, like budget.total=600, "
                "or KEY=VALUE,VALUE to vary it"
            )
        whole = toml_value(text)
        is_plain_text = isinstance(whole, str) and whole == text  # no TOML list, no quotes
        if len(values) > 1 and is_plain_text:
            grid[key] = list(map(toml_value, values))
        else:
            keys[key] = whole
    return keys, grid

"""The Python program that repeats a comparison that no command has made."""

import keyword
import re
from collections.abc import Mapping, Sequence
from pprint import pformat
from typing import Any

from bara.plugins import OBJECT
from bara.runs.config import Config
from bara.runs.config_sections import Named


class _Own:
    """The name of a part of the user's own program, which the script does not hold."""

    def __init__(self, name: str) -> None:
        name = re.sub(r"\W+", "_", name.removeprefix(OBJECT)).strip("_")
        is_free = name.isidentifier() and not keyword.iskeyword(name)
        self.name = name if is_free else f"my_{name}"

    def __repr__(self) -> str:
        return self.name


def python_script(
    bases: Mapping[str, Config],
    allocators: Sequence[Named],
    varied: Mapping[str, Sequence[Any]],
    options: Mapping[str, Any],
    keys: Mapping[str, Any],
) -> str:
    """Return a program that makes the same comparison.

    A part that Python handed over is a name in it, which the user's own program defines.

    Args:
        bases: The experiments before anything was varied, by setting.
        allocators: The allocators that are compared.
        varied: The other keys that are varied, with their values.
        options: The other options of `bara.compare`; those that are empty are left out.
        keys: The changes to a suite.
    """
    arguments: dict[str, Any] = {"allocators": _named(allocators)}
    grid = dict(varied)
    if "mechanism" in grid:
        arguments["mechanisms"] = _named(grid.pop("mechanism"))
    if grid:
        arguments["grid"] = {key: _plain(list(values)) for key, values in grid.items()}
    arguments |= {name: value for name, value in options.items() if value}
    head = ["import bara", ""]
    tree: Any = {}
    call = ["found = bara.compare("]
    if "" in bases:
        tree = _plain(bases[""].model_dump(exclude_unset=True))
        head.append(f"experiment = {pformat(tree, width=88, sort_dicts=False)}")
        call.append("    experiment,")
    else:
        arguments |= {key: _plain(value) for key, value in keys.items()}
    for name, value in arguments.items():
        shown = pformat(value, width=84 - len(name), sort_dicts=False)
        call.append(f"    {name}={shown.replace(chr(10), chr(10) + '    ')},")
    own = sorted(_own([arguments, tree]))
    if own:
        head.insert(1, f"# of your own program: {', '.join(own)}")
    return "\n".join([*head, *call, ")"]) + "\n"


def _named(parts: Sequence[Named]) -> Any:
    """Return the parts as `bara.compare` takes them: a mapping where one was renamed."""
    shown = {}
    for part in parts:
        shown[part.label] = part.spec if part.part is None else _own_part(part)
    if all(part.label == part.spec for part in parts):
        return list(shown.values())
    return shown


def _own_part(part: Named) -> _Own:
    """Name an own part: a class or a function as itself, an object as the tables call it."""
    name = getattr(part.part, "__name__", "")
    return _Own(name if name.isidentifier() else part.label)


def _plain(value: Any) -> Any:
    """Return plain values; what no import path leads to becomes the name of an own part."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, str):
        return _Own(value) if value.startswith(OBJECT) else str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return _Own(getattr(value, "__name__", type(value).__name__))


def _own(value: Any) -> set[str]:
    """Return the names of all own parts in a tree."""
    if isinstance(value, _Own):
        return {value.name}
    found: set[str] = set()
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            found |= _own(one)
    return found

"""Every key there is, from the code: sections, and each part's own options with defaults, ranges and choices."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_type_hints

from bara.allocators import ALLOCATORS
from bara.mechanisms import MECHANISMS
from bara.plugins import Registry, in_words
from bara.runs.config import Config
from bara.runs.engines import SYNTHETIC
from bara.runs.factory import FEDERATIONS
from bara.runs.sections import Table
from bara.simulator.synthetic import LearningCurve

GIVEN = {"clients", "seed", "goal", "config", "folder", "requirements"}
"""What a part is given, and nobody sets as its option."""

REGISTRIES: dict[str, Registry[Any]] = {
    "allocator": ALLOCATORS,
    "mechanism": MECHANISMS,
    "federation": FEDERATIONS,
}
"""Where the parts of each section are found."""


@dataclass(frozen=True)
class Option:
    """One option of a part.

    Attributes:
        name: As one sets it, below its section.
        default: As TOML would have it; None where it must be set, or is nothing.
        kind: What it may be: type, choices, range.
        about: What it is for, from the part's own documentation.
    """

    name: str
    default: Any
    kind: str
    about: str


def options_of(section: str, name: str, part: Any = None) -> list[Option]:
    """The options of an allocator, a mechanism or an engine.

    >>> [option.name for option in options_of("allocator", "fixed")]
    ['n', 'shortfall']
    """
    if section == "federation":
        return _of_engine(name)
    factory = REGISTRIES[section].factory(name) if part is None else part
    own = _of_signature(factory)
    more = getattr(factory, "more_options", None)
    return own + ([] if more is None else _of_record(more, [one.name for one in fields(more)]))


def _of_engine(name: str) -> list[Option]:
    if name == SYNTHETIC:
        return _of_record(LearningCurve, [one.name for one in fields(LearningCurve)])
    return []


def _of_signature(factory: Callable[..., Any]) -> list[Option]:
    if not (isinstance(factory, type) or inspect.isroutine(factory)):  # it is made already
        return []
    about = _described(factory)
    found = []
    for name, parameter in inspect.signature(factory, eval_str=True).parameters.items():
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if named and not (name in GIVEN and _is_given(factory, name)):
            default = None if parameter.default is parameter.empty else parameter.default
            found.append(Option(name, default, _kind(parameter.annotation), about.get(name, "")))
    return found


def _is_given(factory: Callable[..., Any], name: str) -> bool:
    """Allocators are given clients and seed; a mechanism's `clients` is its own."""
    return name != "clients" or not hasattr(factory, "claims")


def _of_record(record: type, names: list[str]) -> list[Option]:
    about, types = _described(record), get_type_hints(record, include_extras=True)
    assert is_dataclass(record)  # noqa: S101 - for the type checker
    defaults = {one.name: None if one.default is MISSING else one.default for one in fields(record)}
    return [Option(name, defaults[name], _kind(types[name]), about.get(name, "")) for name in names]


def _kind(annotation: Any) -> str:
    return (
        ""
        if annotation is inspect.Parameter.empty
        else in_words(annotation).replace(" or None", "")
    )


def _described(thing: Any) -> dict[str, str]:
    """What a function, or a class and those it derives from, says of each argument or attribute."""
    about: dict[str, str] = {}
    for one in reversed(thing.__mro__) if isinstance(thing, type) else [thing]:
        text = inspect.cleandoc(one.__doc__ or "")
        found = re.search(r"^(?:Args|Attributes):\n(.*?)(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
        entries = re.findall(
            r"^    (\w+): (.*?)(?=^    \S|\Z)", found[1] if found else "", re.DOTALL | re.MULTILINE
        )
        about |= {name: " ".join(words.split()) for name, words in entries}
    return about


def documented_toml(config: Config) -> str:
    """The whole configuration as TOML, and in comments the keys that are not set and the options of its parts."""
    lines: list[str] = []
    section = ""
    for line in [*config.to_toml().splitlines(), "[end]"]:
        if header := re.fullmatch(r"\[(\w+)\]", line):
            lines[_end(lines) :] = [*_unset(config, section), ""]
            section = header[1]
        lines.append(line)
    return "\n".join(lines[:-1]).strip("\n") + "\n"


def _end(lines: list[str]) -> int:
    return len(lines) - 1 if lines and not lines[-1] else len(lines)


def _unset(config: Config, section: str) -> Iterator[str]:
    """Comment lines for what a section could say, too."""
    table = getattr(config, section, None) if section else None
    if not isinstance(table, Table):
        return
    for key, field in type(table).model_fields.items():
        if getattr(table, key) is None:
            yield f"# {key} =  # not set: {field.description}"
    if section in REGISTRIES:
        given = table.model_extra or {}
        for one in options_of(section, getattr(table, table.MAIN or ""), table.part):
            if one.name not in given:
                default = "" if one.default is None else f" {_toml(one.default)}"
                yield f"# {one.name} ={default}  # {'; '.join(filter(None, (one.kind, one.about.partition('. ')[0])))}"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)

"""The reference of all keys, read from the code: sections, and the options of each part."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_type_hints

from bara.allocators import ALLOCATORS
from bara.mechanisms import MECHANISMS
from bara.options import in_words
from bara.plugins import Registry
from bara.runs.config import Config
from bara.runs.config_sections import Table
from bara.runs.engines import SYNTHETIC
from bara.runs.factory import FEDERATIONS
from bara.simulator.synthetic import LearningCurve

GIVEN = {"clients", "seed", "goal", "config", "folder", "requirements"}
"""The arguments that bara itself passes to a part, so they are not options."""

REGISTRIES: dict[str, Registry[Any]] = {
    "allocator": ALLOCATORS,
    "mechanism": MECHANISMS,
    "federation": FEDERATIONS,
}
"""The registry of each section's parts."""


@dataclass(frozen=True)
class Option:
    """An option of a part.

    Attributes:
        name: The key that sets the option, below its section.
        default: The default value; None if the option must be set, or defaults to None.
        kind: What the value may be: its type, choices and range, in words.
        about: What the option is for, from the part's own docstring.
    """

    name: str
    default: Any
    kind: str
    about: str


def options_of(section: str, name: str, part: Any = None) -> list[Option]:
    """Return the options of an allocator, a mechanism or an engine.

    Args:
        section: The section: `allocator`, `mechanism` or `federation`.
        name: The part's name or import path.
        part: The class or object that Python handed over instead of a name.

    >>> [option.name for option in options_of("allocator", "fixed")]
    ['n', 'shortfall']
    """
    if section == "federation":
        return _of_engine(name)
    factory = REGISTRIES[section].factory(name) if part is None else part
    options = _of_signature(factory)
    more = getattr(factory, "more_options", None)
    if more is not None:
        options += _of_dataclass(more)
    return options


def _of_engine(name: str) -> list[Option]:
    if name == SYNTHETIC:
        return _of_dataclass(LearningCurve)
    return []


def _of_signature(factory: Callable[..., Any]) -> list[Option]:
    """Return the options that a class or function takes; an object takes none any more."""
    if not (isinstance(factory, type) or inspect.isroutine(factory)):
        return []
    about = _described(factory)
    options = []
    for name, parameter in inspect.signature(factory, eval_str=True).parameters.items():
        has_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if not has_name or _is_given(factory, name):
            continue
        default = None if parameter.default is parameter.empty else parameter.default
        options.append(Option(name, default, _kind(parameter.annotation), about.get(name, "")))
    return options


def _is_given(factory: Callable[..., Any], name: str) -> bool:
    """Return True for an argument that bara passes; the `clients` of a mechanism is an option."""
    if name == "clients" and hasattr(factory, "claims"):
        return False
    return name in GIVEN


def _of_dataclass(kind: Any) -> list[Option]:
    about = _described(kind)
    types = get_type_hints(kind, include_extras=True)
    options = []
    for field in fields(kind):
        default = None if field.default is MISSING else field.default
        name = field.name
        options.append(Option(name, default, _kind(types[name]), about.get(name, "")))
    return options


def _kind(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return in_words(annotation).replace(" or None", "")


def _described(thing: Any) -> dict[str, str]:
    """Read what docstrings say of each argument; a class inherits the entries of its bases."""
    sources = [thing]
    if isinstance(thing, type):
        sources = list(reversed(thing.__mro__))
    about: dict[str, str] = {}
    for source in sources:
        text = inspect.cleandoc(source.__doc__ or "")
        block = re.search(r"^(?:Args|Attributes):\n(.*?)(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
        if block is None:
            continue
        entries = re.findall(r"^    (\w+): (.*?)(?=^    \S|\Z)", block[1], re.DOTALL | re.MULTILINE)
        for name, words in entries:
            about[name] = " ".join(words.split())
    return about


def documented_toml(config: Config) -> str:
    """Return a configuration as TOML, with comments for unset keys and for the parts' options."""
    lines: list[str] = []
    section = ""
    for line in config.to_toml().splitlines():
        header = re.fullmatch(r"\[(\w+)\]", line)
        if header is not None:
            _end_section(lines, config, section)
            section = header[1]
        lines.append(line)
    _end_section(lines, config, section)
    if not config.limits:
        lines.append(f"# [limits]  # not set: {Config.model_fields['limits'].description}")
    return "\n".join(lines).strip("\n") + "\n"


def _end_section(lines: list[str], config: Config, section: str) -> None:
    """Add a section's comments below its last key, and one blank line."""
    if lines and not lines[-1]:
        lines.pop()
    lines.extend(_unset(config, section))
    lines.append("")


def _unset(config: Config, section: str) -> Iterator[str]:
    """Yield a comment line for each key and each option that a section leaves unset."""
    table = getattr(config, section, None)
    if not isinstance(table, Table):
        return
    for key, field in type(table).model_fields.items():
        if getattr(table, key) is None:
            yield f"# {key} =  # not set: {field.description}"
    if section in REGISTRIES:
        given = table.model_extra or {}
        for one in options_of(section, getattr(table, table.MAIN or ""), table.part):
            if one.name in given:
                continue
            default = "" if one.default is None else f" {_toml(one.default)}"
            first_sentence = one.about.partition(". ")[0]
            comment = "; ".join(filter(None, (one.kind, first_sentence)))
            yield f"# {one.name} ={default}  # {comment}"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)

"""Options of parts, checked against the annotations of what they are options of.

They are checked here, not with pydantic: a part checks its own however it is made, by a
configuration or by a program that imports the core alone, which needs nothing but numpy and scipy.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from bara.errors import ConfigError
from bara.text import nearest


def check_options(
    whose: str,
    options: Mapping[str, Any],
    types: Mapping[str, Any],
    *,
    prefix: str = "",
    known: Collection[str] | None = None,
) -> None:
    """Refuse options that are unknown, of the wrong type, or out of their range.

    Types other than bool, int, float, str, dataclasses, literals and unions of these are not
    checked.

    Args:
        whose: The part that has the options, for the error.
        options: The options as they were given.
        types: The types of all options there are, with their ranges.
        prefix: The section before an option in a configuration (`federation.`).
        known: The options to suggest for an unknown one; all unless given.

    >>> check_options("allocator 'even'", {"carry_over": "maybe"}, {"carry_over": bool})
    Traceback (most recent call last):
    ...
    bara.errors.ConfigError: allocator 'even' has carry_over = 'maybe'; it must be true or false
    """
    for option, value in options.items():
        if option not in types:
            names = list(types if known is None else known)
            hint = nearest(option, names) if names else "it has none"
            if prefix:
                raise ConfigError(f"unknown key {prefix + option!r}; {hint}")
            raise ConfigError(f"{whose} has no option {option!r}; {hint}")
        wanted = _unmet(value, types[option])
        if wanted is not None:
            raise ConfigError(f"{whose} has {prefix}{option} = {value!r}; it must be {wanted}")


def check_fields(whose: str, record: Any) -> None:
    """Refuse a dataclass with a field of the wrong type, not among its choices or out of range."""
    types = get_type_hints(type(record), include_extras=True)
    check_options(whose, {name: getattr(record, name) for name in types}, types)


def check_arguments(whose: str, kind: type, **arguments: Any) -> None:
    """Refuse arguments of a constructor that do not fit the annotations in its signature."""
    check_options(whose, arguments, get_type_hints(vars(kind)["__init__"], include_extras=True))


@dataclass(frozen=True)
class Within:
    """The range of an option, beside its type: `Annotated[float, Within(above=0, at_most=1)]`.

    >>> str(Within(above=0, at_most=1)), 1 in Within(below=1), str(Within(above=0))
    ('above 0 and at most 1', False, 'positive')
    """

    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        """Return True for a number in the range."""
        return (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        """Return the range in words."""
        ends = {name: end for name, end in vars(self).items() if end is not None}
        if ends == {"above": 0}:
            return "positive"
        if ends.keys() == {"at_least", "at_most"}:
            return f"from {self.at_least:g} to {self.at_most:g}"
        return " and ".join(f"{name.replace('_', ' ')} {end:g}" for name, end in ends.items())


_IN_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "text",
    NoneType: "None",
}


def in_words(annotation: Any) -> str:
    """Return in words what an option may be: its type, its choices, its range."""
    origin = get_origin(annotation)
    if origin is Annotated:
        kind, *ranges = get_args(annotation)
        return _range_in_words(get_args(kind) or (kind,), ranges)
    if origin is Literal:
        return " or ".join(map(repr, get_args(annotation)))
    if origin in (Union, UnionType):
        return " or ".join(map(in_words, get_args(annotation)))
    return _IN_WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _range_in_words(kinds: tuple[Any, ...], ranges: list[Any]) -> str:
    """Return a number's range in words, and what the option may be other than a number."""
    number = " ".join(map(str, ranges))
    if int in kinds:
        number = f"a whole number {number}"
    others = [in_words(kind) for kind in kinds if kind not in (int, float)]
    return " or ".join([number, *others])


def _unmet(value: Any, annotation: Any) -> str | None:
    """Return in words what a value should be and is not; None where it fits its annotation."""
    kind = annotation
    ranges: list[Any] = []
    if get_origin(annotation) is Annotated:
        kind, *ranges = get_args(annotation)
    if not _fits(value, kind):
        return in_words(kind)
    if isinstance(value, int | float):
        for one in ranges:
            if value not in one:
                return str(one)
    return None


def _fits(value: Any, kind: Any) -> bool:
    """Return True where a value is of that type, or the type is not one that is checked."""
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(kind))
    if kind in (bool, str, NoneType) or is_dataclass(kind):
        return isinstance(value, kind)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and math.isfinite(value)
    return True

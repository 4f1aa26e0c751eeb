"""Names to things: our own, a user's by import path `package.module:Name`, or an installed entry point."""

import copy
import difflib
import importlib
import inspect
import math
import operator
import re
import tomllib
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib.metadata import entry_points
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from bara.errors import (
    BaraError,
    ConfigError,
    InvalidMoneyError,
    MissingExtraError,
    UnknownNameError,
)

T = TypeVar("T")

_EXTRAS = {
    "torch": "sim",
    "sklearn": "sim",
    "pooch": "sim",
    "dp_accounting": "sim",
    "flwr": "flower",
    "ray": "flower",
}
_EXTRAS |= {
    "starlette": "dashboard",
    "uvicorn": "dashboard",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
}


_imported: set[str] = set()
"""The packages that parts were imported from, ours and others'."""

_named: dict[str, str] = {}
"""The names of our own parts, by import path."""

OBJECT = "object:"
"""Begins the name of a part that Python handed over and that no import path leads to."""


class Handed(str):
    """What such a part is called, and the part itself: a name wherever one is read."""

    __slots__ = ("part",)
    part: Any

    def __new__(cls, name: str, part: Any) -> Self:
        """A name that holds a part."""
        made = super().__new__(cls, name)
        made.part = part
        return made

    @staticmethod
    def name_of(value: Any) -> Any:
        """The import path of a class or function; where none leads to it, its name with it. Texts stay as they are."""
        if isinstance(value, str) or not callable(value):
            return value
        spec, part = describe(value)
        return spec["name"] if part is None and len(spec) == 1 else Handed(spec["name"], value)

    def __deepcopy__(self, _memo: Any) -> "Handed":
        """A name is never changed."""
        return self


def nearest(name: str, known: list[str]) -> str:
    """A hint that names what was probably meant, or everything there is."""
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    alike = [difflib.SequenceMatcher(None, one, name).ratio() for one in close]
    if alike and alike[0] not in alike[1:]:
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(sorted(known))}"


def parse_call(text: str, what: str) -> tuple[str, tuple[float, ...]]:
    """Read `name(1, 2)` or a bare `name`, as configurations write distributions, strategies and partitions.

    >>> parse_call("uniform(0.5, 1.5)", "bids")
    ('uniform', (0.5, 1.5))
    """
    number = r"\s*[-+.\deE]+\s*"
    match = re.fullmatch(rf"\s*([a-z-]+)\s*(?:\(({number}(?:,{number})*)?\))?\s*", text)
    try:
        return match[1], tuple(float(part) for part in (match[2] or "").split(",") if part)  # type: ignore[index]
    except (TypeError, ValueError):
        raise ConfigError(
            f"{what} must be a name with numbers, like 'name(0.5, 1.5)', got {text!r}"
        ) from None


def import_path(path: str) -> Any:
    """What `package.module:Name` stands for."""
    if isinstance(path, Handed):
        return path.part
    if path.startswith(OBJECT):
        raise UnknownNameError(
            f"{path.removeprefix(OBJECT)!r} was an object in Python, which no import path leads to: hand it over "
            "again, as when the run began"
        )
    module_name, _, attribute = path.partition(":")
    _imported.add(module_name.partition(".")[0])
    try:
        module = importlib.import_module(module_name)
    except BaraError:
        raise
    except (ImportError, SyntaxError, TypeError, ValueError) as error:
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        if missing in _EXTRAS:
            raise MissingExtraError(
                f"{path} needs {missing}, which is not installed: pip install 'bara-fl[{_EXTRAS[missing]}]'"
            ) from error
        raise UnknownNameError(f"cannot import {module_name!r} (of {path!r}): {error}") from error
    try:
        return operator.attrgetter(attribute)(module)
    except AttributeError:
        raise UnknownNameError(
            f"module {module_name!r} has no {attribute!r} (of {path!r})"
        ) from None


def describe(part: Any) -> tuple[dict[str, Any], Any]:
    """A part that Python hands over, as a configuration writes it (name, options), and the part where that is no name.

    A class or function that can be imported goes by its import path, or by its name if it is one of
    ours, and so does a frozen dataclass of plain values. Anything else goes by what it is called,
    and comes along.
    """
    kind = part if isinstance(part, type) or inspect.isroutine(part) else type(part)
    path = f"{kind.__module__}:{kind.__qualname__}"
    if leads_to(path, kind):
        name = _named.get(path, path)
        if kind is part:
            return {"name": name}, None
        if (options := _plain_fields(part)) is not None:
            return {"name": name, **options}, None
    own = getattr(part, "name", None)
    shown = (
        repr(part) if kind is not part and "__repr__" in _attributes(kind) else kind.__qualname__
    )
    shown = own if kind is not part and isinstance(own, str) else shown
    label = shown if len(shown) <= 60 and shown.isprintable() else kind.__qualname__
    return {"name": OBJECT + label.rpartition("<locals>.")[2]}, part


def _attributes(kind: Any) -> set[str]:
    """What a class has beyond what every object has."""
    return {name for one in kind.__mro__[:-1] for name in vars(one)}


def leads_to(path: str, kind: Any) -> bool:
    """Whether this is the import path of that class or function, in any program."""
    if path.startswith("__main__:"):
        return False
    try:
        return import_path(path) is kind
    except (BaraError, ValueError):
        return False


def _plain_fields(part: Any) -> dict[str, Any] | None:
    """What a frozen dataclass was made with, defaults left out; None where that cannot be written down."""
    if not is_dataclass(part) or not getattr(type(part), "__dataclass_params__").frozen:  # noqa: B009 - untyped
        return None
    made = {one.name: getattr(part, one.name) for one in fields(part) if one.init}
    defaults = {one.name: one.default for one in fields(part) if one.default is not MISSING}
    changed = {
        name: value
        for name, value in made.items()
        if name not in defaults or value != defaults[name]
    }
    return (
        changed
        if all(type(value) in (bool, int, float, str) for value in changed.values())
        else None
    )


def explain(error: BaseException) -> str:
    """An error in one line: what went wrong and, where a plug-in's code took part in it, which and where."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, BaraError):
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif not isinstance(error, BaraError):
        text = f"{type(error).__name__}: {error}"
    place = _place_in_plugin(error)
    return " ".join(text.split("\n")) + (f" (in the plug-in {place})" if place else "")


def _place_in_plugin(error: BaseException | None) -> str | None:
    """The innermost line of a plug-in that an error, or what it was raised from, has passed."""
    found = None
    while error is not None and found is None:
        for frame, line in traceback.walk_tb(error.__traceback__):
            module, code = str(frame.f_globals.get("__name__")), frame.f_code
            if module.partition(".")[0] in _imported - {"bara"}:
                found = f"{module}:{code.co_qualname.partition('.')[0]}, {code.co_filename}:{line}"
        error = error.__cause__
    return found


def is_fault(error: BaseException) -> bool:
    """Whether an error is neither one that we raise on purpose, nor the system's, nor a plug-in's: it is our own."""
    return not isinstance(error, BaraError | OSError) and _place_in_plugin(error) is None


def parse_spec(spec: str) -> dict[str, Any]:
    """Read a plug-in with its options as one writes it on the command line.

    >>> parse_spec("even:carry_over=true")
    {'name': 'even', 'carry_over': True}
    >>> parse_spec("my_package.module:MyAllocator:speed=2")
    {'name': 'my_package.module:MyAllocator', 'speed': 2}
    """
    name: list[str] = []
    options: dict[str, str] = {}
    for part in spec.split(":"):
        key, equals, text = part.partition("=")
        if equals:
            options[last := key.strip()] = text
        elif options:  # the rest of an import path that is an option's value
            options[last] += f":{part}"
        else:
            name.append(part.strip())
    return {"name": ":".join(name), **{key: toml_value(text) for key, text in options.items()}}


def toml_value(text: str) -> Any:
    """A TOML value, or the text itself where it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


_GIVEN_AS = {"dataset": "data", "model": "training"}
"""The sections that parts are handed over in, where these are called otherwise."""


def _public(protocol: type) -> list[str]:
    """What an object must have to be of a protocol, by name."""
    return sorted(
        name for name in {*vars(protocol), *protocol.__annotations__} if not name.startswith("_")
    )


class Registry(Generic[T]):
    """The things of one kind, by name.

    Args:
        kind: What they are, in the singular ("allocator").
        paths: Our own, as import paths, so that what needs an extra is imported only when it is
            asked for.
        protocol: What each of them must be, where that can be checked.
    """

    def __init__(
        self, kind: str, paths: Mapping[str, str], protocol: type[T] | None = None
    ) -> None:
        self.kind = kind
        self._paths = dict(paths)
        self._protocol = protocol
        _named.update({path: name for name, path in paths.items()})

    def names(self) -> list[str]:
        """Our own, then the installed plug-ins."""
        return [*self._paths, *(point.name for point in entry_points(group=f"bara.{self.kind}s"))]

    def factory(self, name: str) -> Callable[..., T]:
        """What makes the thing of that name."""
        if name.startswith(OBJECT) and not isinstance(name, Handed):
            raise UnknownNameError(
                f"{self.kind} {name.removeprefix(OBJECT)!r} was an object in Python, which no import path leads to: "
                f"hand it over again, as in bara.resume(DIR, {_GIVEN_AS.get(self.kind, self.kind)}=...)"
            )
        if ":" in name:
            return import_path(name)  # type: ignore[no-any-return]
        if name in self._paths:
            return import_path(self._paths[name])  # type: ignore[no-any-return]
        for point in entry_points(group=f"bara.{self.kind}s"):
            if point.name == name:
                return import_path(f"{point.module}:{point.attr}")  # type: ignore[no-any-return]
        raise UnknownNameError(f"no {self.kind} is named {name!r}; {nearest(name, self.names())}")

    def build(
        self, name: str, options: Mapping[str, Any] | None = None, part: Any = None, **context: Any
    ) -> T:
        """Make it from its own options; of the context (clients, seed, ...) it gets what its signature asks for.

        Args:
            name: Which.
            options: Its own.
            part: The thing itself, of which a copy is taken, or what makes it, where Python handed
                it over.
            **context: What there is for those whose signature asks for it.
        """
        options = dict(options or {})
        if part is not None:
            name = name.removeprefix(OBJECT)
            _imported.add(
                (part if hasattr(part, "__qualname__") else type(part)).__module__.partition(".")[0]
            )
            if self.is_made(part):
                if options:
                    raise ConfigError(
                        f"{self.kind} {name!r} is made already; it takes no options, got {options}"
                    )
                return self._copied(name, part)
        factory = self.factory(name) if part is None else part
        parameters = _parameters(factory)
        if parameters is None:
            raise ConfigError(
                f"{self.kind} {name!r} must be a class or function that makes one, got {factory!r}"
            )
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        check_options(
            f"{self.kind} {name!r}",
            {
                option: value
                for option, value in options.items()
                if option in parameters or not takes_any
            },
            {option: parameter.annotation for option, parameter in parameters.items()},
            known=[option for option in parameters if option not in context],
        )
        given = {
            key: value for key, value in context.items() if key in parameters and key not in options
        }
        lacking = [
            key
            for key, one in parameters.items()
            if _is_required(one) and key not in {*given, *options}
        ]
        if lacking:
            example = ":".join((name, *(f"{key}=..." for key in lacking)))
            how = "hand over one that is made"
            if part is None:
                how = f"set {self.kind}.{lacking[0]}, or write {example} in a list"
            raise ConfigError(f"{self.kind} {name!r} needs {' and '.join(lacking)}; {how}")
        try:
            made = factory(**given, **options)
        except (TypeError, InvalidMoneyError) as error:
            raise ConfigError(
                f"cannot make {self.kind} {name!r} from {options}: {error}"
            ) from error
        if self._protocol is not None and not isinstance(made, self._protocol):
            lacks = ", ".join(one for one in _public(self._protocol) if not hasattr(made, one))
            raise ConfigError(
                f"{self.kind} {name!r} makes a {type(made).__name__}, which lacks {lacks}; add it"
            )
        return made

    def _copied(self, name: str, part: T) -> T:
        try:
            return copy.deepcopy(part)
        except Exception as error:  # whatever a part of somebody's raises
            raise ConfigError(
                f"{self.kind} {name!r} cannot be copied for a run ({error}); give a class or a function that makes it"
            ) from error

    def is_made(self, part: Any) -> bool:
        """Whether a part is the thing itself, not what makes it."""
        return (
            not isinstance(part, type)
            and self._protocol is not None
            and isinstance(part, self._protocol)
        )


def check_options(
    whose: str,
    options: Mapping[str, Any],
    types: Mapping[str, Any],
    *,
    prefix: str = "",
    known: Collection[str] | None = None,
) -> None:
    """Refuse options that are unknown, or not of their type where that is plain: bool, int, float, str, literals.

    Args:
        whose: What has them, for the error.
        options: As they were given.
        types: Of those there are.
        prefix: What stands before them in a configuration (`federation.`).
        known: Which of them to suggest; all unless given.

    >>> check_options("allocator 'even'", {"carry_over": "maybe"}, {"carry_over": bool})
    Traceback (most recent call last):
    ...
    bara.errors.ConfigError: allocator 'even' has carry_over = 'maybe'; it must be true or false
    """
    known = list(types if known is None else known)
    for option, value in options.items():
        if option not in types:
            unknown = (
                f"unknown key {prefix + option!r}"
                if prefix
                else f"{whose} has no option {option!r}"
            )
            raise ConfigError(f"{unknown}; {nearest(option, known) if known else 'it has none'}")
        wanted, *ranges = (
            get_args(types[option]) if get_origin(types[option]) is Annotated else (types[option],)
        )
        wrong = [] if _fits(value, wanted) else [in_words(wanted)]
        wrong += [
            str(one)
            for one in ranges
            if not wrong and isinstance(value, int | float) and value not in one
        ]
        if wrong:
            raise ConfigError(f"{whose} has {prefix + option} = {value!r}; it must be {wrong[0]}")


_PLAIN = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "text",
    NoneType: "None",
}


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
        """Whether a number is in it."""
        compare = {
            "above": operator.gt,
            "at_least": operator.ge,
            "at_most": operator.le,
            "below": operator.lt,
        }
        return all(
            holds(value, end)
            for name, holds in compare.items()
            if (end := getattr(self, name)) is not None
        )

    def __str__(self) -> str:
        """In words."""
        ends = {name: end for name, end in vars(self).items() if end is not None}
        if ends.keys() == {"at_least", "at_most"}:
            return f"from {ends['at_least']:g} to {ends['at_most']:g}"
        told = " and ".join(f"{name.replace('_', ' ')} {end:g}" for name, end in ends.items())
        return "positive" if told == "above 0" else told


def check_fields(whose: str, record: Any) -> None:
    """Refuse a dataclass of options one of which is not of its type, its choices or its range."""
    types = get_type_hints(type(record), include_extras=True)
    check_options(whose, {name: getattr(record, name) for name in types}, types)


def check_arguments(whose: str, kind: type, **arguments: Any) -> None:
    """Refuse what a class is made with where it is not of its type, its choices or its range there."""
    check_options(whose, arguments, get_type_hints(vars(kind)["__init__"], include_extras=True))


def in_words(annotation: Any) -> str:
    """What an option may be: its type, its choices, its range."""
    if get_origin(annotation) is Annotated:
        kind, *ranges = get_args(annotation)
        plain = [in_words(one) for one in get_args(kind) or (kind,) if one not in (int, float)]
        numbers = ["a whole number"] if int in (kind, *get_args(kind)) else []
        return " or ".join([" ".join([*numbers, *map(str, ranges)]), *plain])
    if get_origin(annotation) is Literal:
        return " or ".join(map(repr, get_args(annotation)))
    if get_origin(annotation) in (Union, UnionType):
        return " or ".join(map(in_words, get_args(annotation)))
    return _PLAIN.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _fits(value: Any, annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(annotation))
    if annotation in (bool, str, NoneType) or is_dataclass(annotation):
        return isinstance(value, annotation)
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if annotation is float:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    return True


def _is_required(parameter: inspect.Parameter) -> bool:
    any_number = {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    return parameter.default is parameter.empty and parameter.kind not in any_number


def _parameters(factory: Any) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(factory, eval_str=True).parameters
    except (TypeError, ValueError, NameError):
        return None

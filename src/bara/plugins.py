"""Names to things: our own, a user's by import path `package.module:Name`, or an installed entry point."""

import difflib
import importlib
import inspect
import math
import operator
import re
import tomllib
import traceback
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import entry_points
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from bara.errors import BaraError, ConfigError, InvalidMoneyError, MissingExtraError, UnknownNameError

T = TypeVar("T")

_EXTRAS = {"torch": "sim", "sklearn": "sim", "pooch": "sim", "dp_accounting": "sim", "flwr": "flower", "ray": "flower"}
_EXTRAS |= {"starlette": "dashboard", "uvicorn": "dashboard", "tensorboard": "tensorboard", "mlflow": "mlflow"}


_imported: set[str] = set()
"""The packages that parts were imported from, ours and others'."""


def nearest(name: str, known: list[str]) -> str:
    """A hint that names what was probably meant, or everything there is."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(sorted(known))}"


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
        raise ConfigError(f"{what} is {text!r}; required is a name with numbers, like 'name(0.5, 1.5)'") from None


def import_path(path: str) -> Any:
    """What `package.module:Name` stands for."""
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
        raise UnknownNameError(f"module {module_name!r} has no {attribute!r} (of {path!r})") from None


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


class Registry(Generic[T]):
    """The things of one kind, by name.

    Args:
        kind: What they are, in the singular ("allocator").
        paths: Our own, as import paths, so that what needs an extra is imported only when it is asked for.
        protocol: What each of them must be, where that can be checked.
    """

    def __init__(self, kind: str, paths: Mapping[str, str], protocol: type[T] | None = None) -> None:
        self.kind = kind
        self._paths = dict(paths)
        self._protocol = protocol

    def names(self) -> list[str]:
        """Our own, then the installed plug-ins."""
        return [*self._paths, *(point.name for point in entry_points(group=f"bara.{self.kind}s"))]

    def factory(self, name: str) -> Callable[..., T]:
        """What makes the thing of that name."""
        if ":" in name:
            return import_path(name)  # type: ignore[no-any-return]
        if name in self._paths:
            return import_path(self._paths[name])  # type: ignore[no-any-return]
        for point in entry_points(group=f"bara.{self.kind}s"):
            if point.name == name:
                return import_path(f"{point.module}:{point.attr}")  # type: ignore[no-any-return]
        raise UnknownNameError(f"no {self.kind} is named {name!r}; {nearest(name, self.names())}")

    def build(self, name: str, options: Mapping[str, Any] | None = None, **context: Any) -> T:
        """Make it from its own options; of the context (clients, seed, ...) it gets what its signature asks for."""
        factory, options = self.factory(name), dict(options or {})
        parameters = _parameters(factory)
        if parameters is None:
            raise ConfigError(f"{self.kind} {name!r} is {factory!r}; required is something that makes one")
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        check_options(
            f"{self.kind} {name!r}",
            {option: value for option, value in options.items() if option in parameters or not takes_any},
            {option: parameter.annotation for option, parameter in parameters.items()},
            known=[option for option in parameters if option not in context],
        )
        given = {key: value for key, value in context.items() if key in parameters and key not in options}
        try:
            made = factory(**given, **options)
        except (TypeError, InvalidMoneyError) as error:
            raise ConfigError(f"{self.kind} {name!r} cannot be made from {options}: {error}") from error
        if self._protocol is not None and not isinstance(made, self._protocol):
            raise ConfigError(f"{self.kind} {name!r} makes {made!r}; required is a {self._protocol.__name__}")
        return made


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
    bara.errors.ConfigError: allocator 'even' has carry_over = 'maybe'; required is bool
    """
    known = list(types if known is None else known)
    for option, value in options.items():
        if option not in types:
            unknown = f"unknown key {prefix + option!r}" if prefix else f"{whose} has no option {option!r}"
            raise ConfigError(f"{unknown}; {nearest(option, known) if known else 'it has none'}")
        wanted = types[option]
        if not _fits(value, wanted):
            shown = wanted.__name__ if isinstance(wanted, type) else wanted
            raise ConfigError(f"{whose} has {prefix + option} = {value!r}; required is {shown}")


def _fits(value: Any, annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if get_origin(annotation) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(annotation))
    if annotation in (bool, str, NoneType):
        return isinstance(value, annotation)
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if annotation is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return True


def _parameters(factory: Any) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(factory, eval_str=True).parameters
    except (TypeError, ValueError, NameError):
        return None

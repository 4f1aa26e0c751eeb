"""Parts by name: our own, a user's by import path `package.module:Name`, or an entry point's."""

import copy
import importlib
import inspect
import operator
import re
import tomllib
import traceback
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from importlib.metadata import entry_points
from typing import Any, Generic, Self, TypeVar

from bara.errors import (
    BaraError,
    ConfigError,
    InvalidMoneyError,
    MissingExtraError,
    UnknownNameError,
)
from bara.options import check_options
from bara.text import nearest

T = TypeVar("T")

_EXTRAS = {
    "torch": "sim",
    "sklearn": "sim",
    "pooch": "sim",
    "dp_accounting": "sim",
    "flwr": "flower",
    "ray": "flower",
    "starlette": "dashboard",
    "uvicorn": "dashboard",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
}
"""The extra of `bara-fl` that installs each optional package."""

_imported: set[str] = set()
"""The top-level packages that parts were imported from, `bara` among them."""

_named: dict[str, str] = {}
"""The names of our own parts, by import path."""

OBJECT = "object:"
"""The prefix of the name of a part that Python handed over and that has no import path."""


class Handed(str):
    """The name of a part that Python handed over, with the part itself attached."""

    __slots__ = ("part",)
    part: Any

    def __new__(cls, name: str, part: Any) -> Self:
        """Return a name that holds a part."""
        made = super().__new__(cls, name)
        made.part = part
        return made

    @staticmethod
    def name_of(value: Any) -> Any:
        """Return the import path of a class or function, or a `Handed` name where it has none.

        Text, and whatever cannot be called, is returned unchanged.
        """
        if isinstance(value, str) or not callable(value):
            return value
        spec, part = describe(value)
        if part is None and len(spec) == 1:
            return spec["name"]
        return Handed(spec["name"], value)

    def __deepcopy__(self, _memo: Any) -> "Handed":
        """Return the name itself, which is immutable."""
        return self


def parse_call(text: str, what: str) -> tuple[str, tuple[float, ...]]:
    """Read `name(1, 2)` or `name`, as a configuration writes distributions and strategies.

    Args:
        text: The text to read.
        what: What the text describes, for the error.

    >>> parse_call("uniform(0.5, 1.5)", "bids")
    ('uniform', (0.5, 1.5))
    """
    wrong = ConfigError(f"{what} must be a name with numbers, like 'name(0.5, 1.5)', got {text!r}")
    number = r"\s*[-+.\deE]+\s*"
    match = re.fullmatch(rf"\s*([a-z-]+)\s*(?:\(({number}(?:,{number})*)?\))?\s*", text)
    if match is None:
        raise wrong
    name, numbers = match.groups()
    if numbers is None:
        return name, ()
    try:
        return name, tuple(float(one) for one in numbers.split(","))
    except ValueError:
        raise wrong from None


def import_path(path: str) -> Any:
    """Import the object that `package.module:Name` names."""
    if isinstance(path, Handed):
        return path.part
    if path.startswith(OBJECT):
        raise UnknownNameError(
            f"{path.removeprefix(OBJECT)!r} was an object in Python, which no import path leads "
            "to: hand it over again, as when the run began"
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
                f"{path} needs {missing}, which is not installed: "
                f"pip install 'bara-fl[{_EXTRAS[missing]}]'"
            ) from error
        raise UnknownNameError(f"cannot import {module_name!r} (of {path!r}): {error}") from error
    try:
        return operator.attrgetter(attribute)(module)
    except AttributeError:
        raise UnknownNameError(
            f"module {module_name!r} has no {attribute!r} (of {path!r})"
        ) from None


def describe(part: Any) -> tuple[dict[str, Any], Any]:
    """Return a part that Python hands over as a configuration writes it: name and options.

    The second value is None if the name says it all, which holds for a class or function that can
    be imported and for a frozen dataclass of plain values. Any other part gets a label for a name,
    and is returned as the second value.
    """
    kind = part if isinstance(part, type) or inspect.isroutine(part) else type(part)
    path = f"{kind.__module__}:{kind.__qualname__}"
    if leads_to(path, kind):
        name = _named.get(path, path)
        if kind is part:
            return {"name": name}, None
        options = _plain_fields(part)
        if options is not None:
            return {"name": name, **options}, None
    return {"name": OBJECT + _label(part, kind)}, part


def _label(part: Any, kind: Any) -> str:
    """Return a short label for a part: its own name, its representation, or its class's name."""
    label = str(kind.__qualname__)
    if kind is not part:
        own = getattr(part, "name", None)
        if isinstance(own, str):
            label = own
        elif kind.__repr__ is not object.__repr__:
            label = repr(part)
    if len(label) > 60 or not label.isprintable():
        label = kind.__qualname__
    return label.rpartition("<locals>.")[2]


def leads_to(path: str, kind: Any) -> bool:
    """Return True where the import path names that class or function in any program."""
    if path.startswith("__main__:"):
        return False
    try:
        return import_path(path) is kind
    except (BaraError, ValueError):
        return False


def _plain_fields(part: Any) -> dict[str, Any] | None:
    """Return the fields of a frozen dataclass that differ from their defaults.

    None where the part is no frozen dataclass, or where a value cannot be written down.
    """
    if not is_dataclass(part) or not operator.attrgetter("__dataclass_params__.frozen")(part):
        return None
    changed = {}
    for one in fields(part):
        if not one.init:
            continue
        value = getattr(part, one.name)
        if one.default is not MISSING and value == one.default:
            continue
        if type(value) not in (bool, int, float, str):
            return None
        changed[one.name] = value
    return changed


def explain(error: BaseException) -> str:
    """Return an error as one line, with the place in a plug-in's code where it passed through."""
    if isinstance(error, BaraError):
        text = str(error)
    elif isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = f"{type(error).__name__}: {error}"
    text = text.replace("\n", " ")
    place = _place_in_plugin(error)
    if place is None:
        return text
    return f"{text} (in the plug-in {place})"


def _place_in_plugin(error: BaseException | None) -> str | None:
    """Return the innermost line of a plug-in that an error, or its cause, passed through."""
    found = None
    plugins = _imported - {"bara"}
    while error is not None and found is None:
        for frame, line in traceback.walk_tb(error.__traceback__):
            module = str(frame.f_globals.get("__name__"))
            if module.partition(".")[0] in plugins:
                code = frame.f_code
                found = f"{module}:{code.co_qualname.partition('.')[0]}, {code.co_filename}:{line}"
        error = error.__cause__
    return found


def is_fault(error: BaseException) -> bool:
    """Return True for a fault of bara: not raised on purpose, nor by the system or a plug-in."""
    return not isinstance(error, BaraError | OSError) and _place_in_plugin(error) is None


def parse_spec(spec: str) -> dict[str, Any]:
    """Read a part with its options as one writes it on the command line.

    >>> parse_spec("even:carry_over=true")
    {'name': 'even', 'carry_over': True}
    >>> parse_spec("my_package.module:MyAllocator:speed=2")
    {'name': 'my_package.module:MyAllocator', 'speed': 2}
    """
    name: list[str] = []
    options: dict[str, str] = {}
    last = ""
    for piece in spec.split(":"):
        key, equals, text = piece.partition("=")
        if equals:
            last = key.strip()
            options[last] = text
        elif options:  # the rest of an import path that is an option's value
            options[last] += f":{piece}"
        else:
            name.append(piece.strip())
    return {"name": ":".join(name), **{key: toml_value(text) for key, text in options.items()}}


def toml_value(text: str) -> Any:
    """Return the value of a text in TOML, or the text itself where it is not TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


_GIVEN_AS = {"dataset": "data", "model": "training"}
"""The section that a part is handed over in, where it is not called like the kind of part."""


_LEAST = {
    "claims": "`claims = frozenset()` promises nothing",
    "tell": "`def tell(self, record): pass` learns nothing",
}
"""The least that each of these may be, in what lacks it."""


def _public(protocol: type) -> list[str]:
    """Return the names of what an object must have to follow a protocol."""
    names = {*vars(protocol), *protocol.__annotations__}
    return sorted(name for name in names if not name.startswith("_"))


class Registry(Generic[T]):
    """The parts of one kind, by name.

    Args:
        kind: The kind of part, in the singular ("allocator").
        paths: The import paths of our own parts by name; a part is imported when it is first asked
            for, because it may need an extra.
        protocol: The protocol that each part must follow; None where that is not checked.
    """

    def __init__(
        self, kind: str, paths: Mapping[str, str], protocol: type[T] | None = None
    ) -> None:
        self.kind = kind
        self._paths = dict(paths)
        self._protocol = protocol
        _named.update({path: name for name, path in paths.items()})

    def names(self) -> list[str]:
        """Return the names of our own parts, then those of the installed plug-ins."""
        installed = [point.name for point in entry_points(group=f"bara.{self.kind}s")]
        return [*self._paths, *installed]

    def factory(self, name: str) -> Callable[..., T]:
        """Return the class or function that makes the part of that name."""
        if name.startswith(OBJECT) and not isinstance(name, Handed):
            section = _GIVEN_AS.get(self.kind, self.kind)
            raise UnknownNameError(
                f"{self.kind} {name.removeprefix(OBJECT)!r} was an object in Python, which no "
                f"import path leads to: hand it over again, as in bara.resume(DIR, {section}=...)"
            )
        found: Callable[..., T] = import_path(self._path(name))
        return found

    def _path(self, name: str) -> str:
        if ":" in name:
            return name
        if name in self._paths:
            return self._paths[name]
        for point in entry_points(group=f"bara.{self.kind}s"):
            if point.name == name:
                return f"{point.module}:{point.attr}"
        raise UnknownNameError(f"no {self.kind} is named {name!r}; {nearest(name, self.names())}")

    def build(
        self, name: str, options: Mapping[str, Any] | None = None, part: Any = None, **context: Any
    ) -> T:
        """Make a part from its own options, and from the context that its signature asks for.

        Args:
            name: The name of the part.
            options: The part's own options.
            part: What Python handed over: the finished part, of which a copy is returned, or a
                class or function that makes it; None to find that by name.
            **context: Values for the parameters of these names (clients, seed, ...), where the
                part has them and no option sets them.
        """
        options = dict(options or {})
        if part is None:
            factory = self.factory(name)
        else:
            factory = part
            name = name.removeprefix(OBJECT)
            kind = part if hasattr(part, "__qualname__") else type(part)
            _imported.add(kind.__module__.partition(".")[0])
            if self.is_made(part):
                return self._copied(name, part, options)
            if not callable(part):
                self._check_protocol(name, part, "is")
        parameters = _parameters(factory)
        if parameters is None:
            raise ConfigError(
                f"{self.kind} {name!r} must be a class or function that makes one, got {factory!r}"
            )
        self._check_options(name, options, parameters, context)
        arguments = dict(options)
        for key, value in context.items():
            if key in parameters:
                arguments.setdefault(key, value)
        required = [key for key, one in parameters.items() if _is_required(one)]
        lacking = [key for key in required if key not in arguments]
        if lacking:
            how = "hand over one that is made"
            if part is None:
                example = ":".join([name] + [f"{key}=..." for key in lacking])
                how = f"set {self.kind}.{lacking[0]}, or write {example} in a list"
            raise ConfigError(f"{self.kind} {name!r} needs {' and '.join(lacking)}; {how}")
        try:
            made = factory(**arguments)
        except (TypeError, InvalidMoneyError) as error:
            raise ConfigError(
                f"cannot make {self.kind} {name!r} from {options}: {error}"
            ) from error
        self._check_protocol(name, made)
        return made

    def _check_options(
        self,
        name: str,
        options: Mapping[str, Any],
        parameters: Mapping[str, inspect.Parameter],
        context: Mapping[str, Any],
    ) -> None:
        """Refuse options that the signature does not have; `**options` checks its own."""
        if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            options = {key: value for key, value in options.items() if key in parameters}
        types = {key: one.annotation for key, one in parameters.items()}
        known = [key for key in parameters if key not in context]
        check_options(f"{self.kind} {name!r}", options, types, known=known)

    def _check_protocol(self, name: str, made: Any, how: str = "makes") -> None:
        if self._protocol is None or isinstance(made, self._protocol):
            return
        lacks = [one for one in _public(self._protocol) if not hasattr(made, one)]
        hints = [_LEAST[one] for one in lacks if one in _LEAST]
        raise ConfigError(
            f"{self.kind} {name!r} {how} a {type(made).__name__}, which lacks {', '.join(lacks)}; "
            f"{'; '.join(['add it', *hints])}"
        )

    def _copied(self, name: str, part: T, options: Mapping[str, Any]) -> T:
        if options:
            raise ConfigError(
                f"{self.kind} {name!r} is made already; it takes no options, got {options}"
            )
        try:
            return copy.deepcopy(part)
        except Exception as error:  # a user's part may raise anything
            raise ConfigError(
                f"{self.kind} {name!r} cannot be copied for a run ({error}); give a class or a "
                "function that makes it"
            ) from error

    def is_made(self, part: Any) -> bool:
        """Return True for a finished part, False for a class or function that makes one."""
        return (
            not isinstance(part, type)
            and self._protocol is not None
            and isinstance(part, self._protocol)
        )


def _is_required(parameter: inspect.Parameter) -> bool:
    any_number = {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}
    return parameter.default is parameter.empty and parameter.kind not in any_number


def _parameters(factory: Any) -> Mapping[str, inspect.Parameter] | None:
    """Return the parameters of a class or function; None for anything without a signature."""
    try:
        return inspect.signature(factory, eval_str=True).parameters
    except (TypeError, ValueError, NameError):
        return None

"""Names to things: our own, a user's by import path `package.module:Name`, or an installed entry point."""

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from bara.errors import ConfigError, MissingExtraError, UnknownNameError

T = TypeVar("T")

_EXTRAS = {"torch": "sim", "sklearn": "sim", "pooch": "sim", "dp_accounting": "sim", "flwr": "flower", "ray": "flower"}


def nearest(name: str, known: list[str]) -> str:
    """A hint that names what was probably meant, or everything there is."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(sorted(known))}"


def import_path(path: str) -> Any:
    """What `package.module:Name` stands for."""
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in _EXTRAS:
            raise MissingExtraError(
                f"{path} needs {missing}, which is not installed: pip install 'bara-fl[{_EXTRAS[missing]}]'"
            ) from error
        raise UnknownNameError(f"cannot import {module_name!r} (of {path!r}): {error}") from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise UnknownNameError(f"module {module_name!r} has no {attribute!r} (of {path!r})") from None


class Registry(Generic[T]):
    """The things of one kind, by name.

    Args:
        kind: What they are, in the singular ("allocator").
        paths: Our own, as import paths, so that what needs an extra is imported only when it is asked for.
    """

    def __init__(self, kind: str, paths: Mapping[str, str]) -> None:
        self.kind = kind
        self._paths = dict(paths)

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
                return point.load()  # type: ignore[no-any-return]
        raise UnknownNameError(f"no {self.kind} is named {name!r}; {nearest(name, self.names())}")

    def build(self, name: str, options: Mapping[str, Any] | None = None, **context: Any) -> T:
        """Make it from its own options; of the context (clients, seed, ...) it gets what its signature asks for."""
        factory = self.factory(name)
        options = dict(options or {})
        parameters = inspect.signature(factory).parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for option in options:
            if option not in parameters and not takes_any:
                known = [p for p in parameters if p not in context]
                hint = nearest(option, known) if known else "it has none"
                raise ConfigError(f"{self.kind} {name!r} has no option {option!r}; {hint}")
        given = {key: value for key, value in context.items() if key in parameters and key not in options}
        try:
            return factory(**given, **options)
        except TypeError as error:
            raise ConfigError(f"{self.kind} {name!r} cannot be made from {options}: {error}") from error

"""What an object that Python handed over is: its code, wherever that stands, and its state; the same in any session."""

import hashlib
import io
import pickle
from types import CodeType, FunctionType, ModuleType
from typing import Any

from bara.errors import ConfigError
from bara.plugins import leads_to

_NOT_CODE = {
    "__dict__",
    "__weakref__",
    "__module__",
    "__doc__",
    "__annotations__",
    "__annotate__",
    "__slotnames__",
}
_NOT_CODE |= {"__firstlineno__", "__static_attributes__", "_abc_impl"}


_PLAIN: dict[type, tuple[str, ...]] = {
    property: ("fget", "fset"),
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    ModuleType: ("__name__",),
    CodeType: ("co_code", "co_consts", "co_names", "co_varnames"),
}
"""What counts of things that pickle does not know."""


def fingerprint(part: Any, what: str) -> str:
    """A digest of a class, a function or an object; code that can be imported counts by its name.

    Args:
        part: The thing.
        what: What it is in the experiment, for the error.
    """
    content = io.BytesIO()
    try:
        _Content(content, 5).dump(part)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"the {what} {part!r} holds what cannot be kept apart from others in a folder ({error}); give a class or a "
            "function that makes it, or no folder"
        ) from None
    return hashlib.sha256(content.getvalue()).hexdigest()


class _Content(pickle.Pickler):
    """Pickles code that no import path leads to as what it does, not as where it stands."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._seen: set[int] = set()

    def reducer_override(self, obj: Any) -> Any:
        """A function, a class, a module as plain values; anything else as pickle has it."""
        for kind, attributes in _PLAIN.items():
            if isinstance(obj, kind):
                return tuple, ((kind.__name__, *(getattr(obj, name) for name in attributes)),)
        if not isinstance(obj, FunctionType | type) or leads_to(
            f"{obj.__module__}:{obj.__qualname__}", obj
        ):
            return NotImplemented
        if id(obj) in self._seen:  # it refers to itself
            return str, (obj.__qualname__,)
        self._seen.add(id(obj))
        return tuple, (_of_function(obj) if isinstance(obj, FunctionType) else _of_class(obj),)


def _of_function(function: FunctionType) -> tuple[Any, ...]:
    known = {
        name: function.__globals__[name]
        for name in function.__code__.co_names
        if name in function.__globals__
    }
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return function.__code__, function.__defaults__, function.__kwdefaults__, cells, known


def _of_class(kind: type) -> tuple[Any, ...]:
    own = {name: value for name, value in vars(kind).items() if name not in _NOT_CODE}
    slots = {
        name: None
        for name, value in own.items()
        if type(value).__name__ in {"member_descriptor", "getset_descriptor"}
    }
    return kind.__qualname__, kind.__bases__, {**own, **slots}

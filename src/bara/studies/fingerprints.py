"""Fingerprints: digests of objects that Python hands over, the same in every process.

A fingerprint covers an object's state and the code of its class, whichever file that is in.
"""

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
    "__firstlineno__",
    "__static_attributes__",
    "_abc_impl",
}
"""Attributes of a class that say nothing about what its code does."""

_PLAIN: dict[type, tuple[str, ...]] = {
    property: ("fget", "fset"),
    classmethod: ("__func__",),
    staticmethod: ("__func__",),
    ModuleType: ("__name__",),
    CodeType: ("co_code", "co_consts", "co_names", "co_varnames"),
}
"""Types that pickle refuses, each with the attributes that its fingerprint covers."""


def fingerprint(part: Any, what: str) -> str:
    """Return a digest of a class, a function or an object.

    Code that can be imported is covered by its name only, and all other code by what it does.

    Args:
        part: The class, function or object.
        what: The role of `part` in the experiment, for the error.
    """
    content = io.BytesIO()
    try:
        _Content(content, 5).dump(part)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"the {what} {part!r} holds what cannot be kept apart from others in a folder "
            f"({error}); give a class or a function that makes it, or no folder"
        ) from None
    return hashlib.sha256(content.getvalue()).hexdigest()


class _Content(pickle.Pickler):
    """A pickler that writes code without an import path as what it does, not where it is."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._seen: set[int] = set()

    def reducer_override(self, obj: Any) -> Any:
        """Reduce functions, classes and modules to plain values; leave anything else to pickle."""
        for kind, attributes in _PLAIN.items():
            if isinstance(obj, kind):
                values = [getattr(obj, name) for name in attributes]
                return tuple, ((kind.__name__, *values),)
        if not isinstance(obj, FunctionType | type):
            return NotImplemented
        if leads_to(f"{obj.__module__}:{obj.__qualname__}", obj):
            return NotImplemented
        if id(obj) in self._seen:  # the code refers to itself
            return str, (obj.__qualname__,)
        self._seen.add(id(obj))
        if isinstance(obj, FunctionType):
            return tuple, (_of_function(obj),)
        return tuple, (_of_class(obj),)


def _of_function(function: FunctionType) -> tuple[Any, ...]:
    """Return what a function does: its code, defaults, closure, and the globals that it uses."""
    code = function.__code__
    known = function.__globals__
    used = {name: known[name] for name in code.co_names if name in known}
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return code, function.__defaults__, function.__kwdefaults__, cells, used


def _of_class(kind: type) -> tuple[Any, ...]:
    """Return what a class does: its name, its bases, and its own attributes; slots by name only."""
    own = {}
    for name, value in vars(kind).items():
        if name in _NOT_CODE:
            continue
        is_slot = type(value).__name__ in {"member_descriptor", "getset_descriptor"}
        own[name] = None if is_slot else value
    return kind.__qualname__, kind.__bases__, own

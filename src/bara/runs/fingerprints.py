"""Fingerprints of what makes a result: bara's version, code, objects by value, and data.

A fingerprint is the same in every process. What has made a result is kept as a mapping from names
(`bara`, `code of lab:Mine`, `object allocator`, `file /data/mine.npz`) to fingerprints.
"""

import dis
import hashlib
import importlib
import io
import json
import pickle
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

from bara import __version__, datasets
from bara.errors import BaraError, ConfigError
from bara.plugins import import_path, leads_to
from bara.runs.config import Config
from bara.runs.source_code import digest_of_code, with_inner
from bara.text import flat

MadeBy = dict[str, str]
"""What made a result: the fingerprint of each thing, by its name."""

_CODE = "code of "
_FILE = "file "

_LONGEST_NAME = 4_096
"""The length from which on no text is a file's name."""

_IMPORT_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def made_by(config: Config) -> MadeBy:
    """Return the fingerprints of what the run of a configuration is made by, but for objects.

    Args:
        config: The configuration, which names plug-ins and data.
    """
    found = {"bara": __version__}
    for path in _code_paths(config):
        digest = _code(path)
        if digest is not None:
            found[_CODE + path] = digest
    for named in _files(config):
        found[_FILE + named] = _digest_of_file(Path(named))
    if config.engine.has_data and config.data.part is None:
        data = config.data
        for file in datasets.unvouched(data.name, data.path, verify=data.verify):
            found[f"{_FILE}{file}"] = _digest_of_file(file)
    return found


def objects_of(config: Config) -> MadeBy:
    """Return the fingerprints of the parts that Python handed over to a configuration.

    Raises:
        ConfigError: If an object cannot be told from others by its value.
    """
    return {f"object {name}": fingerprint(part, name) for name, part in config.parts().items()}


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Say what has changed between two states of what makes a result.

    >>> differences({"bara": "0.2.0", "code of a:B": "1"}, {"bara": "0.3.0", "code of a:B": "2"})
    ['bara 0.2.0, now 0.3.0', 'code of a:B']
    """
    told = []
    then = then or {**now, "bara": "before 0.3"}  # which kept nothing else
    for name in dict.fromkeys([*then, *now]):
        if then.get(name) == now.get(name):
            continue
        if name == "bara":
            told.append(f"bara {then.get(name)}, now {now.get(name)}")
        else:
            told.append(name)
    return told


def outdated(then: Mapping[str, str] | None) -> list[str]:
    """Say which code, data or version that made a result has changed since, as far as it is here.

    Args:
        then: What made the result; None where that was not kept, as before version 0.3.
    """
    if then is None:
        return differences({}, {"bara": __version__})
    return differences(then, {**then, "bara": __version__, **changed_parts(then)})


def changed_parts(then: Mapping[str, str]) -> MadeBy:
    """Return the code and the files that are here and not the same any more, as they are now.

    Args:
        then: What made a result. Its objects are not compared: only a program has them.
    """
    found = {}
    for name, digest in then.items():
        now: str | None = None
        if name.startswith(_CODE):
            now = _code(name.removeprefix(_CODE))
        elif name.startswith(_FILE) and Path(name.removeprefix(_FILE)).is_file():
            now = _digest_of_file(Path(name.removeprefix(_FILE)))
        if now not in (None, digest):
            found[name] = str(now)
    return found


def digest_of(made: Mapping[str, str]) -> str:
    """Return one digest for all that makes a result."""
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()


def _texts(config: Config, without: set[str]) -> list[str]:
    """Return the texts that a configuration holds in all but some of its sections."""
    tree = flat(config.model_dump(mode="json", exclude=without))
    return [value for value in tree.values() if isinstance(value, str)]


def _files(config: Config) -> Iterator[str]:
    """Yield the files that options name, such as a table for a plug-in; data are known apart."""
    for value in _texts(config, without={"data", "ledger"}):
        if len(value) < _LONGEST_NAME and Path(value).suffix and Path(value).is_file():
            yield value


def _code_paths(config: Config) -> Iterator[str]:
    """Yield the import paths that a configuration holds, and those that entry points stand for."""
    for value in _texts(config, without={"ledger"}):
        if _IMPORT_PATH.fullmatch(value):
            yield value
    for kind, name in (
        ("allocator", config.allocator.name),
        ("mechanism", config.mechanism.name),
        ("federation", config.federation.engine),
        ("dataset", config.data.name),
    ):
        if name in _entry_points(kind):
            yield _entry_points(kind)[name]


@lru_cache
def _entry_points(kind: str) -> Mapping[str, str]:
    return {one.name: f"{one.module}:{one.attr}" for one in entry_points(group=f"bara.{kind}s")}


def _code(path: str) -> str | None:
    """Return the digest of the code that an import path leads to; None if it leads nowhere."""
    try:
        import_path(path)
    except (BaraError, ValueError):
        return None
    return digest_of_code(path.partition(":")[0])


def _digest_of_file(path: Path) -> str:
    found = path.stat()
    return _digest_once(path, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@lru_cache
def _digest_once(path: Path, _size: int, _modified: int, _changed: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    cached_property: ("func",),
    type(lru_cache(len)): ("__wrapped__",),
    CodeType: (
        "co_argcount",
        "co_code",
        "co_consts",
        "co_exceptiontable",
        "co_flags",
        "co_kwonlyargcount",
        "co_names",
        "co_varnames",
    ),
}
"""Types that pickle refuses, each with the attributes that its fingerprint covers."""


def fingerprint(part: Any, what: str) -> str:
    """Return a digest of a class, a function or an object.

    Code that can be imported is covered by its name and its source, all other code by what it does;
    code of bara, of Python and of installed packages by its name.

    Args:
        part: The class, function or object.
        what: The role of `part` in the experiment, for the error.
    """
    try:
        return _digest_of_value(part)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"the {what} {part!r} holds what cannot be kept apart from others in a folder "
            f"({error}); give a class or a function that makes it, or no folder"
        ) from None


def _digest_of_value(value: Any) -> str:
    content = io.BytesIO()
    _Content(content, 5).dump(value)
    return hashlib.sha256(content.getvalue()).hexdigest()


class _Content(pickle.Pickler):
    """A pickler that writes code without an import path as what it does, not where it is."""

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self._seen: set[int] = set()

    def persistent_id(self, obj: Any) -> Any:
        """Write sets in an order that is the same in every process; leave the rest to pickle."""
        if type(obj) in {set, frozenset}:
            return type(obj).__name__, sorted(map(_digest_of_value, obj))
        return None

    def reducer_override(self, obj: Any) -> Any:
        """Reduce functions, classes and modules to plain values; leave anything else to pickle."""
        if not isinstance(obj, FunctionType | type):
            content = _content_of(obj)
            return NotImplemented if content is None else (tuple, (content,))
        path = f"{obj.__module__}:{obj.__qualname__}"
        if leads_to(path, obj):
            digest = digest_of_code(obj.__module__)
            return NotImplemented if digest is None else (tuple, ((path, digest),))
        return self._by_what_it_does(obj)

    def _by_what_it_does(self, obj: FunctionType | type) -> Any:
        """Reduce a function or a class that no import path leads to."""
        if id(obj) in self._seen:  # the code refers to itself
            return str, (obj.__qualname__,)
        self._seen.add(id(obj))
        if isinstance(obj, FunctionType):
            return tuple, (_of_function(obj),)
        return tuple, (_of_class(obj),)


def _content_of(obj: Any) -> tuple[Any, ...] | None:
    """Return what an object holds that pickle refuses or writes as an address; None for others."""
    if isinstance(obj, ModuleType):
        return obj.__name__, digest_of_code(obj.__name__)
    if isinstance(obj, MappingProxyType):
        return tuple(obj.items())
    if "torch" in sys.modules and isinstance(obj, sys.modules["torch"].Tensor):
        numbers = obj.detach().cpu().numpy()
        return str(obj.dtype), obj.shape, obj.requires_grad, numbers.tobytes()
    for kind, attributes in _PLAIN.items():
        if isinstance(obj, kind):
            content = [getattr(obj, name) for name in attributes]
            return kind.__name__, *content
    return None


def _of_function(function: FunctionType) -> tuple[Any, ...]:
    """Return what a function does: its code, defaults, closure, and the globals that it uses."""
    code = function.__code__
    known = function.__globals__
    used: dict[str, Any] = {}
    for one in with_inner(code):
        used |= {name: known[name] for name in one.co_names if name in known}
        used |= _imported_by(one)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return code, function.__defaults__, function.__kwdefaults__, cells, used


def _imported_by(code: CodeType) -> dict[str, Any]:
    """Return the modules that a function imports when it is called, and what it takes from them."""
    found: dict[str, Any] = {}
    name = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            name = str(instruction.argval)
            with suppress(ImportError):
                found[name] = importlib.import_module(name)
        elif instruction.opname == "IMPORT_FROM":
            part = str(instruction.argval)
            with suppress(ImportError):  # what is taken may be a module of a package
                importlib.import_module(f"{name}.{part}")
            found[f"{name}.{part}"] = getattr(found.get(name), part, None)
    return found


def _of_class(kind: type) -> tuple[Any, ...]:
    """Return what a class does: name, metaclass, bases and own attributes; slots by name only."""
    own = {}
    for name, value in vars(kind).items():
        if name in _NOT_CODE:
            continue
        is_slot = type(value).__name__ in {"member_descriptor", "getset_descriptor"}
        own[name] = None if is_slot else value
    return kind.__qualname__, type(kind), kind.__bases__, own

"""Digests of source code: of a module, and of what it imports from its own package."""

import ast
import hashlib
import marshal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import PackageNotFoundError, version
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from bara.errors import ConfigError

_INSTALLED = {"site-packages", "dist-packages"}
"""The names of the folders of installed packages."""

_HEAD_OF_BYTECODE = 16
"""The bytes in a file of bytecode before the code itself (PEP 552)."""

_read: dict[str, tuple[ModuleSpec | None, bytes]] = {}
"""For each module, the spec it was imported by when its source was first read, and that source."""


def digest_of_code(name: str) -> str | None:
    """Return a digest of an imported module's source and of what it imports from its own package.

    A module that is in no package has the modules beside it for a package. Of an installed package
    the digest covers the module itself and the package's version.

    Args:
        name: The module's name.

    Returns:
        The digest; None for modules whose version says it all: those of bara and of Python, and for
        those without a file.

    Raises:
        ConfigError: If the source has changed since this program imported it.
    """
    top = name.partition(".")[0]
    module = sys.modules.get(name)
    if module is None or top in {"bara", "__main__"} or top in sys.stdlib_module_names:
        return None
    origin = getattr(module, "__file__", None)
    if origin is None:
        return None
    found = hashlib.sha256()
    root = _root(module, Path(origin))
    files = {name: Path(origin)}
    is_installed = root.name in _INSTALLED
    if is_installed:
        found.update(_version(top).encode())
    else:
        files = _sources(name, root)
    for one, path in sorted(files.items()):
        source = path.read_bytes()
        if not is_installed:
            _refuse_changed(one, path, source)
        found.update(f"{one} {len(source)}\n".encode())
        found.update(source)
    return found.hexdigest()[:16]


def _refuse_changed(name: str, path: Path, source: bytes) -> None:
    """Refuse a source that is not what this program runs: it was edited since it was imported."""
    module = sys.modules.get(name)
    origin = getattr(module, "__file__", None)
    if module is None or origin is None or not path.samefile(origin):
        return
    spec, first = _read.get(name, (None, source))
    was_edited = spec is module.__spec__ and first != source
    difference = _difference(module, path, source)
    if was_edited or difference:
        raise ConfigError(
            f"the code of {name} ({path}) has changed since this program imported it{difference}; "
            "start the program again, or importlib.reload it"
        )
    _read[name] = module.__spec__, source


class _Source(NamedTuple):
    """A source as Python sees it.

    Attributes:
        tree: Its syntax.
        code: What it compiles to.
        functions: The code of all functions in it.
        constants: The class ("" for none), name and value of each plain value that is given once.
    """

    tree: ast.Module
    code: CodeType
    functions: set[CodeType]
    constants: list[tuple[str, str, Any]]


@lru_cache
def _compiled(path: Path, source: bytes) -> _Source:
    """Compile a source, and find its constants; what Python warns of was said at its import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
        code = compile(source, path, "exec", dont_inherit=True)
    stored: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            stored[node.id if isinstance(node, ast.Name) else node.attr] += 1
    constants = []
    for scope in [tree, *tree.body]:
        if not isinstance(scope, ast.Module | ast.ClassDef):
            continue
        for node in scope.body:
            match node:
                case ast.Assign([ast.Name(name)], ast.Constant(value)) if stored[name] == 1:
                    constants.append((getattr(scope, "name", ""), name, value))
    return _Source(tree, code, set(with_inner(code)), constants)


def _difference(module: ModuleType, path: Path, source: bytes) -> str:
    """Say how a module differs from its file, as far as that can be told; "" if it does not.

    Told by its functions, its constants, and the bytecode that Python made when it imported it.
    """
    if type(module.__loader__) is not SourceFileLoader:
        return ""
    try:
        written = _compiled(path, source)
    except (SyntaxError, ValueError) as error:
        return f" ({error})"
    for function in _functions(module):
        if function.__code__ not in written.functions:
            return f" ({function.__qualname__} is another)"
    for scope, name, value in written.constants:
        place = vars(module).get(scope) if scope else module
        now = getattr(place, "__dict__", {}).get(name)
        if type(now) is type(value) and now != value:
            return f" ({name} is {now!r} in the program, {value!r} in the file)"
    if not sys.dont_write_bytecode:
        with suppress(OSError, ValueError, EOFError, TypeError):
            bytecode = Path(str(module.__cached__)).read_bytes()[_HEAD_OF_BYTECODE:]
            if marshal.loads(bytecode) != written.code:  # noqa: S302 - which Python has loaded
                return " (if not, save it once more)"
    return ""


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions and methods that a module's file defines."""
    for thing in list(vars(module).values()):
        parts = [thing]
        if issubclass(type(thing), type) and thing.__module__ == module.__name__:
            parts = list(vars(thing).values())
        for one in parts:
            if type(one) is FunctionType and one.__code__.co_filename == module.__file__:
                yield one


def with_inner(code: CodeType) -> Iterator[CodeType]:
    """Yield code, and that of the functions and comprehensions that are written inside it."""
    yield code
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield from with_inner(value)


def _root(module: ModuleType, origin: Path) -> Path:
    """Return the folder in which a module's top-level package is, or the module if it has none."""
    depth = module.__name__.count(".")
    if origin.stem == "__init__":
        depth += 1
    return origin.parents[depth]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _sources(name: str, root: Path) -> dict[str, Path]:
    """Return the files of a module and of all modules below the folder that it leads to."""
    found: dict[str, Path] = {}
    known: set[str] = set()
    todo = [name]
    while todo:
        module = todo.pop()
        if module in known:
            continue
        known.add(module)
        path = _file(module, root)
        if path is None:
            continue
        found[module] = path
        if path.suffix == ".py":
            todo += _imported(path, module)
    return found


def _file(module: str, root: Path) -> Path | None:
    """Return the file of a module below a folder; None if there is none."""
    place = root.joinpath(*module.split("."))
    for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if path.is_file():
            return path
    return next(iter(place.parent.glob(f"{place.name}.*.so")), None)


def _imported(path: Path, module: str) -> Iterator[str]:
    """Yield the names of all modules that a file may import, its own packages included."""
    if "." in module:
        yield module.rpartition(".")[0]
    try:
        tree = _compiled(path, path.read_bytes()).tree
    except (SyntaxError, ValueError):
        return
    package = module.split(".")
    if path.stem != "__init__":
        package = package[:-1]
    for node in ast.walk(tree):
        yield from _named_by(node, package)


def _named_by(node: ast.AST, package: list[str]) -> Iterator[str]:
    """Yield the names of all modules that a statement, or a call, in a package may import."""
    match node:
        case ast.Import(names):
            for alias in names:
                yield alias.name
        case ast.ImportFrom(module, names, level):
            above: list[str] = []
            if level:
                above = package[: len(package) - level + 1]
            source = ".".join([*above, *filter(None, [module])])
            yield source
            for alias in names:
                yield f"{source}.{alias.name}".lstrip(".")
        case ast.Call(
            ast.Attribute(attr="import_module") | ast.Name("import_module" | "__import__"),
            [ast.Constant(str(named)), *_],
        ):
            with suppress(ImportError):  # relative, and beyond the package
                yield resolve_name(named, ".".join(package))

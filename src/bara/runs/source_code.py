"""Digests of source code: of a module, and of what it imports from its own package."""

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

from bara.errors import ConfigError

_INSTALLED = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
"""The folders of installed packages."""

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
    if root.resolve() in _INSTALLED:
        found.update(_version(top).encode())
    else:
        files = _sources(name, root)
    for one, path in sorted(files.items()):
        source = path.read_bytes()
        _refuse_changed(one, path, source)
        found.update(f"{one} {len(source)}\n".encode())
        found.update(source)
    return found.hexdigest()[:16]


def _refuse_changed(name: str, path: Path, source: bytes) -> None:
    """Refuse a source that is not what this program runs: it was edited since it was imported."""
    module = sys.modules.get(name)
    if module is None:
        return
    spec, first = _read.setdefault(name, (module.__spec__, source))
    if first == source:
        return
    if spec is module.__spec__:
        raise ConfigError(
            f"the code of {name} ({path}) has changed since this program imported it; start the "
            "program again, or importlib.reload it"
        )
    _read[name] = module.__spec__, source


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
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = module.split(".")
    if path.stem != "__init__":
        package = package[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            above: list[str] = []
            if node.level:
                above = package[: len(package) - node.level + 1]
            source = ".".join([*above, *filter(None, [node.module])])
            yield source
            for alias in node.names:
                yield f"{source}.{alias.name}".lstrip(".")

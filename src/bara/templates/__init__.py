"""Project folders to start from: each works as it stands, and is copied under a name you choose."""

import re
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

from bara.errors import ConfigError

TEMPLATES = {"allocator": "slow-start", "mechanism": "reliable-first", "flower-app": "bara-digits"}
"""The templates, and the name in each that a copy replaces by its own."""

_UNUSED = {"__pycache__", ".pytest_cache", "runs"}
"""Names of what running a template in place leaves behind, which is not copied."""


def create(template: str, name: str, place: Path) -> Path:
    """Copy a template into a new folder and return the folder.

    Args:
        template: One of `TEMPLATES`.
        name: The new folder's name; it replaces the template's own name in texts and file names
            (`my-app`, `my_app`, `MyApp`).
        place: The folder in which the new one is made.
    """
    if template not in TEMPLATES:
        raise ConfigError(
            f"there is no template {template!r}; choose one of {', '.join(TEMPLATES)}"
        )
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise ConfigError(
            f"the name {name!r} must be lower-case words joined by hyphens, like my-{template}"
        )
    if iskeyword(name):
        raise ConfigError(f"the name {name!r} is a word of Python's own; choose another")
    if find_spec(name.replace("-", "_")) is not None:
        raise ConfigError(
            f"the name {name!r} is taken by an installed Python package; choose another"
        )
    folder = place / name
    try:
        folder.mkdir()
    except OSError as error:
        raise ConfigError(
            f"cannot make the folder {str(folder)!r}: {error.strerror}; choose another name"
        ) from None
    source = Path(__file__).parent / template
    spellings = dict(zip(_spellings(TEMPLATES[template]), _spellings(name), strict=True))
    for path in sorted(source.rglob("*")):
        if path.is_file() and not _UNUSED & set(path.parts):
            target = folder / _renamed(str(path.relative_to(source)), spellings)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_renamed(path.read_text("utf-8"), spellings), "utf-8")
    return folder


def _spellings(name: str) -> tuple[str, str, str]:
    """Return a name as it is spelled in texts, as a module and as a class.

    >>> _spellings("my-app")
    ('my-app', 'my_app', 'MyApp')
    """
    words = re.split("[-_]", name)
    return "-".join(words), "_".join(words), "".join(map(str.capitalize, words))


def _renamed(text: str, spellings: dict[str, str]) -> str:
    for old, new in spellings.items():
        text = text.replace(old, new)
    return text

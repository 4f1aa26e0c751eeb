"""The verb `doctor`: the facts about this machine that a report of a problem needs."""

import os
import platform
import re
import sqlite3
from importlib.metadata import PackageNotFoundError, metadata, requires, version

import bara
from bara.cli.options import AsJson, Debug
from bara.cli.output import errors, print_json, say

_PACKAGES = ("numpy", "scipy", "sqlalchemy", "torch", "flwr")
"""The packages whose versions explain the most."""

_DEVELOPMENT = ("dev", "docs")
"""The extras of those who work on bara itself."""


def doctor_command(as_json: AsJson = False, debug: Debug = False) -> None:
    """Print versions, extras and data found here, to paste into a report of a problem."""
    with errors(debug):
        facts = _facts()
        if as_json:
            print_json(facts)
            return
        for name, fact in facts.items():
            say(f"{name:10}{fact}")


def _facts() -> dict[str, str]:
    """Return what there is on this machine, by name."""
    from bara import datasets

    extras = []
    lacking = []
    for extra in _extras():
        missing = _missing(extra)
        if missing:
            lacking.append(f"{extra} ({', '.join(missing)})")
        else:
            extras.append(extra)
    data = [one.name for one in datasets.available() if one.status != "missing"]
    return {
        "bara": bara.__version__,
        "python": f"{platform.python_version()}, {platform.python_implementation()}",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "cores": str(os.cpu_count()),
        "sqlite": sqlite3.sqlite_version,
        "packages": ", ".join(f"{name} {_version(name) or 'missing'}" for name in _PACKAGES),
        "extras": ", ".join(extras) or "none",
        "lacking": ", ".join(lacking) or "nothing",
        "data": ", ".join(data) or "none",
    }


def _extras() -> list[str]:
    """Return the extras that users can install."""
    every = metadata("bara-fl").get_all("Provides-Extra", [])
    return [extra for extra in every if extra not in _DEVELOPMENT]


def _missing(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed."""
    missing = []
    for requirement in requires("bara-fl") or ():
        package = re.match(r"[\w.-]+", requirement)
        belongs = re.search(rf"extra == ['\"]{extra}['\"]", requirement)
        if package is not None and belongs and _version(package[0]) is None:
            missing.append(package[0])
    return missing


def _version(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None

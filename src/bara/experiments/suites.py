"""Suites: named sets of settings that allocators are compared over, each a TOML file beside this module."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from bara.errors import UnknownNameError
from bara.experiments.config import Config, read_toml, set_key
from bara.plugins import nearest

_FOLDER = files("bara.experiments").joinpath("suites")


@dataclass(frozen=True)
class Setting:
    """One experiment of a suite.

    Attributes:
        name: What tables call it.
        config: The experiment; a comparison puts in allocator and seed.
    """

    name: str
    config: Config

    @property
    def iid(self) -> bool:
        """Whether all clients hold alike data, so that it hardly matters how many take part."""
        return self.config.clients.partition == "iid"


def names() -> list[str]:
    """Every suite there is."""
    return sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))


def settings(suite: str, changes: Sequence[str] = (), *, only: Sequence[str] = (), full: bool = False) -> list[Setting]:
    """A suite's settings.

    Args:
        suite: Its name.
        changes: Single keys to change in all of them (`budget.total=600`).
        only: Which of its settings; all unless given.
        full: At full size, for larger machines: all samples of every dataset.
    """
    if suite not in names():
        raise UnknownNameError(f"no suite is named {suite!r}; {nearest(suite, names())}")
    tree = read_toml(_FOLDER.joinpath(f"{suite}.toml"))
    known = tree["settings"]
    for name in only:
        if name not in known:
            raise UnknownNameError(f"suite {suite!r} has no setting {name!r}; {nearest(name, list(known))}")
    made = {name: _merged(tree["base"], known[name]) for name in known if not only or name in only}
    if full:
        for setting in made.values():
            for key in ("train_samples", "evaluation_samples"):
                setting["data"].pop(key, None)
    for setting in made.values():
        for change in changes:
            set_key(setting, change)
    return [Setting(name, Config.parse(setting)) for name, setting in made.items()]


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes on top of the base, table by table."""
    merged = deepcopy(dict(base))
    for key, value in changes.items():
        merged[key] = _merged(merged.get(key, {}), value) if isinstance(value, Mapping) else value
    return merged

"""Suites: named sets of settings that allocators are compared over."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bara.errors import UnknownNameError
from bara.runs.config import Config, change_key, read_toml, shipped
from bara.text import nearest


@dataclass(frozen=True)
class Setting:
    """An experiment of a suite.

    Attributes:
        name: The name in tables.
        config: The experiment; a comparison puts in allocator and seed.
    """

    name: str
    config: Config

    @property
    def iid(self) -> bool:
        """True where all clients hold alike data, so that it hardly matters how many take part."""
        return self.config.clients.partition == "iid"


def settings(
    suite: str,
    changes: Mapping[str, Any] = MappingProxyType({}),
    *,
    only: Sequence[str] = (),
    full: bool = False,
) -> list[Setting]:
    """Read the settings of a suite.

    Args:
        suite: The name of the suite.
        changes: Keys to change in all of its settings, as for `Config.load`.
        only: The names of the settings to read; all unless given.
        full: Use all samples of every dataset, for larger machines.
    """
    suites = shipped("suites")
    if suite not in suites:
        raise UnknownNameError(f"no suite is named {suite!r}; {nearest(suite, list(suites))}")
    tree = read_toml(suites[suite])
    known = tree["settings"]
    for name in only:
        if name not in known:
            hint = nearest(name, list(known))
            raise UnknownNameError(f"suite {suite!r} has no setting {name!r}; {hint}")
    found = []
    for name in known:
        if only and name not in only:
            continue
        setting = _merged(tree["base"], known[name])
        if full:
            setting["data"].pop("train_samples", None)
            setting["data"].pop("evaluation_samples", None)
        for key, value in changes.items():
            change_key(setting, key, value)
        found.append(Setting(name, Config.complete(setting)))
    return found


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lay the changes over the base, table by table."""
    merged = deepcopy(dict(base))
    for key, value in changes.items():
        if isinstance(value, Mapping):
            merged[key] = _merged(merged.get(key, {}), value)
        else:
            merged[key] = value
    return merged

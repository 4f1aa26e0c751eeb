"""The baselines of a comparison: what each line of its table is measured against."""

from collections.abc import Sequence

from bara.errors import ConfigError, UnknownNameError
from bara.reports.result import Result, short_key
from bara.text import nearest

BASELINE = "even"
"""The allocator that a suite is measured against unless another is asked for, where it was run."""


def baselines(results: Sequence[Result], against: str = "") -> dict[str, str]:
    """Return the name of the line that each line is measured against; none for a baseline itself.

    Args:
        results: The runs in the table.
        against: The allocator, the value of another key (`fair`, or `mechanism=fair`), or the whole
            line (`even, mechanism=fair`) to measure against; an allocator or a value is compared
            with everything else equal. Empty for the first allocator; where there is only one, for
            the first line.
    """
    if not results:
        return {}
    lines = {result.name: result for result in results}
    if against in lines:
        return {name: against for name in lines if name != against}
    key = _key_of(list(lines.values()), against)
    wanted = against.removeprefix(f"{short_key(key)}=") or _value(results[0], key)
    groups: dict[str, str] = {}
    for name, line in lines.items():
        if _value(line, key) == wanted:
            groups.setdefault(_others(line, key), name)
    found = {}
    for name, line in lines.items():
        baseline = groups.get(_others(line, key), name)
        if baseline != name:
            found[name] = baseline
    return found


def baseline_of(results: Sequence[Result], against: str = "") -> str:
    """Name the one line that all others are measured against.

    Args:
        results: The runs.
        against: As for `baselines`; empty for `even`, or the first line where that was not run.
    """
    if against:
        measured = list(baselines(results, against).values())
        return measured[0] if measured else results[0].name
    for result in results:
        if result.allocator == BASELINE:
            return result.name
    return results[0].name


_EVERYTHING = "*"
"""In place of a key: lines differ in everything, and the first of all is the baseline."""


def _key_of(lines: Sequence[Result], against: str) -> str:
    """Find the key whose value is measured against: `allocator`, or one that is varied."""
    values: dict[str, dict[str, None]] = {}
    for line in lines:
        for key in ("allocator", *line.varied):
            values.setdefault(key, {})[_value(line, key)] = None
    if not against:
        only_one = len(values) > 1 and len(values["allocator"]) == 1
        return _EVERYTHING if only_one else "allocator"
    keys = []
    known = [line.name for line in lines]
    for key, found in values.items():
        named = {f"{short_key(key)}={value}": value for value in found}
        known += [*found, *named]
        if against in found or against in named:
            keys.append(key)
    if not keys:
        raise UnknownNameError(
            f"there is nothing called {against!r} to compare against; "
            f"{nearest(against, list(dict.fromkeys(known)))}"
        )
    if len(keys) > 1:
        ways = " or ".join(f"{short_key(key)}={against}" for key in keys)
        raise ConfigError(f"{against!r} may be {ways}; say which to compare against")
    return keys[0]


def _value(line: Result, key: str) -> str:
    if key == "allocator":
        return line.allocator
    return str(line.varied.get(key))


def _others(line: Result, key: str) -> str:
    """Return all that tells lines apart but for one key."""
    if key == _EVERYTHING:
        return ""
    keys = [name for name in ("allocator", *sorted(line.varied)) if name != key]
    return ", ".join(f"{name}={_value(line, name)}" for name in keys)

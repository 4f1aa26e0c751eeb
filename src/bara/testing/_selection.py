"""Which checks apply to a part: each check says what a part must have for it."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from unittest import SkipTest

Check = Callable[..., None]


class ContractHint(UserWarning):
    """Something that is allowed, and probably not meant."""


class Selection(NamedTuple):
    """The checks that apply to a part; the names of the others, each with what the part would need."""

    checks: tuple[Check, ...]
    skipped: Mapping[str, str]


def needs(capability: type | Callable[[Any], bool], what: str) -> Callable[[Check], Check]:
    """Mark a check as one for parts that have a capability; for others it raises SkipTest.

    Args:
        capability: A protocol that the part must be an instance of, or a function that says whether
            it can.
        what: What the part must have, in words.
    """

    def has(part: object) -> bool:
        return isinstance(part, capability) if isinstance(capability, type) else capability(part)

    def mark(check: Check) -> Check:
        @functools.wraps(check)
        def checked(make: Callable[[int], object]) -> None:
            if not has(make(0)):
                raise SkipTest(f"it needs {what}")
            check(make)

        checked.__dict__["needs"] = ((has, what), *_needs(check))
        return checked

    return mark


def _needs(check: Check) -> tuple[tuple[Callable[[object], bool], str], ...]:
    return getattr(check, "needs", ())


def select_checks(checks: Iterable[Check], part: object) -> Selection:
    """Which checks apply to a part that was made.

    >>> from bara.allocators import ALLOCATORS
    >>> from bara.testing import ALLOCATOR_CHECKS, check_ask_is_pure
    >>> applying, skipped = select_checks(ALLOCATOR_CHECKS, ALLOCATORS.build("even"))
    >>> check_ask_is_pure in applying, skipped["check_beliefs_are_plain"]
    (True, 'it needs belief()')
    """
    lacking = {check: [what for has, what in _needs(check) if not has(part)] for check in checks}
    applying = tuple(check for check, what in lacking.items() if not what)
    return Selection(
        applying,
        {c.__name__: f"it needs {' and '.join(what)}" for c, what in lacking.items() if what},
    )

"""The selection of checks that apply to a part, by what each check needs the part to have."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from unittest import SkipTest

Check = Callable[..., None]


class ContractHint(UserWarning):
    """A warning about something that is allowed but probably unintended."""


class Selection(NamedTuple):
    """The checks that apply to a part, and the names of the others with the reason for skipping."""

    checks: tuple[Check, ...]
    skipped: Mapping[str, str]


def needs(capability: type | Callable[[Any], bool], what: str) -> Callable[[Check], Check]:
    """Mark a check as one for parts that have a capability; for others it raises SkipTest.

    Args:
        capability: A protocol that the part must implement, or a function that tells whether a
            part has the capability.
        what: The capability in words.
    """

    def has(part: object) -> bool:
        if isinstance(capability, type):
            return isinstance(part, capability)
        return capability(part)

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
    """Select the checks that apply to a part.

    Args:
        checks: The checks to choose from.
        part: An allocator, a mechanism or a federation.

    >>> from bara.allocators import ALLOCATORS
    >>> from bara.testing import ALLOCATOR_CHECKS, check_ask_is_pure
    >>> applying, skipped = select_checks(ALLOCATOR_CHECKS, ALLOCATORS.build("even"))
    >>> check_ask_is_pure in applying, skipped["check_beliefs_are_plain"]
    (True, 'it needs belief()')
    """
    applying: list[Check] = []
    skipped: dict[str, str] = {}
    for check in checks:
        missing = [what for has, what in _needs(check) if not has(part)]
        if missing:
            skipped[check.__name__] = f"it needs {' and '.join(missing)}"
        else:
            applying.append(check)
    return Selection(tuple(applying), skipped)


def contract_test(checks: Iterable[Check], make: Callable[..., Any]) -> Callable[[Check], None]:
    """Return a test for pytest: each check is a case of its own.

        from bara.testing import MECHANISM_CHECKS, contract_test

        test_contract = contract_test(MECHANISM_CHECKS, MyMechanism)

    Args:
        checks: The checks of the kind of part.
        make: Makes a new part, as the checks want it.
    """
    import pytest  # noqa: PLC0415 - only where tests are run

    @pytest.mark.parametrize("check", list(checks), ids=lambda check: check.__name__)
    def test(check: Check) -> None:
        check(make)

    return test

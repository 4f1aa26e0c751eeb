"""Money: whole micro-units, exact from and to decimals."""

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

from bara.errors import InvalidMoneyError

MICRO = 1_000_000
"""Micro-units in one unit of the budget."""

MAX_MONEY = 2**63 - 1
"""The largest amount; also what "no limit" means in an offer."""


def money(value: Decimal | float | str, *, what: str = "amount") -> int:
    """Parse an amount into micro-units.

    Integers, strings and decimals are taken exactly and may have at most six decimals; a float, which is no
    decimal number to begin with, is rounded to the nearest micro-unit.

    Args:
        value: The amount in units of the budget.
        what: How to name the amount in an error.

    >>> money("12.345678"), money(7), money(0.1)
    (12345678, 7000000, 100000)
    """
    exact = _decimal(value, what)
    if not exact.is_finite():
        raise InvalidMoneyError(f"{what} is {value}; required is a finite number")
    micros = Fraction(exact) * MICRO if exact.adjusted() < 20 else Fraction(2 * MAX_MONEY)  # 1e9999 is not spelled out
    if abs(micros) > MAX_MONEY:
        raise InvalidMoneyError(f"{what} is {value}; required is at most {show_money(MAX_MONEY)}")
    if micros.denominator != 1 and not isinstance(value, float | np.floating):
        raise InvalidMoneyError(f"{what} is {value}; required are at most six decimals")
    return round(micros)


def _decimal(value: object, what: str) -> Decimal:
    """The number as written; no decimal context rounds it."""
    try:
        if isinstance(value, float | np.floating):
            return Decimal(repr(float(value)))
        written = str(value) if isinstance(value, bool) else value  # True is no amount
        return Decimal(written if isinstance(written, str | Decimal) else operator.index(written))  # type: ignore[arg-type]
    except (InvalidOperation, TypeError, ValueError):
        raise InvalidMoneyError(f"{what} is {value!r}; required is a decimal number") from None


def show_money(micros: int) -> str:
    """Print micro-units as a decimal, exactly, with at least two decimals.

    >>> show_money(12_345_678), show_money(7_000_000), show_money(-500_000)
    ('12.345678', '7.00', '-0.50')
    """
    units, rest = divmod(abs(int(micros)), MICRO)
    return f"{'-' if micros < 0 else ''}{units}.{f'{rest:06d}'.rstrip('0'):0<2}"


def decimal_money(micros: int) -> float:
    """An amount as the decimal number that JSON, tables and figures show."""
    return int(micros) / MICRO


def json_money(**amounts: Any) -> dict[str, Any]:
    """Amounts as JSON says them: the decimal number that people read and, in `NAME_exact`, the exact decimal as text.

    A float holds micro-units up to nine billion units, and no reader of JSON is bound to keep even that; text stays.

    Args:
        **amounts: Each in micro-units, or None where it is not known, or several in a list or by name.

    >>> json_money(paid=1_500_000, asked=[2_000_001, None])
    {'paid': 1.5, 'paid_exact': '1.50', 'asked': [2.000001, None], 'asked_exact': ['2.000001', None]}
    """
    found = {}
    for name, value in amounts.items():
        found[name], found[f"{name}_exact"] = _each(decimal_money, value), _each(show_money, value)
    return found


def _each(show: Callable[[int], Any], value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: show(one) for key, one in value.items()}
    if isinstance(value, list):
        return [None if one is None else show(one) for one in value]
    return None if value is None else show(value)

"""Money: whole micro-units, exact from and to decimals."""

from decimal import Decimal, InvalidOperation

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
    try:
        exact = Decimal(repr(float(value)) if isinstance(value, float) else value)
    except (InvalidOperation, TypeError, ValueError):
        raise InvalidMoneyError(f"{what} is {value!r}; required is a decimal number") from None
    if not exact.is_finite():
        raise InvalidMoneyError(f"{what} is {value}; required is a finite number")
    if abs(exact) * MICRO > MAX_MONEY:
        raise InvalidMoneyError(f"{what} is {value}; required is at most {show_money(MAX_MONEY)}")
    micros = exact.scaleb(6).to_integral_value() if isinstance(value, float) else exact.scaleb(6)
    if micros != int(micros):
        raise InvalidMoneyError(f"{what} is {value}; required are at most six decimals")
    return int(micros)


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

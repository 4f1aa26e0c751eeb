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


_DIGITS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
    2: """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC
    CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD
    KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO
    NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL
    THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD XCG YER ZAR ZMW ZWG
    """,
    3: "BHD IQD JOD KWD LYD OMR TND",
}
"""The currencies of ISO 4217 that people are paid in, by the decimals that their smallest unit has."""

DECIMALS = {code: digits for digits, codes in _DIGITS.items() for code in codes.split()}
"""The decimals of each currency's smallest unit, by its code."""


def smallest_unit(currency: str | None) -> int:
    """The smallest amount that can be paid, in micro-units: a cent of EUR; one micro-unit where there is no currency.

    >>> smallest_unit("EUR"), smallest_unit("JPY"), smallest_unit(None)
    (10000, 1000000, 1)
    """
    if currency is None:
        return 1
    if currency not in DECIMALS:
        raise InvalidMoneyError(
            f"budget.currency must be a code of ISO 4217, like EUR or USD, got {currency!r}"
        )
    return int(MICRO // 10 ** DECIMALS[currency])


def money(value: Decimal | float | str, *, what: str = "amount") -> int:
    """Parse an amount into micro-units.

    Integers, strings and decimals are taken exactly and may have at most six decimals; a float,
    which is no decimal number to begin with, is rounded to the nearest micro-unit.

    Args:
        value: The amount in units of the budget.
        what: How to name the amount in an error.

    >>> money("12.345678"), money(7), money(0.1)
    (12345678, 7000000, 100000)
    """
    exact = _decimal(value, what)
    if not exact.is_finite():
        raise InvalidMoneyError(f"{what} must be a finite number, got {value}")
    micros = (
        Fraction(exact) * MICRO if exact.adjusted() < 20 else Fraction(2 * MAX_MONEY)
    )  # 1e9999 is not spelled out
    if abs(micros) > MAX_MONEY:
        raise InvalidMoneyError(f"{what} must be at most {show_money(MAX_MONEY)}, got {value}")
    if micros.denominator != 1 and not isinstance(value, float | np.floating):
        raise InvalidMoneyError(f"{what} must have at most six decimals, got {value}")
    return round(micros)


def _decimal(value: object, what: str) -> Decimal:
    """The number as written; no decimal context rounds it."""
    try:
        if isinstance(value, float | np.floating):
            return Decimal(repr(float(value)))
        written = str(value) if isinstance(value, bool) else value  # True is no amount
        return Decimal(written if isinstance(written, str | Decimal) else operator.index(written))  # type: ignore[arg-type]
    except (InvalidOperation, TypeError, ValueError):
        raise InvalidMoneyError(f"{what} must be a decimal number, got {value!r}") from None


def show_money(micros: int, currency: str | None = None) -> str:
    """Print micro-units as a decimal, exactly: for programs with at least two decimals, or as one writes a currency.

    >>> show_money(12_345_678), show_money(7_000_000), show_money(-500_000)
    ('12.345678', '7.00', '-0.50')
    >>> show_money(40_000_000_000, "EUR"), show_money(1_500_000_000, "JPY")
    ('40,000.00 EUR', '1,500 JPY')
    """
    units, rest = divmod(abs(int(micros)), MICRO)
    sign, least = "-" if micros < 0 else "", DECIMALS.get(currency or "", 2)
    decimals = f"{rest:06d}".rstrip("0").ljust(least, "0")
    point = "." if decimals else ""
    return (
        f"{sign}{units:,}{point}{decimals} {currency}" if currency else f"{sign}{units}.{decimals}"
    )


def tell_money(value: float, currency: str | None = None, *, about: bool = False) -> str:
    """An amount that is a decimal number already, as people read it; in whole units where it is about so much.

    >>> tell_money(1234.5), tell_money(1234.503, "EUR"), tell_money(1234.5, "JPY")
    ('1,234.50', '1,234.50 EUR', '1,234 JPY')
    >>> tell_money(1234.2, about=True), tell_money(1234.2, "EUR", about=True)
    ('1,234', '1,234 EUR')
    """
    decimals = 0 if about else DECIMALS.get(currency or "", 2)
    return f"{value:,.{decimals}f}" + (f" {currency}" if currency else "")


def decimal_money(micros: int) -> float:
    """An amount as the decimal number that JSON, tables and figures show."""
    return int(micros) / MICRO


def json_money(**amounts: Any) -> dict[str, Any]:
    """Amounts as JSON says them: the decimal number that people read and, in `NAME_exact`, the exact decimal as text.

    A float holds micro-units up to nine billion units, and no reader of JSON is bound to keep even
    that; text stays.

    Args: **amounts: Each in micro-units, or None where it is not known, or several in a list or by
        name.

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

"""Money as whole micro-units, converted from and to decimals exactly."""

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np

from bara.errors import InvalidMoneyError

MICRO = 1_000_000
"""Micro-units in one unit of the budget."""

MAX_MONEY = 2**63 - 1
"""The largest amount of money; in an offer, it means "no limit"."""

# The currencies of ISO 4217 in which people are paid, by the decimals of their smallest unit.
_NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_TWO_DECIMALS = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF
    CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD
    HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK
    MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD
    RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS
    UAH USD UYU UZS VES WST XCD XCG YER ZAR ZMW ZWG
"""
_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"

DECIMALS = {
    **dict.fromkeys(_NO_DECIMALS.split(), 0),
    **dict.fromkeys(_TWO_DECIMALS.split(), 2),
    **dict.fromkeys(_THREE_DECIMALS.split(), 3),
}
"""The number of decimals of each currency's smallest unit, by the currency's code."""


def smallest_unit(currency: str | None) -> int:
    """Return the smallest amount that can be paid in a currency, in micro-units.

    Args:
        currency: A code of ISO 4217; None for a budget without a currency, which is paid in
            micro-units.

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
    """Convert an amount in units of the budget into micro-units.

    Integers, strings and decimals are taken exactly and may have at most six decimals. A float is
    rarely an exact decimal, so it is rounded to the nearest micro-unit.

    Args:
        value: The amount in units of the budget.
        what: How to name the amount in an error.

    >>> money("12.345678"), money(7), money(0.1)
    (12345678, 7000000, 100000)
    """
    exact = _decimal(value, what)
    if not exact.is_finite():
        raise InvalidMoneyError(f"{what} must be a finite number, got {value}")
    is_huge = exact.adjusted() >= 20  # 1e9999, say: refused before its digits are computed
    micros = Fraction(2 * MAX_MONEY) if is_huge else Fraction(exact) * MICRO
    if abs(micros) > MAX_MONEY:
        raise InvalidMoneyError(f"{what} must be at most {show_money(MAX_MONEY)}, got {value}")
    if micros.denominator != 1 and not isinstance(value, float | np.floating):
        raise InvalidMoneyError(f"{what} must have at most six decimals, got {value}")
    return round(micros)


def _decimal(value: Any, what: str) -> Decimal:
    """Return the number exactly as written: unlike arithmetic, the constructor never rounds."""
    if isinstance(value, bool):  # Python would take True for 1
        raise _not_decimal(value, what)
    try:
        if isinstance(value, float | np.floating):
            return Decimal(repr(float(value)))
        if isinstance(value, Decimal):
            return value
        if isinstance(value, str):
            if not PLAIN_NUMBER.fullmatch(value):
                raise _not_decimal(value, what)
            return Decimal(value)
        return Decimal(operator.index(value))
    except (InvalidOperation, TypeError, ValueError):
        raise _not_decimal(value, what) from None


PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
"""A number as it is written in ledgers; Python takes `'1_000'`, `' 3 '` and other digits, too."""


def _not_decimal(value: object, what: str) -> InvalidMoneyError:
    return InvalidMoneyError(f"{what} must be a decimal number, got {value!r}")


def show_money(micros: int, currency: str | None = None) -> str:
    """Format micro-units as an exact decimal.

    Args:
        micros: The amount.
        currency: A code of ISO 4217, to format the amount for people, with the currency's decimals
            and grouped thousands; None for a plain decimal that programs can parse.

    >>> show_money(12_345_678), show_money(7_000_000), show_money(-500_000)
    ('12.345678', '7.00', '-0.50')
    >>> show_money(40_000_000_000, "EUR"), show_money(1_500_000_000, "JPY")
    ('40,000.00 EUR', '1,500 JPY')
    """
    if not currency:
        return plain_money(micros)
    whole, point, decimals = plain_money(abs(int(micros)), currency).partition(".")
    sign = "-" if micros < 0 else ""
    return f"{sign}{int(whole):,}{point}{decimals} {currency}"


def plain_money(micros: int, currency: str | None = None) -> str:
    """Format micro-units as an exact decimal that programs can parse, without the currency's name.

    Args:
        micros: The amount.
        currency: A code of ISO 4217, whose decimals are shown; None for at least two.

    >>> plain_money(1_500_000_000, "JPY"), plain_money(1_500_000, "BHD"), plain_money(1_500_000)
    ('1500', '1.500', '1.50')
    """
    units, rest = divmod(abs(int(micros)), MICRO)
    sign = "-" if micros < 0 else ""
    decimals = f"{rest:06d}".rstrip("0").ljust(DECIMALS.get(currency or "", 2), "0")
    point = "." if decimals else ""
    return f"{sign}{units}{point}{decimals}"


def tell_money(value: float, currency: str | None = None, *, about: bool = False) -> str:
    """Format an amount that is already a decimal number for people to read.

    Args:
        value: The amount, in units of the budget.
        currency: A code of ISO 4217 to append, whose decimals are shown; None for no currency.
        about: Whether the amount is an estimate, which is shown in whole units.

    >>> tell_money(1234.5), tell_money(1234.503, "EUR"), tell_money(1234.5, "JPY")
    ('1,234.50', '1,234.50 EUR', '1,234 JPY')
    >>> tell_money(1234.2, about=True), tell_money(1234.2, "EUR", about=True)
    ('1,234', '1,234 EUR')
    """
    decimals = 0 if about else DECIMALS.get(currency or "", 2)
    amount = f"{value:,.{decimals}f}"
    if not currency:
        return amount
    return f"{amount} {currency}"


def decimal_money(micros: int) -> float:
    """Convert micro-units into the decimal number that JSON, tables and figures show."""
    return int(micros) / MICRO


def json_money(**amounts: Any) -> dict[str, Any]:
    """Convert amounts for JSON: each as a decimal number and, in `NAME_exact`, as exact text.

    A float holds micro-units exactly only up to nine billion units, and readers of JSON may keep
    even fewer digits; text stays as it is.

    Args:
        **amounts: An amount in micro-units, a list of amounts, or a mapping to amounts; None for an
            unknown amount.

    >>> json_money(paid=1_500_000)
    {'paid': 1.5, 'paid_exact': '1.50'}
    >>> json_money(asked=[2_000_001, None])
    {'asked': [2.000001, None], 'asked_exact': ['2.000001', None]}
    """
    found = {}
    for name, value in amounts.items():
        found[name] = _each(decimal_money, value)
        found[f"{name}_exact"] = _each(show_money, value)
    return found


def _each(convert: Callable[[int], Any], value: Any) -> Any:
    """Convert an amount, or each amount in a list or mapping; None stays None."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {key: convert(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_each(convert, one) for one in value]
    return convert(value)

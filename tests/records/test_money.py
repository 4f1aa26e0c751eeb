import decimal
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bara.errors import BaraError, InvalidMoneyError
from bara.records import MAX_MONEY, money, show_money


@given(st.integers(-MAX_MONEY, MAX_MONEY))
def test_property_printing_and_parsing_is_exact(micros):
    assert money(show_money(micros)) == micros


@given(st.decimals(min_value=-(10**12), max_value=10**12, places=6))
def test_property_decimals_with_six_places_are_taken_exactly(value):
    assert Decimal(money(value)) == value * 10**6


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        ("0.000001", 1),
        (7, 7_000_000),
        ("1e3", 10**9),
        (0.1, 100_000),
        (1 / 3, 333_333),
        ("-2.5", -2_500_000),
    ],
)
def test_amounts_of_every_kind_are_read(value, micros):
    assert money(value) == micros


@pytest.mark.parametrize(
    "value",
    [
        "0.0000001",
        "nan",
        "inf",
        float("nan"),
        float("-inf"),
        "ten",
        "",
        None,
        10**13,
        "1e400",
        "1e999999999",
    ],
)
def test_what_is_no_amount_is_refused_with_what_was_got(value):
    with refused(InvalidMoneyError, "the price of 'ann'", value):
        money(value, what="the price of 'ann'")


def test_no_decimal_context_rounds_an_amount():
    with decimal.localcontext(decimal.Context(prec=6)):
        assert money("1234567.89") == 1_234_567_890_000
    with refused(InvalidMoneyError, "decimals", "1.0000000000000000000000000000000001"):
        money("1.0000000000000000000000000000000001")


def test_numpy_numbers_are_amounts_and_truth_values_are_not():
    assert (money(np.int64(3)), money(np.float32(3.5))) == (3_000_000, 3_500_000)
    with refused(InvalidMoneyError, "amount", "True"):
        money(bool("true"))


def test_errors_are_bara_errors_and_builtins_at_once():
    assert issubclass(InvalidMoneyError, BaraError)
    assert issubclass(InvalidMoneyError, ValueError)


@pytest.mark.parametrize(
    "text", ["１", "1_000", " 3 ", "3\n", "٣", "1,5", "0x10", "+", ".", "", "1e", "Infinity", "--1"]
)
def test_what_only_python_takes_for_a_number_is_no_price(text):
    with refused(InvalidMoneyError, "price", repr(text)):
        money(text, what="price")


def test_a_price_is_read_as_people_and_programs_write_it():
    assert [money(text) for text in ("1000", "1.", ".5", "+1.50", "1e3", "2.5E-1")] == [
        1_000_000_000,
        1_000_000,
        500_000,
        1_500_000,
        1_000_000_000,
        250_000,
    ]

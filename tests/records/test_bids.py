import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from bara import Bids
from bara.errors import InvalidBidError
from bara.records import MAX_MONEY, show_money


@pytest.mark.parametrize(
    "price", [0, -1, float("nan"), float("inf"), "-0.5", "nan", 1e-9, "cheap", None]
)
def test_a_price_that_is_none_is_refused_by_name(price):
    with refused(InvalidBidError, "'eve'", price, "0.000001"):
        Bids.of({"ann": 1, "eve": price})


def test_an_absurd_price_is_refused_with_the_largest_allowed():
    with refused(InvalidBidError, "'eve'", "5000000000000.00", "2 clients", "2305843009213.693951"):
        Bids.of({"ann": 1, "eve": 5 * 10**12})


def test_the_largest_allowed_price_times_all_clients_still_adds_up():
    most = MAX_MONEY >> (5).bit_length()
    bids = Bids(tuple("abcde"), np.full(5, most))
    assert sum(bids.prices.tolist()) <= MAX_MONEY
    with refused(InvalidBidError, "'a'", show_money(most + 1), show_money(most), "63 bits"):
        Bids(tuple("abcde"), np.full(5, most + 1))


def test_a_client_named_twice_is_refused():
    with refused(InvalidBidError, "'bob'", "twice"):
        Bids(("bob", "ann", "bob"), np.array([1, 2, 3]))


@pytest.mark.parametrize("quality", [0, -1, float("nan"), float("inf")])
def test_a_quality_that_is_not_finite_and_positive_is_refused_by_name(quality):
    with refused(InvalidBidError, "'eve'", "samples", float(quality)):
        Bids.of({"ann": 1, "eve": 1}, samples={"ann": 10, "eve": quality})


def test_a_client_without_its_column_is_refused():
    with refused(InvalidBidError, "'eve'", "'samples'"):
        Bids.of({"ann": 1, "eve": 1}, samples={"ann": 10})


def test_float_prices_in_the_micro_unit_constructor_are_refused():
    with refused(InvalidBidError, "micro-units", "Bids.of"):
        Bids(("ann",), np.array([0.5]))


def test_one_price_a_client_is_required():
    with refused(InvalidBidError, "price", "2 for 1"):
        Bids(("ann",), np.array([1, 2]))


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5)


@given(st.dictionaries(NAMES, st.integers(1, 100), max_size=20), st.randoms())
def test_property_the_order_of_arrival_leaves_no_trace(prices, random):
    arrived = list(prices)
    random.shuffle(arrived)
    one = Bids.of(prices, samples={c: float(p) for c, p in prices.items()})
    two = Bids.of({c: prices[c] for c in arrived}, samples={c: float(p) for c, p in prices.items()})
    assert one.clients == two.clients == tuple(sorted(prices))
    assert one.prices.tolist() == two.prices.tolist()
    assert one.column("samples").tolist() == two.column("samples").tolist()


def test_a_missing_column_is_named_with_those_there_are():
    with refused(InvalidBidError, "'epsilon'", "samples"):
        Bids.of({"ann": 1}, samples={"ann": 1}).column("epsilon")


def test_bids_cannot_be_changed_afterwards():
    bids = Bids.of({"ann": 1}, samples={"ann": 3})
    with pytest.raises(ValueError, match="read-only"):
        bids.prices[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        bids.column("samples")[0] = 0


def test_what_the_caller_does_to_its_own_array_does_not_reach_the_record():
    prices = np.array([5, 6])
    bids = Bids(("ann", "bob"), prices)
    prices[0] = 1
    assert bids.prices.tolist() == [5, 6]


@pytest.mark.parametrize("name", [7, None, b"ann", "half \ud800", "an\0n"])
def test_a_name_that_no_ledger_can_hold_is_refused(name):
    with refused(InvalidBidError, "name", repr(name)):
        Bids.of({"ann": 1, name: 1})


def test_ties_are_settled_by_name_unless_a_column_says_otherwise():
    assert Bids.of({"bob": 1, "ann": 1}).preference is None
    bids = Bids.of({"ann": 1, "bob": 1, "cat": 1}, tie={"ann": 3, "bob": 1, "cat": 2})
    assert [bids.clients[i] for i in bids.preference] == ["bob", "cat", "ann"]
    assert [bids.without(["bob"]).clients[i] for i in bids.without(["bob"]).preference] == [
        "cat",
        "ann",
    ]


def test_opened_bids_are_those_that_can_be_read_and_say_why_the_others_are_not():
    sent = {"ann": 1, "bob": "80,50", "cat": 2, "dan": 3, "eve": 10**13, "fay": 1}
    samples = {"ann": 10, "bob": 10, "cat": "ten", "eve": 10, "fay": float("inf")}
    bids = Bids.opened(sent, samples=samples)
    assert bids.clients == ("ann",)
    assert bids.prices.tolist() == [1_000_000]
    facts = {
        "bob": "80,50",
        "cat": "ten",
        "dan": "'samples'",
        "eve": "10000000000000",
        "fay": "inf",
    }
    assert bids.left_out.keys() == facts.keys()
    for client, fact in facts.items():
        assert fact in bids.left_out[client]


def test_prices_are_opened_that_still_add_up():
    most = show_money(MAX_MONEY >> (5).bit_length())
    bids = Bids.opened({**dict.fromkeys("abcd", most), "e": "1152921504606.846977"})
    assert bids.clients == tuple("abcd")
    assert "5 clients" in bids.left_out["e"]


@given(
    st.dictionaries(
        NAMES, st.one_of(st.integers(), st.floats(), st.text(max_size=9), st.none()), max_size=9
    )
)
def test_property_whatever_is_sent_is_opened_or_left_out(sent):
    bids = Bids.opened(sent)
    assert bids.clients == tuple(sorted(sent.keys() - bids.left_out.keys()))
    assert bids.left_out.keys() <= sent.keys()
    again = bids.without([]).in_units_of(10_000)
    assert sorted([*again.clients, *again.left_out]) == sorted(sent)


def test_a_reason_that_a_client_wrote_part_of_is_kept_short_and_storable():
    bids = Bids.opened({"eve": "\0" + "9" * 10_000})
    assert "\0" not in bids.left_out["eve"]
    assert len(bids.left_out["eve"]) <= 300


@pytest.mark.parametrize("name", ["prices", "cls", "self", "clients"])
def test_a_column_may_have_any_name_that_a_client_chose(name):
    assert Bids.opened({"ann": 1}, **{name: {"ann": 3}}).column(name).tolist() == [3]

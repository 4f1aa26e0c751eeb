"""What a silo's own machine answers when it is asked for a bid."""

import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from flwr.clientapp import ClientApp
from refusals import refused

from bara.errors import ConfigError, InvalidBidError
from bara.flower import Bid, answer_bids, drawn, fixed, from_environment, from_file, per_sample

from .conftest import opened_bid


def answer(bidder, round_number, node):
    """The price that a bidder tells its app."""
    return bidder(round_number, SimpleNamespace(node_config={"partition-id": node}, node_id=0))


def answered(bidder, round_number=1, **node):
    """The bid as the server opens it."""
    app = ClientApp()
    answer_bids(app, bidder)
    return opened_bid(app, round_number, **node)


def test_a_fixed_price_is_exact():
    assert answered(fixed("1.234567")).price == 1_234_567


def test_a_price_a_sample_also_says_how_many_samples_there_are():
    found = answered(per_sample(0.002, lambda context: context.node_config["rows"]), rows=150)
    assert (found.price, dict(found.columns)) == (300_000, {"samples": 150.0})


def test_a_drawn_price_depends_on_the_seed_the_round_and_the_client():
    one = answered(drawn("uniform(0.5, 1.5)", seed=3), **{"partition-id": 1, "num-partitions": 4})
    again = answered(drawn("uniform(0.5, 1.5)", seed=3), **{"partition-id": 1, "num-partitions": 4})
    others = [
        answered(drawn("uniform(0.5, 1.5)", seed=4), **{"partition-id": 1}),
        answered(drawn("uniform(0.5, 1.5)", seed=3), 2, **{"partition-id": 1}),
        answered(drawn("uniform(0.5, 1.5)", seed=3), **{"partition-id": 2}),
    ]
    assert one.price == again.price
    assert 500_000 <= one.price <= 1_500_000
    assert one.price not in {other.price for other in others}


def test_a_stable_drawn_price_is_the_nodes_own_and_drifts():
    stable = drawn("uniform(0.5, 1.5)", seed=3, stability=1)
    drifting = drawn("uniform(0.5, 1.5)", seed=3, stability=1, drift=0.1)
    first, later = (answered(stable, number, **{"partition-id": 1}).price for number in (1, 9))
    assert first == later
    assert first != answered(stable, **{"partition-id": 2}).price
    grown = answered(drifting, 3, **{"partition-id": 1}).price
    assert grown == pytest.approx(first * 1.21, abs=2)


def test_half_stable_prices_are_correlated_between_rounds_and_spread_as_all_others():
    half = drawn("uniform(0.5, 1.5)", stability=0.5)
    bid = partial(answer, half)
    one, two = ([bid(number, node) for node in range(400)] for number in (1, 2))
    assert np.corrcoef(one, two)[0, 1] == pytest.approx(0.5, abs=0.1)
    assert np.mean(one) == pytest.approx(1.0, abs=0.05)
    assert (min(one) >= 0.5) & (max(one) <= 1.5)


@pytest.mark.parametrize(("key", "value"), [("stability", 1.5), ("stability", -0.1), ("drift", -1)])
def test_an_economy_that_cannot_be_is_refused(key, value):
    with refused(ConfigError, key, value):
        drawn("uniform(0.5, 1.5)", **{key: value})


def test_a_price_can_be_read_from_the_environment_of_the_silos_machine(monkeypatch):
    monkeypatch.setenv("BARA_PRICE", " 2.5 ")
    assert answered(from_environment()).price == 2_500_000
    monkeypatch.delenv("BARA_PRICE")
    with refused(ConfigError, "BARA_PRICE", "not set"):
        answered(from_environment())


def test_a_price_can_be_read_from_a_file_of_the_silos_machine_anew_each_round(tmp_path):
    place = tmp_path / "price"
    place.write_text("2.5\n")
    assert answered(from_file(place)).price == 2_500_000
    place.write_text("3")
    assert answered(from_file(), **{"bid-file": str(place)}).price == 3_000_000
    place.write_text("")
    assert answered(from_file(place)).price is None  # it sits this round out


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with refused(ConfigError, "price", tmp_path / "none"):
        answered(from_file(tmp_path / "none"))
    with refused(ConfigError, "bid-file", "price"):
        answered(from_file())


def test_a_function_of_ones_own_decides_as_it_likes():
    def night_tariff(round_number, context):
        if round_number % 2:
            return None
        return Bid("0.7", {"samples": context.node_config["rows"], "epsilon": 0.5})

    assert answered(night_tariff, 1, rows=3).price is None
    assert dict(answered(night_tariff, 2, rows=3).columns) == {"samples": 3.0, "epsilon": 0.5}


@pytest.mark.parametrize("price", [-3, 0, "1e-7", 1e-9, "80,50", float("nan"), None, True])
def test_a_price_that_is_no_amount_is_refused_where_the_bidder_is_made(price):
    for make in (fixed, Bid):
        with refused(InvalidBidError, "price", price):
            make(price)


@pytest.mark.parametrize(
    ("price", "samples"), [(-1, 5), ("much", 5), (float("inf"), 5), (1, 0), (1, "5")]
)
def test_a_price_a_sample_that_is_no_number_is_refused_where_the_bidder_is_made(price, samples):
    with refused(InvalidBidError, "per_sample", "positive"):
        per_sample(price, samples)


@pytest.mark.parametrize("samples", [0, -5, float("nan"), float("inf"), "150", True])
def test_a_column_that_is_no_positive_number_is_refused_before_anything_is_sent(samples):
    with refused(InvalidBidError, "samples", samples):
        Bid(1, {"samples": samples})


def test_a_wrong_price_on_the_silos_machine_names_its_place(tmp_path, monkeypatch):
    place = tmp_path / "price"
    place.write_text("80,50")
    with refused(InvalidBidError, place, "80,50"):
        answered(from_file(place))
    monkeypatch.setenv("BARA_PRICE", "-2")
    with refused(InvalidBidError, "BARA_PRICE", "-2"):
        answered(from_environment())


def test_a_price_of_ones_own_function_is_refused_before_anything_is_sent():
    with refused(InvalidBidError, "price", "-3"):
        answered(lambda _round, _context: -3)


def test_bidding_imports_neither_torch_nor_the_ledger():
    heavy = ("torch", "sqlalchemy", "pydantic", "ray")
    code = f"import sys, bara.flower; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"

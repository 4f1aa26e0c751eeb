"""Economies: prices that are redrawn every round, prices that stay, costs by client."""

import numpy as np
import pytest
from refusals import refused

import bara
from bara import AwardedRound
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution, PrivacyCosts, read_amounts, valuations
from bara.errors import ConfigError, LedgerError
from bara.ledger.run_state import read_books
from bara.ledger.statements import own_statement, statement
from bara.runs.config import Config
from bara.runs.data import label_rarity
from bara.runs.factory import assemble

SMALL = {
    "federation": {"engine": "synthetic"},
    "budget": {"total": 30, "max_rounds": 5},
    "allocator": "even",
}


def asked(rounds, bids="uniform(0.5, 1.5)", clients=400, **options):
    """Everybody's price in each of these rounds, one row per round."""
    bidders = Bidders(clients, Distribution.parse(bids), 3, **options)
    return np.array([bidders.bids(number).prices / 1e6 for number in range(1, rounds + 1)])


def test_stable_prices_are_drawn_once_and_redrawn_ones_every_round():
    stable = asked(3, stability=1)
    assert (stable == stable[0]).all()
    redrawn = asked(3)
    assert (redrawn[0] != redrawn[1]).all()


@pytest.mark.parametrize("bids", ["uniform(0.5, 1.5)", "lognormal(0, 0.5)", "exponential(2)"])
@pytest.mark.parametrize("stability", [0.3, 1])
def test_the_distribution_of_all_prices_is_the_same_for_any_stability(bids, stability):
    redrawn = asked(1, bids, clients=20_000)
    other = asked(1, bids, clients=20_000, stability=stability)
    quantiles = [0.2, 0.4, 0.6, 0.8]
    assert np.quantile(other, quantiles) == pytest.approx(np.quantile(redrawn, quantiles), rel=0.06)


@pytest.mark.parametrize("stability", [0.25, 0.5, 0.75])
def test_stability_is_the_correlation_between_rounds(stability):
    first, second = np.log(asked(2, "lognormal(0, 0.5)", clients=20_000, stability=stability))
    assert np.corrcoef(first, second)[0, 1] == pytest.approx(stability, abs=0.02)


def test_the_price_of_privacy_may_be_stable_too():
    costs = PrivacyCosts(np.full(6, 0.5), valuations("mixed"))
    bidders = Bidders(6, costs, 0, stability=1)
    assert bidders.bids(1).prices.tolist() == bidders.bids(2).prices.tolist()
    assert len(set(bidders.bids(1).prices.tolist())) == 6


def test_costs_by_client_are_asked_as_they_are():
    costs = {"client-0": 80.0, "client-1": 25.5, "client-2": 60.0}
    config = Config.load(SMALL, clients={"count": 3, "costs": costs})
    federation = assemble(config).federation
    for number in (1, 2):
        assert federation.bids(number).prices.tolist() == [80_000_000, 25_500_000, 60_000_000]


def test_where_no_data_name_the_clients_their_costs_do(tmp_path):
    file = tmp_path / "costs.csv"
    file.write_text("client,cost\nBonn,25.5\nAachen,80\n")
    for costs in ({"Bonn": 25.5, "Aachen": 80}, str(file)):
        config = Config.load(SMALL, clients={"costs": costs})
        bids = assemble(config).federation.bids(1)
        assert dict(zip(bids.clients, bids.prices.tolist(), strict=True)) == {
            "Bonn": 25_500_000,
            "Aachen": 80_000_000,
        }
        assert config.clients.count == 2
    with refused(ConfigError, "clients.strategic", "2", "5"):
        Config.load(SMALL, clients={"costs": {"Bonn": 1, "Aachen": 2}, "strategic": 5})
    with refused(ConfigError, "clients.costs", "'Bonn'"):
        assemble(Config.load(SMALL, clients={"costs": {"Bonn": 1, "Aachen": 2}, "count": 3}))


def test_what_is_redrawn_is_a_factor_of_the_costs():
    costs = {"client-0": 80.0, "client-1": 20.0}
    clients = {"count": 2, "costs": costs, "bids": "uniform(0.9, 1.1)"}
    federation = assemble(Config.load(SMALL, clients=clients)).federation
    factors = np.array([federation.bids(i).prices / [80e6, 20e6] for i in range(1, 50)])
    assert 0.9 <= factors.min() < factors.max() <= 1.1


def test_a_file_of_costs_is_kept_with_the_configuration(tmp_path):
    file = tmp_path / "fees.csv"
    file.write_text("\ufeffclient,cost,currency\nclient-0,80,EUR\nclient-1,25.50,EUR\n")
    config = Config.load(
        SMALL,
        budget={"total": 300, "max_rounds": 3, "currency": "EUR"},
        clients={"count": 2, "costs": str(file)},
    )
    assert config.clients.costs == {"client-0": 80.0, "client-1": 25.5}
    file.unlink()
    assert bara.run(config).spent > 0


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("client,price\nann,1\n", ("'cost'",)),
        ("client;cost\nann;1\n", ("'client'", "'client;cost'")),
        ("client,cost,cost\nann,1,2\n", ("'cost'", "'client,cost,cost'")),
        ("client,cost\nann,80,50\n", ("line 2", "'ann'")),
        ("client,cost\nann,\n", ("line 2", "'ann'")),
        ("client,cost\nann,-3\n", ("line 2", "'ann'", "-3")),
        ("client,cost\nann,inf\n", ("line 2", "'ann'", "inf")),
        ("client,cost\nann,1\n,2\n", ("line 3", "empty")),
        ("client,cost\nann,1\nann,2\n", ("line 3", "'ann'")),
        ("client,cost,currency\nann,1,USD\n", ("line 2", "'ann'", "USD", "EUR")),
        ("client,cost,currency\nann,1,\n", ("line 2", "'ann'", "no currency", "EUR")),
    ],
)
def test_a_bad_line_in_a_file_of_costs_is_named(tmp_path, text, facts):
    file = tmp_path / "fees.csv"
    file.write_text(text)
    with refused(ConfigError, "fees.csv", *facts):
        read_amounts(file, "cost", "EUR")


@pytest.mark.parametrize(
    ("clients", "facts"),
    [
        ({"costs": "absent.csv"}, ("absent.csv",)),
        ({"costs": 4}, ("clients.costs", "4")),
        ({"costs": {"client-0": 0}}, ("clients.costs", "'client-0'", "0")),
        ({"costs": {"client-0": 1}, "cost_by": "compute"}, ("clients.cost_by", "'compute'")),
        ({"stability": 1.5}, ("clients.stability", "1.5")),
    ],
)
def test_bad_costs_are_refused_before_anything_runs(clients, facts):
    with refused(ConfigError, *facts):
        Config.load(SMALL, clients={"count": 2, **clients})


@pytest.mark.parametrize(
    ("costs", "fact"),
    [({"client-0": 1}, "'client-1'"), ({"client-0": 1, "client-1": 1, "Aachn": 1}, "'Aachn'")],
)
def test_costs_name_every_client_and_nobody_else(costs, fact):
    with refused(ConfigError, "clients.costs", fact):
        assemble(Config.load(SMALL, clients={"count": 2, "costs": costs}))


def test_the_dear_may_be_those_who_hold_what_nobody_else_has():
    clients = {"count": 10, "cost_by": "labels", "bids": "constant(1)"}
    keys = {"federation": {"engine": "simulator"}, "budget": SMALL["budget"]}
    prices = assemble(Config.load(keys, clients=clients)).federation.bids(1).prices
    speedy = clients | {"cost_by": "compute"}
    speeds = assemble(Config.load(keys, clients=speedy)).federation.bids(1).prices
    assert sorted(prices) == sorted(speeds)
    assert prices.tolist() != speeds.tolist()
    with refused(ConfigError, "cost_by", "'labels'"):
        assemble(Config.load(SMALL, clients={"count": 3, "cost_by": "labels"}))


def test_rarity_grows_as_fewer_hold_a_label():
    labels = np.array([0, 1, 0, 1, 0, 2])
    parts = [np.array([0, 1]), np.array([2, 3]), np.array([4]), np.array([5])]
    rarity = label_rarity(labels, parts)
    assert rarity[3] == max(rarity)
    assert rarity[2] == min(rarity)


FEES = "client,fee,currency\nclient-0,2.50,EUR\nclient-1,10,EUR\nclient-2,1,EUR\n"


def under_fees(file, costs):
    return Config.load(
        SMALL,
        budget={"total": 30, "max_rounds": 4, "currency": "EUR"},
        clients={
            "count": 3,
            "costs": dict(zip(("client-0", "client-1", "client-2"), costs, strict=True)),
        },
        mechanism={"name": "tariff", "fees": str(file)},
        allocator="fixed:n=1",
    )


def test_agreed_fees_are_paid_in_turn_and_kept_with_the_configuration(tmp_path):
    file = tmp_path / "fees.csv"
    file.write_text(FEES)
    config = under_fees(file, (2, 9, 3))
    file.unlink()
    assert bara.run(config).payments == {"client-1": 20.0, "client-0": 5.0}  # client-2 asks more


def test_a_client_without_an_agreed_fee_is_left_out_and_the_others_are_paid(tmp_path):
    file = tmp_path / "fees.csv"
    file.write_text("client,fee\nclient-0,2.50\nclient-1,10\n")
    seen = []
    result = bara.run(under_fees(file, (2, 9, 3)), observe=seen.append)
    assert result.payments == {"client-1": 20.0, "client-0": 5.0}
    left_out = [step.left_out.reasons for step in seen if isinstance(step, AwardedRound)]
    assert all("mechanism.fees" in reasons["client-2"] for reasons in left_out)
    assert result.never_paid == {"client-2": 3.0}


def test_one_that_no_fee_was_agreed_with_stands_in_the_books_with_what_it_asked(tmp_path):
    file = tmp_path / "fees.csv"
    file.write_text("client,fee\nclient-0,2.50\nclient-1,10\n")
    run = under_fees(file, (2, 9, 3))
    bara.run(run, out=tmp_path / "run")
    books = read_books(tmp_path / "run" / "ledger.db")
    never = {one.client: one.asked_last for one in statement(books).never_paid}
    assert never == {"client-2": 3_000_000}
    with refused(LedgerError, "'client-2'", "4 rounds", "3.00 EUR", "mechanism.fees"):
        own_statement(books, "client-2")
    books.store.close()


def test_a_fee_for_somebody_who_is_no_client_is_refused(tmp_path):
    file = tmp_path / "fees.csv"
    file.write_text(FEES.replace("client-2", "client-22"))
    with refused(ConfigError, "mechanism.fees", "'client-22'", "'client-2'"):
        bara.run(under_fees(file, (2, 9, 3)))


def test_more_clients_than_there_are_cannot_be_asked_to_be_heard():
    goal = SMALL["budget"] | {"target": 0.3, "min_clients": 4}
    with refused(ConfigError, "budget.min_clients", "3", "4"):
        bara.run(SMALL, budget=goal, allocator="planner", clients=3)


@pytest.mark.parametrize(
    ("mechanism", "facts"),
    [
        ("tariff", ("per_round", "per_sample", "fees")),
        ("posted-price", ("price",)),
        ({"name": "tariff", "fees": {}}, ("per_round", "per_sample", "fees")),
        ({"name": "tariff", "fees": 3}, ("fees", "3")),
        ({"name": "tariff", "fees": {"client-0": -1}}, ("'client-0'", "-1")),
    ],
)
def test_a_missing_price_is_refused(mechanism, facts):
    with refused(ConfigError, *facts):
        bara.run(SMALL, mechanism=mechanism)

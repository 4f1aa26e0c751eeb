import math

import numpy as np
import pytest
from refusals import refused

from bara.clients.costs import VALUATIONS, Distribution, PrivacyCosts, valuations
from bara.errors import ConfigError, InvalidBidError
from bara.plugins import parse_call
from bara.protocols import Protection, Requirements
from bara.runs.config import Config
from bara.runs.factory import assemble, bidders

EPSILONS = np.array([0.1, 0.5, 1.0])


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("uniform(0.5, 1.5)", 1.0),
        ("constant(2)", 2.0),
        ("exponential(3)", 3.0),
        ("lognormal(0, 0.5)", np.exp(0.125)),
        ("normal(1, 0.1)", 1),
    ],
)
def test_distributions_have_their_mean(text, mean):
    drawn = Distribution.parse(text).draw(np.random.default_rng(0), 20_000)
    assert drawn.mean() == pytest.approx(mean, rel=0.05)
    assert drawn.min() > 0


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("unifrom(0, 1)", ("'unifrom'", "'uniform'")),
        ("uniform(1)", ("2 numbers", "'uniform(1)'")),
        ("uniform(2, 1)", ("low <= high", "'uniform(2, 1)'")),
        ("uniform(-1, 1)", ("0 <= low", "'uniform(-1, 1)'")),
        ("uniform(a, b)", ("'name(0.5, 1.5)'", "'uniform(a, b)'")),
        ("uniform(0, 1", ("'name(0.5, 1.5)'", "'uniform(0, 1'")),
        ("constant(0)", ("positive", "'constant(0)'")),
        ("uniform(0, inf)", ("'name(0.5, 1.5)'", "'uniform(0, inf)'")),
    ],
)
def test_a_distribution_that_cannot_be_drawn_from_is_refused(text, facts):
    with refused(ConfigError, *facts):
        Distribution.parse(text)


def test_a_bare_name_has_no_arguments():
    assert parse_call(" iid ", "a partition") == ("iid", ())


@pytest.mark.parametrize(
    ("name", "at_half"),
    [("square", 0.25), ("root", math.sqrt(2)), ("linear", 1.0), ("exponential", math.expm1(0.5))],
)
def test_each_valuation_is_the_published_one(name, at_half):
    assert VALUATIONS[name](0.5) == pytest.approx(at_half)
    drawn = PrivacyCosts(EPSILONS, valuations(name)).draw(np.random.default_rng(0), 3)
    assert 0.5 * at_half <= drawn[1] <= 1.5 * at_half


def test_mixed_draws_among_all_four():
    assert len(valuations("mixed")) == 4


def test_budgets_above_one_are_taken_as_shares_of_the_largest():
    drawn = PrivacyCosts(100 * EPSILONS, valuations("exponential")).draw(
        np.random.default_rng(0), 3
    )
    assert drawn.max() < 1.5 * math.e


def falling(epsilon):
    return 1 - epsilon / 2


def flat(_epsilon):
    return 1.0


@pytest.mark.parametrize("name", ["falling", "flat"])
def test_a_valuation_that_does_not_rise_is_refused_by_name(name):
    with refused(ConfigError, "valuation", repr(name), "epsilon"):
        PrivacyCosts(EPSILONS, (globals()[name],))


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_a_privacy_budget_that_is_none_is_refused(bad):
    with refused(InvalidBidError, "client 1", "privacy budget", bad):
        PrivacyCosts(np.array([1.0, bad]), valuations("linear"))


def test_bids_carry_the_same_budget_every_round_and_another_price():
    private = Requirements(protection=Protection())
    made = bidders(Config.load(None, ["mechanism.name=fl-market", "clients.count=5"]), private)
    one, two = made.bids(1), made.bids(2)
    assert one.column("epsilon").tolist() == two.column("epsilon").tolist()
    assert one.prices.tolist() != two.prices.tolist()
    assert 0.1 <= one.column("epsilon").min() <= one.column("epsilon").max() <= 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clients.valuation", "qubic"),
        ("clients.epsilon", "uniform(1)"),
        ("clients.epsilon", "uniform(-1, 1)"),
        ("clients.epsilon", "constant(0)"),
    ],
)
def test_a_wrong_key_is_named(key, value):
    with refused(ConfigError, key, repr(value)):
        Config.load(None, [f"{key}={value}"])


def test_an_engine_that_cannot_protect_is_refused_before_the_run(tmp_path, monkeypatch):
    (tmp_path / "bare.py").write_text(
        "class engine:\n    evaluate = bids = train = print\n"
        "    def __init__(self, config):\n        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with refused(ConfigError, "FLMarket", "privacy", "engine", "Capabilities(protects=True)"):
        assemble(Config.load(None, ["mechanism.name=fl-market", "federation.engine=bare:engine"]))

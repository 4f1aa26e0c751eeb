"""The learned auction of FL-Market: what it is without its networks, what they add,
and that they can be trained.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from bara import Bids, Offer, Purse
from bara.errors import ConfigError
from bara.mechanisms import QualityAuction
from bara.mechanisms.audit import regret
from bara.mechanisms.dm_regretnet import FEATURES, WEIGHTS, learned_auction_menu, load_weights
from bara.mechanisms.fl_market import FLMarket

SCRIPT = Path(__file__).parents[2] / "scripts" / "train_dm_regretnet.py"


def market(seed, clients=20):
    """Clients of FL-Market's kind, linear in what they sell."""
    rng = np.random.default_rng(seed)
    epsilon = rng.uniform(0.1, 1, clients)
    prices = np.rint(2e6 * epsilon * rng.uniform(0.5, 1.5, clients)).astype(np.int64)
    return Bids(tuple(f"client-{i:02d}" for i in range(clients)), prices, {"epsilon": epsilon})


def silent():
    """Networks that change neither the order nor the price."""
    weights = {f"{name}_w1": np.zeros((1, inputs)) for name, inputs in FEATURES.items()}
    weights |= {f"{name}_{part}": np.zeros(1) for name in FEATURES for part in ("b1", "b2")}
    return (
        weights
        | {f"{name}_w2": np.zeros((1, 1)) for name in FEATURES}
        | {"price_b2": np.array([-800.0])}
    )


def test_with_silent_networks_it_is_the_critical_payment_auction():
    bids = market(0)
    learned = learned_auction_menu(bids, bids.column("epsilon"), silent())
    critical = QualityAuction(quality="epsilon").menu(bids)
    assert learned.order.tolist() == critical.order.tolist()
    for n in range(1, 20):
        assert learned.pay(n, 0) == pytest.approx(critical.pay(n, 0), abs=1)


def test_it_buys_more_privacy_for_a_budget_than_the_truthful_auction_and_a_lie_is_worth_little():
    bought = {}
    for auction in ("critical", "dm-regretnet"):
        sold = []
        for seed in range(60):
            bids = market(seed)
            budget = int(bids.prices.sum() * 0.4)
            award = (
                FLMarket(auction=auction, optimal=False)
                .menu(bids)
                .award(Offer.spend(budget), Purse(budget, 1))
            )
            sold.append(
                sum(bids.column("epsilon")[bids.clients.index(client)] for client in award.clients)
            )
        bought[auction] = np.mean(sold)
    assert bought["dm-regretnet"] > 1.02 * bought["critical"]
    assert regret(FLMarket(), rounds=3).most == 0
    assert 0 < regret(FLMarket(auction="dm-regretnet"), rounds=5).mean < 3


def test_what_the_menu_says_n_clients_cost_is_at_least_what_they_are_paid_and_within_its_promise():
    bids = market(1, clients=300)
    menu = learned_auction_menu(bids, bids.column("epsilon"), load_weights(None))
    for n in range(1, 300):
        assert 0 <= menu.costs[n - 1] - menu.pay(n, 0).sum() < 2 * n


def test_weights_that_are_none_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("no weights")
    with refused(ConfigError, tmp_path / "text.npz", "learned auction"):
        FLMarket(auction="dm-regretnet", weights=str(tmp_path / "text.npz"))
    np.savez(tmp_path / "wrong.npz", **{**silent(), "price_w1": np.zeros((1, 7))})
    with refused(ConfigError, tmp_path / "wrong.npz", "'price'", "3 finite numbers"):
        FLMarket(auction="dm-regretnet", weights=str(tmp_path / "wrong.npz"))
    with refused(ConfigError, "'fl-market'", "weights", "'dm-regretnet'", "'critical'"):
        FLMarket(weights=str(WEIGHTS))


def test_the_script_trains_weights_that_load(tmp_path):
    trained = runpy.run_path(str(SCRIPT))["train"](2)
    np.savez(tmp_path / "own.npz", **trained)
    assert (
        FLMarket(auction="dm-regretnet", weights=str(tmp_path / "own.npz")).menu(market(2)).cost(3)
        > 0
    )

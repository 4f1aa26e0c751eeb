"""An auction with a learned order and learned prices, after FL-Market's DM-RegretNet.

Known from the public code of Zheng et al. 2022: networks see everybody's bid and the budget, and
say who wins and what share of the budget each is paid. They are trained to buy as much privacy as
possible while an augmented Lagrangian presses regret, the gain from the best lie, towards zero. The
number of clients is fixed, and nothing but the penalty keeps a winner from being paid less than it
asks.

Ours states the cost of every n, as a menu must, serves any number of clients and never pays below
the ask, because the networks modify the critical-payment auction instead of replacing it:

    s_i = log(b_i / q_i) + order(log q_i - mean log q)                  who comes first
    p_n = s_(n+1) - softplus(price(n / (N - 1), s_(n+1) - mean of s_1 ... s_n, s_(n+1) - s_n))
    pay_i(n) = max(b_i, q_i exp(max_{m <= n} p_m - s_i + log(b_i / q_i)))

With networks that return `order = 0` and `price = -infinity` it is that auction, and truthful. By
paying less it lets a budget buy more, but makes lies pay: `bara audit` measures how much.
`scripts/train_dm_regretnet.py` trains the networks (torch); here they are a few numpy products.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from bara.errors import ConfigError
from bara.mechanisms._critical import upper_bounds
from bara.records import Bids, FloatArray, IntArray, Menu
from bara.records.bids import checked_column

FEATURES = {"order": 1, "price": 3}
"""The number of inputs of each network."""

WEIGHTS = Path(__file__).with_suffix(".npz")
"""The shipped weights: 20 clients, privacy budgets from U(0.1, 1), FL-Market's valuations."""

Weights = Mapping[str, FloatArray]


def load_weights(path: str | None) -> Weights:
    """Return the weights in a file, or the shipped ones for None."""
    try:
        return _read(Path(path) if path else WEIGHTS)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{path!r} holds no weights of a learned auction: {error}") from None


@cache
def _read(path: Path) -> Weights:
    with np.load(path, allow_pickle=False) as file:
        found = {name: np.asarray(file[name], np.float64) for name in file.files}
    finite = all(np.isfinite(value).all() for value in found.values())
    for name, inputs in FEATURES.items():
        if found[f"{name}_w1"].shape[1] != inputs or not finite:
            raise ValueError(f"the network {name!r} does not take {inputs} finite numbers")
    return found


def learned_auction_menu(bids: Bids, quality: FloatArray, weights: Weights) -> Menu:
    """Return the menu of the learned auction, for 1 <= n < N.

    Ties go to the client that the bids prefer.

    Args:
        bids: The opened bids.
        quality: What each client sells, eps_i d_i, in the order of `bids`.
        weights: The weights of both networks.
    """
    quality = checked_column("quality", quality, bids.clients)
    if len(bids) < 2:
        nobody = np.zeros(0, np.int64)
        return Menu(bids, nobody, nobody, lambda _n, _cap: nobody)
    logs = np.log(quality)
    shift = _network(weights, "order", (logs - logs.mean())[:, None])
    scores = np.log(bids.prices) - logs + shift
    order = bids.ranked(scores)
    prices = bids.prices[order]
    worth = np.exp(logs - shift)[order]
    units = _unit_prices(scores[order], weights)

    def pay(n: int, _cap: int) -> IntArray:
        payments = np.floor(worth[:n] * units[n - 1]).astype(np.int64)
        return np.asarray(np.maximum(prices[:n], payments))

    # Prices rise with the order: the first k of n are paid by the unit price, the others their ask.
    n = np.arange(1, len(bids))
    k = np.minimum(np.searchsorted(prices / worth, units, side="right"), n)
    asked = np.concatenate([[0.0], prices.cumsum()])
    sold = np.concatenate([[0.0], worth.cumsum()])
    costs = upper_bounds(units * sold[k] + asked[n] - asked[k])
    return Menu(bids, order, costs, pay, exact=False)


def _unit_prices(scores: FloatArray, weights: Weights) -> FloatArray:
    """Return exp of the running maximum of p_n, for every n."""
    n = np.arange(1, len(scores))
    loser = scores[1:]
    above_mean = loser - scores.cumsum()[:-1] / n
    above_last = loser - scores[:-1]
    seen = np.stack([n / len(n), above_mean, above_last], axis=1)
    price = loser - np.logaddexp(0, _network(weights, "price", seen))
    return np.asarray(np.exp(np.maximum.accumulate(price)))


def _network(weights: Weights, name: str, x: FloatArray) -> FloatArray:
    """Return the output of a network with one hidden layer for each row of x."""
    hidden = np.tanh(x @ weights[f"{name}_w1"].T + weights[f"{name}_b1"])
    return np.asarray((hidden @ weights[f"{name}_w2"].T + weights[f"{name}_b2"])[:, 0])

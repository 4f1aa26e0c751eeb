"""An auction whose order and price are learned, after FL-Market's DM-RegretNet.

Known from the public code of Zheng et al. 2022: networks see everybody's bid and the budget, say
who wins and what share of the budget each is paid, and are trained to buy as much privacy as
possible while an augmented Lagrangian presses regret, what the best lie gains, towards zero. Their
number of clients is fixed, and nothing but the penalty keeps a winner from being paid less than it
asks.

Ours says the cost of every n, as a menu must, serves any number of clients and never pays below the
ask, because the networks change the critical-payment auction instead of replacing it:

    s_i = log(b_i / q_i) + order(log q_i - mean log q)                  who comes first
    p_n = s_(n+1) - softplus(price(n / (N - 1), s_(n+1) - mean of s_1 ... s_n, s_(n+1) - s_n))
    pay_i(n) = max(b_i, q_i exp(max_{m <= n} p_m - s_i + log(b_i / q_i)))

With networks that say `order = 0` and `price = -infinity` it is that auction, and truthful. What it
pays less lets a budget buy more, and makes a lie worth something: `bara audit` measures how much.
`scripts/train_dm_regretnet.py` trains the networks (torch); here they are a few numpy products.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from bara.errors import ConfigError
from bara.mechanisms._critical import check_range, upper_bounds
from bara.records import Bids, FloatArray, IntArray, Menu
from bara.records.bids import checked_column

FEATURES = {"order": 1, "price": 3}
"""How many numbers each network sees."""

WEIGHTS = Path(__file__).with_suffix(".npz")
"""The shipped weights: 20 clients, privacy budgets from U(0.1, 1), FL-Market's valuations."""

Weights = Mapping[str, FloatArray]


def load_weights(path: str | None) -> Weights:
    """The weights in a file; None for the shipped ones."""
    try:
        return _read(Path(path) if path else WEIGHTS)
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"{path!r} holds no weights of a learned auction: {error}") from None


@cache
def _read(path: Path) -> Weights:
    with np.load(path, allow_pickle=False) as file:
        found = {name: np.asarray(file[name], np.float64) for name in file.files}
    for name, inputs in FEATURES.items():
        if found[f"{name}_w1"].shape[1] != inputs or not all(
            np.isfinite(value).all() for value in found.values()
        ):
            raise ValueError(f"the network {name!r} does not take {inputs} finite numbers")
    return found


def learned_auction_menu(bids: Bids, quality: FloatArray, weights: Weights) -> Menu:
    """The menu of the learned auction for 1 <= n < N; ties go to the client that the bids prefer.

    Args:
        bids: The opened bids.
        quality: What each client sells, eps_i d_i, in the order of `bids`.
        weights: Of both networks.
    """
    quality = checked_column("quality", quality, bids.clients)
    if len(bids) < 2:
        return Menu(
            bids,
            np.zeros(0, np.int64),
            np.zeros(0, np.int64),
            lambda _n, _cap: np.zeros(0, np.int64),
        )
    check_range(bids, quality)
    logs = np.log(quality)
    shift = _network(weights, "order", (logs - logs.mean())[:, None])
    scores = np.log(bids.prices) - logs + shift
    order = bids.ranked(scores)
    prices, worth = bids.prices[order], np.exp(logs - shift)[order]
    units = _unit_prices(scores[order], weights)

    def pay(n: int, _cap: int) -> IntArray:
        return np.asarray(
            np.maximum(prices[:n], np.floor(worth[:n] * units[n - 1]).astype(np.int64))
        )

    # Prices rise with the order: the first k of n are paid the unit price, the others what they
    # ask.
    n = np.arange(1, len(bids))
    k = np.minimum(np.searchsorted(prices / worth, units, side="right"), n)
    asked, sold = (np.concatenate([[0.0], values.cumsum()]) for values in (prices, worth))
    costs = upper_bounds(units * sold[k] + asked[n] - asked[k])
    return Menu(bids, order, costs, pay, exact=False)


def _unit_prices(scores: FloatArray, weights: Weights) -> FloatArray:
    """The running maximum of p_n, no longer a logarithm, for every n."""
    n = np.arange(1, len(scores))
    loser, last = scores[1:], scores[:-1]
    seen = np.stack([n / len(n), loser - scores.cumsum()[:-1] / n, loser - last], axis=1)
    price = loser - np.logaddexp(0, _network(weights, "price", seen))
    return np.asarray(np.exp(np.maximum.accumulate(price)))


def _network(weights: Weights, name: str, x: FloatArray) -> FloatArray:
    hidden = np.tanh(x @ weights[f"{name}_w1"].T + weights[f"{name}_b1"])
    return np.asarray((hidden @ weights[f"{name}_w2"].T + weights[f"{name}_b2"])[:, 0])

"""FL-Market: clients sell locally private updates; the less private, the more they count."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.optimize import brentq

from bara.errors import ConfigError
from bara.mechanisms._critical import critical_menu
from bara.mechanisms._learned import sizes
from bara.mechanisms.dm_regretnet import learned_auction_menu, load_weights
from bara.mechanisms.properties import EVERY_PROPERTY
from bara.mechanisms.proportional_share import sharing_menu
from bara.options import Within, check_fields
from bara.protocols import LearnsNothing, Level, Protection, Requirements
from bara.records import Bids, FloatArray, Menu

Auction = Literal["critical", "all-in", "dm-regretnet"]

_UNCLAIMED: dict[str, set[str]] = {
    "critical": {"spends-the-budget"},
    "all-in": {"truthful-in-price", "exact-sum"},
    "dm-regretnet": {"truthful-in-price", "spends-the-budget"},
}
"""The properties that each auction does not promise."""


@dataclass(frozen=True)
class FLMarket(LearnsNothing):
    """An auction by price per unit of privacy budget and data, with updates weighed by OptAggr.

    Zheng et al. 2022 (IEEE BigData): bids carry `epsilon`, the price is the client's valuation of
    it, the unit price is v_i / (eps_i d_i). Three auctions, of which FL-Market publishes the last
    two:

    - `critical` (ours, the default): n winners share B(n) = u_(n+1) sum_j eps_j d_j, by the first
      loser's unit price. It admits exactly n, spends just that, and is truthful under any offer
      made before the bids.
    - `all-in` (FL-Market's baseline): the n best win while u_n sum_j eps_j d_j is within the
      budget, which is shared out whole by eps_i d_i. Not truthful: with a budget of 10, equal eps
      and costs 1, 4, 4.9, client 3 asks 3 and is paid 5. A menu serves the n best, so unlike the
      public code ours does not look for smaller clients behind the first that does not fit. It
      spends whatever cap it is offered: use it with allocators that offer a budget, not a number
      of clients.
    - `dm-regretnet` (FL-Market's own): order and price by networks that were trained to buy much
      privacy at little regret (`bara.mechanisms.dm_regretnet` tells what is published and what is
      ours). Nearly truthful, but not quite.

    Args:
        level: Whom the noise protects (see `Protection`): `record`, or `client` as in the public
            code.
        clip: The L1 bound of a gradient.
        auction: The auction: `critical`, `all-in` or `dm-regretnet`.
        optimal: Weigh updates by OptAggr; otherwise by data size, as the federation does.
        weights: A file of weights for `dm-regretnet`; None for those that come with bara.

    >>> from bara.records import Offer, Purse
    >>> data = {"ann": 100, "bob": 100, "cat": 100}
    >>> privacy = {"ann": 1.0, "bob": 0.5, "cat": 0.5}
    >>> bids = Bids.of({"ann": 1, "bob": 1, "cat": 2}, samples=data, epsilon=privacy)
    >>> FLMarket().menu(bids).award(Offer.recruit(2), Purse.of(total=100, max_rounds=1)).payments
    (4000000, 2000000)
    """

    level: Level = "record"
    clip: Annotated[float, Within(above=0)] = 1.0
    auction: Auction = "critical"
    optimal: bool = True
    weights: str | None = None

    def __post_init__(self) -> None:
        """Refuse options out of their range, and weights that are not used or cannot be read."""
        check_fields("mechanism 'fl-market'", self)
        if self.auction == "dm-regretnet":
            load_weights(self.weights)
        elif self.weights is not None:
            raise ConfigError(
                "mechanism 'fl-market' takes weights only with auction = 'dm-regretnet', got "
                f"{self.auction!r}"
            )

    @property
    def claims(self) -> frozenset[str]:
        """The properties of the chosen auction; neither of the published ones is truthful."""
        return EVERY_PROPERTY - _UNCLAIMED[self.auction]

    @property
    def requirements(self) -> Requirements:
        """Bids with privacy budgets, and training that keeps to them."""
        return Requirements(
            columns=("epsilon",), protection=Protection(self.level, self.clip), weights=self.optimal
        )

    def menu(self, bids: Bids) -> Menu:
        """Return the menu of the chosen auction over eps_i d_i, with OptAggr's weights."""
        epsilons = bids.column("epsilon")
        data = sizes(bids)
        menu = self._auctioned(bids, epsilons * data)

        def weigh(n: int) -> tuple[float, ...]:
            winners = menu.order[:n]
            precision = epsilons[winners]
            if self.level == "record":
                precision = precision * data[winners]
            return tuple(optimal_weights(data[winners], precision).tolist())

        weights = weigh if self.optimal else None
        return Menu(menu.bids, menu.order, menu.costs, menu.pay, menu.exact, weights)

    def _auctioned(self, bids: Bids, sold: FloatArray) -> Menu:
        if self.auction == "all-in":
            return sharing_menu(bids, sold, up_to_next=False)
        if self.auction == "dm-regretnet":
            return learned_auction_menu(bids, sold, load_weights(self.weights))
        return critical_menu(bids, sold)


def optimal_weights(data: FloatArray, precision: FloatArray) -> FloatArray:
    """Return OptAggr's weights, which trade noise in the updates against bias in their mean.

    Minimises sum_i lambda_i^2 2 (2 L / e_i)^2 + L^2 (sum_i |lambda_i - w_i|)^2 over the simplex;
    w_i is the share of the data, e_i is eps_i at client level and eps_i d_i at record level; L
    cancels. With v_i = 8 / e_i^2 the conditions of optimality are lambda_i = clip(w_i, low / v_i,
    high / v_i), high - low = 2 sum |lambda - w|, and that some weights gain what the others lose.
    So one number is left to find, `low`, which scipy's root finder does for any number of winners;
    the tests compare with scipy's general solver.

    Args:
        data: The data size of each winner.
        precision: e_i of each winner.

    >>> optimal_weights(np.ones(2), np.array([1.0, 2.0])).round(6).tolist()
    [0.285714, 0.714286]
    """
    w = data / data.sum()
    v = 8 / precision**2
    least = float((v * w).min())
    most = float((v * w).max())

    def gained(low: float) -> float:
        return float(np.maximum(low / v - w, 0).sum())

    def surplus(low: float) -> float:
        return gained(low) - float(np.maximum(w - (low + 4 * gained(low)) / v, 0).sum())

    # Where all v w are equal there is no interval, or rounding puts both ends on one side of zero.
    low = least
    if surplus(least) < 0 < surplus(most):
        low = brentq(surplus, least, most, xtol=1e-15 * most, rtol=1e-14)
    weights = np.clip(w, low / v, (low + 4 * gained(low)) / v)
    return np.asarray(weights / weights.sum())

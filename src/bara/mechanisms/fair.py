"""FAIR: quality learned from what each client's training achieves."""

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from bara.mechanisms._critical import reserve_price
from bara.mechanisms._learned import by_client, learned_menu, loss_drop, sizes
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.plugins import Within, check_arguments
from bara.protocols import Requirements
from bara.records import Bids, FloatArray, Menu, RoundRecord


@dataclass
class _Forecast:
    """Sums over the rounds k a client took part in: rho^(t - t_k) drop_k, and rho^(t - t_k); t is its last round."""

    weighted: float = 0.0
    weights: float = 0.0
    round: int = 0

    def learn(self, drop: float, round_number: int, rho: float) -> None:
        faded = rho ** (round_number - self.round)
        self.weighted = faded * self.weighted + drop
        self.weights = faded * self.weights + 1.0
        self.round = round_number

    @property
    def value(self) -> float:
        return self.weighted / self.weights


@final
class Fair:
    """Recruits by learned quality per price, pays critically, weighs updates by quality, refuses outliers.

    Deng et al. 2021 (INFOCOM), from its published ingredients. Quality in round t is q_i(t) = d_i
    max(loss before - loss after, 0), the loss being that on the client's own data (the product form
    is our choice). The forecast fades with age: sum_k rho^(t - t_k) q_i(t_k) / sum_k rho^(t - t_k)
    over the rounds it took part in (recalled, not re-read). A client not seen yet counts as its
    data size times the mean drop of those seen: a cold start proportional to d_i. The auction is
    the critical-payment one over the forecasts.

    Our choices: updates are weighed by forecast; the filter for updates that are not ideal is a
    robust z-score of the distance to the coordinate-wise median, and a filtered update is void, so
    not paid; clients below `least` of the mean quality are left out of the auction. A free rider's
    loss does not drop: it scores 0 and stops winning.

    Args:
        forgetting: rho in (0, 1]; 1 forgets nothing.
        outliers: From how many robust deviations on an update is refused; 0 refuses none.
        least: Which share of the mean quality a client must have to take part.
        reserve: The most that is paid for a unit of quality, in units of the budget; None for no
            limit.

    >>> from bara.records import AwardedRound, Delivery, Evaluation, Evidence, Offer, Purse
    >>> auction, bids = Fair(), Bids.of({"ann": 1, "bob": 1, "cat": 2})
    >>> awarded = AwardedRound.of(Purse.of(total=10, max_rounds=5), Offer.recruit(2), auction.menu(bids))
    >>> seen = {"ann": Evidence(loss_before=2.0, loss_after=1.8), "bob": Evidence(loss_before=2.0, loss_after=1.0)}
    >>> auction.tell(awarded.settle(Delivery(Evaluation(0.5), seen)))
    >>> auction.quality(bids).round(2).tolist()  # cat, not seen yet, counts as the mean of those who were
    [0.2, 1.0, 0.6]
    """

    claims = CRITICAL_PAYMENTS

    def __init__(
        self,
        forgetting: Annotated[float, Within(above=0, at_most=1)] = 0.9,
        outliers: Annotated[float, Within(at_least=0)] = 6.0,
        least: Annotated[float, Within(at_least=0, below=1)] = 0.1,
        reserve: float | str | None = None,
    ) -> None:
        check_arguments(
            "mechanism 'fair'", Fair, forgetting=forgetting, outliers=outliers, least=least
        )
        self.requirements = Requirements(evidence=True, outliers=outliers or None, weights=True)
        self._rho = forgetting
        self._least = least
        self._reserve = reserve_price(reserve)
        self._forecasts: dict[str, _Forecast] = {}
        self._drops: dict[str, float] = {}  # what each of them comes to

    def menu(self, bids: Bids) -> Menu:
        """The critical-payment menu over the forecasts, among those worth anything."""
        return learned_menu(bids, self.quality(bids), self._least, self._reserve)

    def quality(self, bids: Bids) -> FloatArray:
        """The forecast of each client's quality, in the order of the bids."""
        drops = np.fromiter(self._drops.values(), float, len(self._drops))
        positive = drops[drops > 0]
        start = float(positive.mean()) if len(positive) else 1.0
        return np.asarray(sizes(bids) * by_client(bids, self._drops, start))

    def tell(self, record: RoundRecord) -> None:
        """Learn from the loss before and after of everyone who delivered."""
        for client, evidence in record.delivery.delivered.items():
            drop = loss_drop(evidence)
            if drop is not None:
                forecast = self._forecasts.setdefault(client, _Forecast())
                forecast.learn(drop, record.round, self._rho)
                self._drops[client] = forecast.value

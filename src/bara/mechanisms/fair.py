"""FAIR: an auction over quality, learned from what each client's training achieves."""

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np
from numpy.typing import NDArray

from bara.mechanisms._critical import reserve_price
from bara.mechanisms._learned import by_client, learned_menu, loss_drop, sizes, worthy
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.options import Within, check_arguments
from bara.protocols import Requirements
from bara.records import Bids, FloatArray, Menu, RoundRecord


@dataclass
class _Forecast:
    """The forecast of a client's loss drop: a mean over its rounds k that fades with age.

    Attributes:
        weighted: The sum of rho^(t - t_k) drop_k, where t is the client's last round.
        weights: The sum of rho^(t - t_k).
        round: t.
    """

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
    """An auction over learned quality per price, with critical payments and a filter of outliers.

    Deng et al. 2021 (INFOCOM), from its published ingredients. Quality in round t is q_i(t) = d_i
    max(loss before - loss after, 0), with the loss on the client's own data (the product form is
    our choice). The forecast fades with age: sum_k rho^(t - t_k) q_i(t_k) / sum_k rho^(t - t_k)
    over the client's rounds (recalled, not re-read). A client not seen yet counts as its data size
    times the mean drop of those seen: a cold start proportional to d_i. The auction is the
    critical-payment one over the forecasts.

    Our choices: updates are weighed by forecast; the filter for updates that are not ideal is a
    robust z-score of the distance to the coordinate-wise median, and a filtered update is void, so
    not paid; clients below `least` of the mean quality are left out of the auction. A free rider's
    loss does not drop: it scores 0 and stops winning.

    Args:
        forgetting: rho in (0, 1]; 1 forgets nothing.
        outliers: The robust deviations from which an update is refused; 0 refuses none.
        least: The share of the mean quality that a client must have to take part.
        reserve: The most that is paid for a unit of quality, in units of the budget; None for no
            limit.

    >>> from bara.records import AwardedRound, Delivery, Evaluation, Evidence, Offer, Purse
    >>> auction, bids = Fair(), Bids.of({"ann": 1, "bob": 1, "cat": 2})
    >>> purse = Purse.of(total=10, max_rounds=5)
    >>> awarded = AwardedRound.of(purse, Offer.recruit(2), auction.menu(bids))
    >>> ann = Evidence(loss_before=2.0, loss_after=1.8)
    >>> bob = Evidence(loss_before=2.0, loss_after=1.0)
    >>> delivery = Delivery(Evaluation(0.5), {"ann": ann, "bob": bob})
    >>> auction.tell(awarded.settle(delivery))
    >>> auction.quality(bids).round(2).tolist()  # cat, not seen yet, counts as their mean
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
        self._drops: dict[str, float] = {}  # the value of each forecast

    def menu(self, bids: Bids) -> Menu:
        """Return the critical-payment menu over the forecasts, without the worst clients."""
        return learned_menu(bids, self.quality(bids), self._least, self._reserve)

    def quality(self, bids: Bids) -> FloatArray:
        """Return the forecast of each client's quality, in the order of the bids."""
        drops = np.fromiter(self._drops.values(), float, len(self._drops))
        positive = drops[drops > 0]
        start = float(positive.mean()) if len(positive) else 1.0
        return np.asarray(sizes(bids) * by_client(bids, self._drops, start))

    def worthy(self, bids: Bids) -> NDArray[np.bool_]:
        """Return True for each client whose forecast suffices to take part."""
        return worthy(self.quality(bids), self._least)

    def tell(self, record: RoundRecord) -> None:
        """Learn from the losses before and after training of each client that delivered."""
        for client, evidence in record.delivery.delivered.items():
            drop = loss_drop(evidence)
            if drop is not None:
                forecast = self._forecasts.setdefault(client, _Forecast())
                forecast.learn(drop, record.round, self._rho)
                self._drops[client] = forecast.value

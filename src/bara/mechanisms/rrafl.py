"""RRAFL: a reverse auction over reputation."""

from typing import Annotated, final

from bara.mechanisms._critical import reserve_price
from bara.mechanisms._learned import by_client, learned_menu, loss_drop
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.options import Within, check_arguments
from bara.protocols import Requirements
from bara.records import Bids, FloatArray, Menu, RoundRecord


@final
class Rrafl:
    """An auction by reputation per price that pays for reputation at the first loser's unit price.

    Zhang et al. 2021 (WWW): unit reputation price b_i / R_i ascending, payment R_i (b / R)_next
    while the budget lasts: the critical-payment auction with q = R. How the paper updates
    reputation could not be recovered; ours is an exponential average of measured contributions,
    R <- (1 - s) R + s c, where c is a client's loss drop as a share of the round's best, 1 where
    losses are not measured, and 0 for a winner that did not deliver. The authors' later text wants
    a reputation that is easily lost and slowly won: set `rising` below `smoothing`.

    Args:
        smoothing: s in (0, 1].
        rising: s where the contribution is above the reputation; None for the same.
        start: The reputation of a client not seen yet, in (0, 1].
        least: The share of the mean reputation that a client must have to take part (our choice).
        reserve: The most that is paid for a unit of reputation, in units of the budget; None for no
            limit.

    >>> from bara.records import AwardedRound, Delivery, Evaluation, Evidence, Offer, Purse
    >>> auction, bids = Rrafl(), Bids.of({"ann": 1, "bob": 1, "cat": 2})
    >>> purse = Purse.of(total=10, max_rounds=5)
    >>> awarded = AwardedRound.of(purse, Offer.recruit(2), auction.menu(bids))
    >>> ann = Evidence(loss_before=2.0, loss_after=1.8)
    >>> bob = Evidence(loss_before=2.0, loss_after=1.0)
    >>> delivery = Delivery(Evaluation(0.5), {"ann": ann, "bob": bob})
    >>> auction.tell(awarded.settle(delivery))
    >>> auction.reputation(bids).round(2).tolist()  # all begin at 0.5
    [0.41, 0.65, 0.5]
    """

    claims = CRITICAL_PAYMENTS
    requirements = Requirements(evidence=True)

    def __init__(
        self,
        smoothing: Annotated[float, Within(above=0, at_most=1)] = 0.3,
        start: Annotated[float, Within(above=0, at_most=1)] = 0.5,
        least: Annotated[float, Within(at_least=0, below=1)] = 0.1,
        reserve: float | str | None = None,
        rising: Annotated[float | None, Within(above=0, at_most=1)] = None,
    ) -> None:
        check_arguments(
            "mechanism 'rrafl'", Rrafl, smoothing=smoothing, start=start, least=least, rising=rising
        )
        self._falling = smoothing
        self._rising = smoothing if rising is None else rising
        self._start = start
        self._least = least
        self._reserve = reserve_price(reserve)
        self._reputations: dict[str, float] = {}

    def menu(self, bids: Bids) -> Menu:
        """Return the critical-payment menu over reputations, which does not weigh updates."""
        menu = learned_menu(bids, self.reputation(bids), self._least, self._reserve)
        return Menu(menu.bids, menu.order, menu.costs, menu.pay, menu.exact)

    def reputation(self, bids: Bids) -> FloatArray:
        """Return each client's reputation, in the order of the bids."""
        return by_client(bids, self._reputations, self._start)

    def tell(self, record: RoundRecord) -> None:
        """Move each winner's reputation towards its contribution."""
        delivered = record.delivery.delivered
        drops = {client: loss_drop(evidence) for client, evidence in delivered.items()}
        best = max((drop for drop in drops.values() if drop), default=0.0)
        for client, drop in drops.items():
            if drop is None:
                contribution = 1.0
            elif best:
                contribution = drop / best
            else:
                contribution = 0.0
            self._learn(client, contribution)
        for client in record.delivery.failed:
            self._learn(client, 0.0)

    def _learn(self, client: str, contribution: float) -> None:
        before = self._reputations.get(client, self._start)
        smoothing = self._rising if contribution > before else self._falling
        self._reputations[client] = (1 - smoothing) * before + smoothing * contribution

"""A_FL: how many rounds a job takes is traded against what its clients ask."""

from typing import Annotated, Any, final

import numpy as np

from bara.mechanisms._critical import equal_menu, reserve_price
from bara.mechanisms._learned import by_client
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.plugins import Within, check_arguments
from bara.protocols import Requirements
from bara.records import Bids, Evidence, FloatArray, IntArray, Menu, RoundRecord

MOST_TRIED = 20
"""Numbers of rounds that are considered, however many clients there are."""


@final
class AFL:
    """Recruits the cheapest of those whose training is thorough enough, and pays the first loser's price.

    Zhou et al. 2021 (ICDCS) procure a whole job: for every number of rounds T they determine
    winners greedily, and keep the T of the least social cost, which is what the winners ask in all
    (from the abstract). Recalled, not re-read: a round needs K clients, the greedy order is price
    per round covered, payments are critical; and a client's training leaves a residue theta of its
    loss, of which T rounds bear T(theta) = 1 / (1 - theta), theta the worst winner's: T admits all
    with theta_i <= 1 - 1 / T. The paper knows no budget.

    Ours is what of this fits a round. Bids are for one round, so that all cover the same and the
    greedy winners are the K cheapest: the social cost of T is T times what they ask. theta_i is an
    average of loss after / loss before, as the server measures it; a client not seen yet counts as
    the best of those seen. T is chosen on the *last* round's
    prices: chosen on the same, it would not be truthful (a client that asks less can move T in its
        favour). Among those
    admitted the auction is bid price first.

    Args:
        clients: K; None for half of those who bid.
        smoothing: How much a client's latest residue counts in the average, in (0, 1].
        reserve: The most that is paid to a client, in units of the budget; None for no limit.

    >>> from bara.records import AwardedRound, Delivery, Evaluation, Evidence, Offer, Purse
    >>> auction, bids = AFL(), Bids.of({"ann": 1, "bob": 1, "cat": 2})
    >>> awarded = AwardedRound.of(Purse.of(total=10, max_rounds=5), Offer.recruit(2), auction.menu(bids))
    >>> seen = {"ann": Evidence(loss_before=2.0, loss_after=1.8), "bob": Evidence(loss_before=2.0, loss_after=1.0)}
    >>> auction.tell(awarded.settle(Delivery(Evaluation(0.5), seen)))
    >>> auction.residue(bids).tolist()  # the part of its loss that training leaves; cat's is not known yet
    [0.9, 0.5, 0.5]
    """

    claims = CRITICAL_PAYMENTS
    requirements = Requirements(evidence=True)

    def __init__(
        self,
        clients: Annotated[int | None, Within(at_least=1)] = None,
        smoothing: Annotated[float, Within(above=0, at_most=1)] = 0.3,
        reserve: float | str | None = None,
    ) -> None:
        check_arguments("mechanism 'a-fl'", AFL, clients=clients, smoothing=smoothing)
        self._clients = clients
        self._smoothing = smoothing
        self._reserve = reserve_price(reserve)
        self._residues: dict[str, float] = {}
        self._limit, self._round = (
            1.0,
            0,
        )  # the residue of the chosen T, and the round it was chosen on

    def menu(self, bids: Bids) -> Menu:
        """Bid price first among those the chosen T admits; the others' bids stay on it, for the next choice."""
        residues = self.residue(bids)
        return equal_menu(bids, self._reserve, (residues <= self._limit) & (residues < 1))

    def residue(self, bids: Bids) -> FloatArray:
        """theta_i of each client, in the order of the bids."""
        return by_client(bids, self._residues, min(self._residues.values(), default=0.0))

    def tell(self, record: RoundRecord) -> None:
        """Measure what training left of everyone's loss, and choose T for the next round."""
        for client, evidence in record.delivery.delivered.items():
            if (residue := _residue(evidence)) is not None:
                before = self._residues.get(client, residue)
                self._residues[client] = (1 - self._smoothing) * before + self._smoothing * residue
        if record.round > self._round:
            bids = record.awarded.bids
            needed = (len(bids) + 1) // 2 if self._clients is None else self._clients
            self._limit, self._round = (
                _least_social_cost(self.residue(bids), bids.prices, needed),
                record.round,
            )

    def memory(self) -> dict[str, Any]:
        """The T it chose on the last round's prices."""
        return {"limit": self._limit, "round": self._round}

    def restore(self, memory: dict[str, Any]) -> None:
        """Take T from there; residues are measured anew from the rounds."""
        self._limit, self._round = memory["limit"], memory["round"]


def _residue(evidence: Evidence) -> float | None:
    """The share of its loss that a client's training left, at most 1; None where it was not measured."""
    if evidence.loss_before is None or evidence.loss_after is None:
        return None
    share = evidence.loss_after / evidence.loss_before if evidence.loss_before > 0 else 1.0
    return share if 0 <= share < 1 else 1.0  # what is no number left everything


def _least_social_cost(residues: FloatArray, prices: IntArray, needed: int) -> float:
    """The theta whose T(theta) rounds of the K cheapest with theta_i <= theta ask least in all; 1 if none has a loser.

    Clients that are equal are admitted together. Among many residues, some evenly spread over the
    clients are tried.
    """
    order = np.argsort(residues)
    ranked, prices = residues[order], prices[order]
    ends = (
        np.flatnonzero(np.append(np.diff(ranked) > 0, True)[: len(ranked)]) + 1
    )  # how many each residue admits
    ends = ends[(ends > needed) & (ranked[ends - 1] < 1)]
    tried = ends[np.linspace(0, len(ends) - 1, min(len(ends), MOST_TRIED)).astype(int)]
    costs = [
        np.partition(prices[:end], needed - 1)[:needed].sum() / (1 - ranked[end - 1])
        for end in tried
    ]
    return float(ranked[tried[int(np.argmin(costs))] - 1]) if costs else 1.0

"""A_FL: an auction that trades the number of rounds of a job against what its clients ask."""

from typing import Annotated, Any, final

import numpy as np

from bara.mechanisms._critical import equal_menu, reserve_price
from bara.mechanisms._learned import by_client
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.options import Within, check_arguments
from bara.protocols import Requirements
from bara.records import Bids, Evidence, FloatArray, IntArray, Menu, RoundRecord

MOST_TRIED = 20
"""The most numbers of rounds considered, however many clients there are."""


@final
class AFL:
    """An auction among clients that train thoroughly: the cheapest win, at the first loser's price.

    Zhou et al. 2021 (ICDCS) procure a whole job: for every number of rounds T they determine
    winners greedily, and choose the T of the least social cost, which is what the winners ask in
    all (from the abstract). Recalled, not re-read: a round needs K clients, the greedy order is
    price per round covered, payments are critical; and a client's training leaves a residue theta
    of its loss, with which a job takes T(theta) = 1 / (1 - theta) rounds, theta being the worst
    winner's: T admits all with theta_i <= 1 - 1 / T. The paper knows no budget.

    Ours is the part of this that fits a single round. Bids are for one round, so all of them cover
    the same and the greedy winners are the K cheapest: the social cost of T is T times what they
    ask. theta_i is an average of loss after / loss before, as the server measures it; a client not
    seen yet counts as the best of those seen. T is chosen on the *last* round's prices: chosen on
    the current ones, it would not be truthful (a client that asks less can move T in its favour).
    Among the clients admitted, the auction is bid price first.

    Args:
        clients: K; None for half of those who bid.
        smoothing: How much a client's latest residue counts in the average, in (0, 1].
        reserve: The most that is paid to a client, in units of the budget; None for no limit.

    >>> from bara.records import AwardedRound, Delivery, Evaluation, Evidence, Offer, Purse
    >>> auction, bids = AFL(), Bids.of({"ann": 1, "bob": 1, "cat": 2})
    >>> purse = Purse.of(total=10, max_rounds=5)
    >>> awarded = AwardedRound.of(purse, Offer.recruit(2), auction.menu(bids))
    >>> ann = Evidence(loss_before=2.0, loss_after=1.8)
    >>> bob = Evidence(loss_before=2.0, loss_after=1.0)
    >>> delivery = Delivery(Evaluation(0.5), {"ann": ann, "bob": bob})
    >>> auction.tell(awarded.settle(delivery))
    >>> auction.residue(bids).tolist()  # the part of the loss that is left; cat's is not known
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
        self._limit = 1.0  # the residue of the chosen T
        self._round = 0  # the round that T was chosen on

    def menu(self, bids: Bids) -> Menu:
        """Return the menu of the clients that T admits, with all bids on record for the next T."""
        residues = self.residue(bids)
        return equal_menu(bids, self._reserve, (residues <= self._limit) & (residues < 1))

    def residue(self, bids: Bids) -> FloatArray:
        """Return theta_i of each client, in the order of the bids."""
        return by_client(bids, self._residues, min(self._residues.values(), default=0.0))

    def tell(self, record: RoundRecord) -> None:
        """Learn what training left of each client's loss, and choose T for the next round."""
        for client, evidence in record.delivery.delivered.items():
            residue = _residue(evidence)
            if residue is not None:
                before = self._residues.get(client, residue)
                self._residues[client] = (1 - self._smoothing) * before + self._smoothing * residue
        if record.round > self._round:
            bids = record.awarded.bids
            needed = (len(bids) + 1) // 2 if self._clients is None else self._clients
            self._limit = _least_social_cost(self.residue(bids), bids.prices, needed)
            self._round = record.round

    def memory(self) -> dict[str, Any]:
        """Return the T chosen on the last round's prices."""
        return {"limit": self._limit, "round": self._round}

    def restore(self, memory: dict[str, Any]) -> None:
        """Restore T; the residues come from the rounds, which are replayed afterwards."""
        self._limit = memory["limit"]
        self._round = memory["round"]


def _residue(evidence: Evidence) -> float | None:
    """Return the share of its loss that a client's training left, at most 1; None if unmeasured."""
    if evidence.loss_before is None or evidence.loss_after is None:
        return None
    if not evidence.loss_before > 0:
        return 1.0
    share = evidence.loss_after / evidence.loss_before
    return share if 0 <= share < 1 else 1.0  # a share that is not a number counts as 1


def _least_social_cost(residues: FloatArray, prices: IntArray, needed: int) -> float:
    """Return the theta whose T(theta) rounds of the K cheapest clients it admits ask least in all.

    It is 1 where no theta admits more than K clients, so that one of them loses. Clients of equal
    residues are admitted together. Of many residues, some evenly spread over the clients are tried.

    Args:
        residues: theta_i of each client.
        prices: The price of each client.
        needed: K.
    """
    order = np.argsort(residues)
    ranked = residues[order]
    prices = prices[order]
    is_last = np.append(np.diff(ranked) > 0, True)[: len(ranked)]
    admitted = np.flatnonzero(is_last) + 1  # the number of clients that each residue admits
    admitted = admitted[(admitted > needed) & (ranked[admitted - 1] < 1)]
    if not len(admitted):
        return 1.0
    some = np.linspace(0, len(admitted) - 1, min(len(admitted), MOST_TRIED)).astype(int)
    costs = []
    for count in admitted[some]:
        asked = np.partition(prices[:count], needed - 1)[:needed].sum()
        costs.append(asked / (1 - ranked[count - 1]))
    best = admitted[some][int(np.argmin(costs))]
    return float(ranked[best - 1])

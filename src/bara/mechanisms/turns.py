"""Turns: an auction in which a client counts for more the longer it has not been heard.

Where silos keep their prices, recruiting the cheapest recruits the same few in every round, and the
model never hears the others. Here quality is the age of what the server knows of a client, to a
power that follows from the prices themselves:

    q_i = age_i ^ (rho / 2)

Notation:
    age_i   rounds since client i last delivered, at least 1; for one that never has, N, or the
            rounds so far if they are more
    N       the number of clients that bid
    rho     how stable prices are, from 0 (redrawn every round) to 1 (the same in every round)

Redrawn prices make everybody the cheapest sooner or later, rho is near 0 and the cheapest win.
Stable prices have rho near 1: a client that asks four times as much has its turn after sixteen
times as many rounds.

Neither ages nor rho depend on this round's bids, so asking its cost is the best a client can do
within a round. Over a whole run it is not: who asks more has its turn later and is paid more then
(docs/prices.md has the figures, and what helps).
"""

from bisect import bisect_left
from dataclasses import replace
from typing import Any, final

import numpy as np

from bara.mechanisms._critical import capped_menu, critical_menu, reserve_price
from bara.mechanisms._learned import by_client
from bara.mechanisms.fair import Fair
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.protocols import Requirements
from bara.records import Bids, FloatArray, IntArray, Menu, RoundRecord

POWER = 0.5
"""The power of age at rho = 1; docs/prices.md has what other powers came to."""


_UNCHANGED = 1e-12
"""The variance of ranks below which floats alone make them differ."""


@final
class PriceRanks:
    """The stability of prices: the correlation between rounds of the ranks of what clients ask.

    A round's bids are ranked from 0 to 1. The intraclass correlation of all ranks (one-way analysis
    of variance with clients as groups) is 0 if prices are redrawn and 1 if the order of prices
    never changes. Ranks bound what a client can do by asking absurd prices, and every client counts
    alike, however often it bids: one of N that bid in most rounds moves the correlation by no more
    than about 3 / N. A client that bid once counts as if its price were redrawn.

    >>> ranks = PriceRanks()
    >>> for _ in range(3):
    ...     ranks.tell(Bids.of({"ann": 1, "bob": 2, "cat": 3}))
    >>> ranks.stability
    1.0
    """

    def __init__(self) -> None:
        self._clients: tuple[str, ...] = ()
        self._counts: FloatArray = np.zeros(0)
        self._sums: FloatArray = np.zeros(0)
        self._squares: FloatArray = np.zeros(0)

    def tell(self, bids: Bids) -> None:
        """Learn from the prices of a round."""
        if len(bids) < 2:
            return
        ranks = _ranks(bids.prices)
        if bids.clients == self._clients:
            self._counts += 1
            self._sums += ranks
            self._squares += np.square(ranks)
            return
        place = {client: i for i, client in enumerate(self._clients)}
        new = [client for client in bids.clients if client not in place]
        for client in new:
            place[client] = len(place)
        self._clients = (*self._clients, *new)
        self._counts = np.append(self._counts, np.zeros(len(new)))
        self._sums = np.append(self._sums, np.zeros(len(new)))
        self._squares = np.append(self._squares, np.zeros(len(new)))
        places = [place[client] for client in bids.clients]
        self._counts[places] += 1
        self._sums[places] += ranks
        self._squares[places] += np.square(ranks)

    @property
    def stability(self) -> float:
        """The intraclass correlation of the ranks, within [0, 1].

        0 until clients bid again; 1 if no rank ever changed, even where all prices are equal.
        """
        again = self._counts > 1
        if not again.any():
            return 0.0
        means = self._sums / self._counts
        spread = np.maximum(self._squares - self._sums * means, 0.0)
        overall = self._sums.sum() / self._counts.sum()
        redrawn = self._squares.sum() / self._counts.sum() - overall**2
        variances = np.where(again, spread / np.maximum(self._counts - 1, 1), redrawn)
        within = float(variances.mean())
        if within < _UNCHANGED:
            return 1.0
        own = float(means.var(ddof=1)) - within * float((1 / self._counts).mean())
        if own <= 0:
            return 0.0
        return own / (own + within)

    def memory(self) -> dict[str, Any]:
        """Return what was learned from prices."""
        return {
            "clients": list(self._clients),
            "counts": self._counts.tolist(),
            "sums": self._sums.tolist(),
            "squares": self._squares.tolist(),
        }

    def restore(self, memory: dict[str, Any]) -> None:
        """Restore what was learned from prices."""
        self._clients = tuple(memory["clients"])
        self._counts = np.array(memory["counts"], float)
        self._sums = np.array(memory["sums"], float)
        self._squares = np.array(memory["squares"], float)


def _ranks(prices: IntArray) -> FloatArray:
    """Return the rank of each price, from 0 to 1; equal prices share their mean rank."""
    _, place, counts = np.unique(prices, return_inverse=True, return_counts=True)
    middle = counts.cumsum() - counts / 2
    return np.asarray(middle[place] / len(prices))


@final
class Ages:
    """The quality of clients by how long they were not heard, as learned from settled rounds."""

    def __init__(self) -> None:
        self._heard: dict[str, int] = {}
        self._usual: tuple[str, ...] = ()  # the clients that bid last
        self._usual_heard: FloatArray = np.zeros(0)  # when they delivered last; 0 for never
        self._ranks = PriceRanks()
        self._learned = 0  # the last round whose prices are among the ranks
        self._round = 0

    @property
    def strength(self) -> float:
        """The power of age: half of how stable prices are."""
        return POWER * self._ranks.stability

    def quality(self, bids: Bids) -> FloatArray:
        """Return age_i ^ (rho / 2) of each client, in the order of the bids."""
        now = self._round + 1
        heard = self._usual_heard
        if bids.clients != self._usual:
            heard = by_client(bids, self._heard, 0.0)
        ages = np.where(heard > 0, now - heard, max(len(bids), now))
        return np.asarray(ages**self.strength)

    def tell(self, record: RoundRecord) -> None:
        """Learn who was heard, and what everybody asked."""
        self._round = record.round
        self._heard.update(dict.fromkeys(record.delivery.delivered, record.round))
        if record.round > self._learned:
            self._learned = record.round
            bids = record.awarded.bids
            self._ranks.tell(bids)
            self._note_usual(bids, record)

    def _note_usual(self, bids: Bids, record: RoundRecord) -> None:
        """Note when those who bid delivered last, so that millions need not be looked up again."""
        if bids.clients != self._usual:
            self._usual = bids.clients
            self._usual_heard = by_client(bids, self._heard, 0.0)
            return
        for client in record.delivery.delivered:
            self._usual_heard[bisect_left(bids.clients, client)] = record.round

    def memory(self) -> dict[str, Any]:
        """Return what was learned from bids."""
        return {"round": self._learned, "ranks": self._ranks.memory()}

    def restore(self, memory: dict[str, Any]) -> None:
        """Restore what was learned from bids; told rounds say who was heard."""
        self._learned = memory["round"]
        self._ranks.restore(memory["ranks"])


@final
class Turns:
    """The paper's auction over the age of what is known of a client (see the module).

    Args:
        quality: What is multiplied with the age: a column of the bids (`samples`, say), or `fair`
            for the loss drops that FAIR forecasts; None for age alone.
        reserve: The most that a winner is paid, in units of the budget; None for no limit. Clients
            that ask more are left out, and all others can be recruited together.

    >>> auction, bids = Turns(), Bids.of({"ann": 1, "bob": 2, "cat": 4})
    >>> menu = auction.menu(bids)  # as if the cheapest won, until prices are known
    >>> menu.cost(1), menu.cost(2)
    (2000000, 8000000)
    """

    claims = CRITICAL_PAYMENTS

    def __init__(self, quality: str | None = None, reserve: float | str | None = None) -> None:
        self._column: str | None = None
        self._fair: Fair | None = None
        self._reserve = reserve_price(reserve)
        self._ages = Ages()
        self.requirements = Requirements()
        if quality == "fair":
            self._fair = Fair()
            # The ages weigh who is recruited; FAIR's weights of the aggregate are left out.
            self.requirements = replace(self._fair.requirements, weights=False)
        elif quality is not None:
            self._column = quality
            self.requirements = Requirements(columns=(quality,))
        self.memory = self._ages.memory
        self.restore = self._ages.restore

    def menu(self, bids: Bids) -> Menu:
        """Return the critical-payment menu over the ages."""
        is_equal = self._column is None and self._fair is None
        if is_equal and not self._ages.strength:
            return critical_menu(bids, None, self._reserve)  # all ages count alike
        standing = self.standing(bids)
        admitted = None
        if self._fair is not None:
            admitted = self._fair.worthy(bids)
        if self._reserve is None:
            return critical_menu(bids, standing, admitted=admitted)
        return capped_menu(bids, standing, self._reserve, admitted)

    def standing(self, bids: Bids) -> FloatArray:
        """Return what each client counts for, in the order of the bids."""
        age = self._ages.quality(bids)
        if self._fair is not None:
            return np.asarray(age * self._fair.quality(bids))
        if self._column is not None:
            return np.asarray(age * bids.column(self._column))
        return age

    def tell(self, record: RoundRecord) -> None:
        """Learn who was heard, what it brought, and how stable prices are."""
        self._ages.tell(record)
        if self._fair is not None:
            self._fair.tell(record)

"""Standing prices: one price per client for the whole run, over which asking its cost is the best.

The first price that a client asks stands. Every client has a fee of its own in every round, which
its own price does not enter, and a turn in each round whose fee is at least its price:

    fee_i(t) = min(R, y_i / sqrt(u_i(t)))

Notation:
    b_i     i's standing price
    R       the reserve price, the most that a turn is paid
    u_i(t)  a number within (0, 1] that a rotation spreads evenly over rounds and over clients
    y_i     the scale of i's fees, from the money left and from what the *others* ask

So a price of b has a turn in a share (y_i / b)^2 of the rounds, and is paid 2 b - b^2 / R for it on
average: Myerson's payment for these shares. A turn that is not paid in its round (the offer is too
small, the client away or failing) is made up for later, at its own fee.

The scale y_i is the largest, on a grid, at which the money pays all turns even if i asked as little
as the cheapest of the others. Then all turns together cost no more than the money left, i's fees do
not depend on what i asks, and if all are paid by the end, asking its cost is a dominant strategy
for the whole run (docs/prices.md has the proof and what was measured).
"""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from bara.mechanisms._critical import check_reserve, price_of
from bara.mechanisms.properties import CRITICAL_PAYMENTS
from bara.protocols import Requirements
from bara.records import MICRO, Bids, FloatArray, IntArray, Menu, Purse, RoundRecord

_CIRCLE = 2**32
_ROTATION = 2_654_435_769
"""The golden section of the circle: multiples of it are spread as evenly as any."""

_SCALES = np.cumprod(np.full(1024, 63 / 64))
"""The grid of scales, in parts of the reserve price; plain products are the same on any machine."""

_MOST = 0.9
"""The share of the rounds in which a client has a turn at most: room to make up for others."""

_REST = 2
"""How many rounds at the end have no new turns, for the same reason; a tenth of a short run."""

_CELLS = 2**20
"""How many fees are worked out at once."""


@dataclass
class _Plan:
    """Everybody's turns from one round on, and those that are due and not paid yet.

    Attributes:
        clients: The clients with a standing price, sorted.
        terms: The budget and the deadline that the plan was made with.
        last: The last round in which anybody has a new turn.
        share: What a round may cost if all rounds may cost the same.
        top: The reserve price, in whole units.
        unit: The smallest amount that can be paid.
        scales: y_i of each client.
        least: The smallest fee that is a turn of each client.
        unpaid: For each client that has any, the turns that are due: the fee of each by its round.
    """

    clients: tuple[str, ...]
    terms: tuple[int, int]
    last: int
    share: int
    top: int
    unit: int
    scales: FloatArray
    least: IntArray
    unpaid: dict[str, dict[int, int]]

    @classmethod
    def of(cls, standing: dict[str, int], purse: Purse, reserve: int) -> Self:
        """Plan the rest of a run.

        Args:
            standing: The standing price of each client, at least one.
            purse: The purse before the first round of the plan.
            reserve: The reserve price.
        """
        clients = tuple(sorted(standing))
        prices = np.array([standing[client] for client in clients], np.int64)
        top = reserve - reserve % purse.unit
        cheapest = _cheapest_other(prices, top)
        plan = cls(
            clients,
            terms=(purse.total, purse.max_rounds),
            last=purse.max_rounds - min(_REST, purse.rounds_left // 10),
            share=purse.left // max(purse.rounds_left, 1),
            top=top,
            unit=purse.unit,
            scales=np.zeros(len(clients)),
            least=np.maximum(prices, cheapest),
            unpaid={},
        )
        plan.scales = plan.affordable(prices, cheapest, purse)
        plan.open(purse.round)
        return plan

    def affordable(self, prices: IntArray, cheapest: IntArray, purse: Purse) -> FloatArray:
        """Return y_i of each client; 0 where no scale on the grid is small enough.

        Args:
            prices: The standing prices.
            cheapest: The lowest price of the others, for each client.
            purse: The purse before the first round of the plan.
        """

        def pays_for(scale: float) -> NDArray[np.bool_]:
            """Return for each client whether the money is enough, whatever it may ask."""
            asked = self._spending(scale, prices, purse)
            at_worst = self._spending(scale, cheapest, purse)
            return np.asarray(asked.sum() - asked + at_worst <= purse.left)

        grid = self.top * np.append(1.0, _SCALES)
        low, high = 0, len(grid)
        while low < high:  # bisect for the largest scale that is affordable to anybody
            middle = (low + high) // 2
            if pays_for(grid[middle]).any():
                high = middle
            else:
                low = middle + 1
        scales = np.zeros(len(prices))
        for scale in grid[low:]:
            found = pays_for(scale) & (scales == 0)
            scales[found] = scale
            if scales.all():
                break
        return scales

    def _spending(self, scale: float, least: IntArray, purse: Purse) -> FloatArray:
        """Return what each client's turns would cost; whole numbers, exact below 2^53."""
        total = np.zeros(len(self.clients))
        for rounds in _blocks(purse.round, self.last, len(self.clients)):
            fees = self._fees(rounds, scale)
            total += np.where(fees >= least[:, None], fees, 0).sum(axis=1)
        return total

    def _fees(self, rounds: IntArray, scales: FloatArray | float) -> FloatArray:
        """Return everybody's fees (rows) in some rounds (columns)."""
        starts = np.arange(len(self.clients)) * _CIRCLE // len(self.clients)
        turned = (starts[:, None] + rounds * _ROTATION) % _CIRCLE
        spread = (turned + 1) / _CIRCLE
        units = np.floor(scales / np.sqrt(spread) / self.unit)
        fees = np.minimum(units * self.unit, self.top)
        return np.where(spread > _MOST, 0.0, fees)

    def open(self, number: int) -> None:
        """Add the turns of a round to those that are due."""
        if number > self.last:
            return
        fees = self._fees(np.array([number]), self.scales[:, None])[:, 0]
        for place in np.flatnonzero((fees > 0) & (fees >= self.least)).tolist():
            self.unpaid.setdefault(self.clients[place], {})[number] = int(fees[place])

    def turn(self, client: str) -> int:
        """Return the round of the turn that a client has now, its best paid one; 0 for none.

        If some turns are never paid, they are then those that a higher price gives up first. A fee
        beyond a round's share of the money comes last: it may wait long for an offer.
        """
        unpaid = self.unpaid.get(client, {})

        def worth(number: int) -> tuple[bool, int]:
            return unpaid[number] <= self.share, unpaid[number]

        return max(unpaid, key=worth, default=0)

    def close(self, client: str) -> None:
        """Take the turn that a client has now off those that are due."""
        del self.unpaid[client][self.turn(client)]

    def memory(self) -> dict[str, Any]:
        """Return the plan as a tree for JSON."""
        return vars(self) | {
            "scales": self.scales.tolist(),
            "least": self.least.tolist(),
            "unpaid": {client: list(turns.items()) for client, turns in self.unpaid.items()},
        }

    @classmethod
    def restored(cls, memory: dict[str, Any]) -> Self:
        """Return the plan that `memory` saved."""
        plan = cls(**memory)
        plan.clients = tuple(memory["clients"])
        plan.terms = (memory["terms"][0], memory["terms"][1])
        plan.scales = np.array(memory["scales"], float)
        plan.least = np.array(memory["least"], np.int64)
        plan.unpaid = {client: dict(turns) for client, turns in memory["unpaid"].items()}
        return plan


def _cheapest_other(prices: IntArray, reserve: int) -> IntArray:
    """Return for each client the lowest price of the others that is within the reserve, or 1."""
    within = np.flatnonzero(prices <= reserve)
    ranked = within[np.argsort(prices[within], kind="stable")]
    lowest = np.ones(len(prices), np.int64)
    if len(ranked):
        lowest[:] = prices[ranked[0]]
        lowest[ranked[0]] = prices[ranked[1]] if len(ranked) > 1 else 1
    return lowest


def _blocks(first: int, last: int, clients: int) -> list[IntArray]:
    """Return the rounds from `first` to `last`, so many at once that their fees fit in memory."""
    size = max(_CELLS // max(clients, 1), 1)
    blocks = []
    for start in range(first, last + 1, size):
        blocks.append(np.arange(start, min(start + size, last + 1), dtype=np.int64))
    return blocks


@final
class Standing:
    """A mechanism of turns, at fees that no client's own price enters, by standing prices.

    Until the first bids are settled everybody has a turn at the reserve price. Who bids later than
    others has its first turn in the round after, when the rest of the run is planned anew. A later
    bid does not change a standing price; it says whether the client takes the fee of its turn. Who
    asks more than that loses the turn.

    Args:
        reserve: The most that a turn is paid, in units of the budget; clients that ask more have
            no turns.

    >>> auction, bids = Standing(reserve=2), Bids.of({"ann": 1, "bob": 3, "cat": 2})
    >>> menu = auction.menu(bids)  # the first round
    >>> [menu.bids.clients[i] for i in menu.order], menu.cost(2)
    (['ann', 'cat'], 4000000)
    """

    claims = CRITICAL_PAYMENTS
    requirements = Requirements(standing=True)

    def __init__(self, reserve: float | str) -> None:
        self._reserve = price_of(reserve, "the reserve price")
        self._standing: dict[str, int] = {}
        self._plan: _Plan | None = None
        self._round = 0

    def menu(self, bids: Bids) -> Menu:
        """Return the menu of the clients that take the fee of their turn, the oldest turn first."""
        check_reserve(self._reserve, len(bids))
        fees, turns = self._turns(bids)
        takes = np.flatnonzero((fees > 0) & (bids.prices <= fees))
        preferred = bids.preference
        ranks = np.arange(len(bids)) if preferred is None else np.argsort(preferred)
        # A fee beyond a round's share waits for an offer that pays it, without keeping others back.
        waits = np.zeros(len(bids), bool) if self._plan is None else fees > self._plan.share
        order = takes[np.lexsort((ranks[takes], turns[takes], waits[takes]))]
        paid = fees[order]
        return Menu(bids, order, np.cumsum(paid), pay=lambda n, _cap: paid[:n])

    def fee(self, bids: Bids) -> FloatArray:
        """Return the fee of each client's turn in units of the budget; 0 for no turn now."""
        fees, _ = self._turns(bids)
        return fees / MICRO

    def _turns(self, bids: Bids) -> tuple[IntArray, IntArray]:
        """Return the fee of each client's turn (0 for no turn now), and the round it is due."""
        plan = self._plan
        fees = np.zeros(len(bids), np.int64)
        turns = np.zeros(len(bids), np.int64)
        if plan is None:
            return fees + self._reserve - self._reserve % bids.unit, turns
        for place, client in enumerate(bids.clients):
            number = plan.turn(client)
            if number:
                fees[place] = plan.unpaid[client][number]
                turns[place] = number
        return fees, turns

    def tell(self, record: RoundRecord) -> None:
        """Learn standing prices and which turns are over; plan where somebody or money is new."""
        if record.round <= self._round:
            return
        bids = record.awarded.bids
        self._end_turns(bids, record)
        self._round = record.round
        is_new = self._learn_prices(bids)
        purse = record.purse_after
        plan = self._plan
        terms = (purse.total, purse.max_rounds)
        if is_new or (plan is not None and plan.terms != terms):
            self._plan = _Plan.of(self._standing, purse, self._reserve)
        elif plan is not None:
            plan.open(purse.round)

    def _end_turns(self, bids: Bids, record: RoundRecord) -> None:
        """Close the turns that were paid, and those whose fee was not enough for their client."""
        plan = self._plan
        if plan is None:
            return
        fees, _ = self._turns(bids)
        declined = np.flatnonzero((fees > 0) & (bids.prices > fees))
        for client in [bids.clients[place] for place in declined]:
            plan.close(client)
        for client in record.delivery.delivered:
            plan.close(client)

    def _learn_prices(self, bids: Bids) -> bool:
        """Note the first price of each client; return whether there is anybody new."""
        if self._plan is not None and bids.clients == self._plan.clients:
            return False
        before = len(self._standing)
        for client, price in zip(bids.clients, bids.prices.tolist(), strict=True):
            self._standing.setdefault(client, price)
        return len(self._standing) > before

    def memory(self) -> dict[str, Any]:
        """Return all that was learned."""
        plan = None if self._plan is None else self._plan.memory()
        return {"round": self._round, "standing": self._standing, "plan": plan}

    def restore(self, memory: dict[str, Any]) -> None:
        """Restore all that was learned; rounds that are told again say nothing new."""
        self._round = memory["round"]
        self._standing = dict(memory["standing"])
        if memory["plan"] is not None:
            self._plan = _Plan.restored(memory["plan"])

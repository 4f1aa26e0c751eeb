"""The audit of whole runs: what a client gains by not asking its cost, all rounds together.

Within a round most mechanisms are truthful. Over a run they need not be: who loses now may be paid
more later. The audit plays small federations whose prices stay: once with everybody honest, and
once for every client and every trick, all else being equal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.protocols import Allocator, Mechanism, requirements_of
from bara.randomness import stream
from bara.records import Award, Bids, Delivery, Evaluation, Purse, RoundRecord
from bara.runs.session import Session
from bara.simulator.synthetic import LearningCurve, SyntheticFederation

CLIENTS = 8
ROUNDS = 60
PER_ROUND = 3
"""The budget of a round, in mean costs of a client."""


@dataclass(frozen=True)
class Trick:
    """A way not to ask one's cost in every round and to deliver.

    Attributes:
        name: What the client does, in words.
        asks: Returns the multiple of its cost that it asks in a round; None to stay away.
        delivers: Returns whether it delivers in a round that it wins.
        doubles: Whether it bids as two clients, each at the whole cost.
    """

    name: str
    asks: Callable[[int], float | None] = lambda _: 1.0
    delivers: Callable[[int], bool] = lambda _: True
    doubles: bool = False


def _asking(multiple: float) -> Trick:
    return Trick(f"asks {multiple:g} times its cost", lambda _: multiple)


TRICKS = (
    *map(_asking, (0.7, 1.1, 1.3, 1.6, 2.0, 3.0)),
    Trick("asks twice its cost in every other round", lambda number: 1.0 + number % 2),
    Trick("bids in every other round", lambda number: 1.0 if number % 2 else None),
    Trick("enters after a third of the run", lambda number: 1.0 if number > ROUNDS / 3 else None),
    Trick("fails on purpose in every third round", delivers=lambda number: number % 3 > 0),
    Trick("bids as two clients", doubles=True),
)
"""The tricks that are tried."""


@dataclass(frozen=True)
class RunFinding:
    """The gain of a trick over honesty.

    Gains are shares of what a client is paid in an honest run on average.

    Attributes:
        trick: The trick, in words.
        tried: How often it was tried: every client in every run.
        mean: The mean gain; negative for a loss.
        most: The largest gain of one client in one run.
        cost: The cost of that client, in parts of the mean cost.
    """

    trick: str
    tried: int
    mean: float
    most: float
    cost: float


def audit_runs(
    make_mechanism: Callable[[], Mechanism],
    make_allocator: Callable[[int, int], Allocator],
    runs: int = 3,
    seed: int = 0,
    currency: str | None = None,
) -> Iterator[RunFinding]:
    """Try every trick for every client, in federations of clients whose prices stay.

    Bids carry the columns that the mechanism requires: numbers that are drawn once per client.

    Args:
        make_mechanism: Makes a mechanism for one run.
        make_allocator: Makes an allocator for so many clients and a seed.
        runs: The number of federations.
        seed: The seed of the first; the others follow.
        currency: The currency whose smallest amount everybody asks and is paid in whole multiples;
            None for no currency.
    """
    seeds = range(seed, seed + runs)
    purse = Purse.of(PER_ROUND * ROUNDS, ROUNDS, currency=currency)
    columns = requirements_of(make_mechanism()).columns

    def play(number: int, trick: Trick | None = None, client: int = 0) -> "_Tricked":
        federation = _Tricked(number, trick, client, columns, purse.unit)
        allocator = make_allocator(CLIENTS, number)
        session = Session(allocator, make_mechanism(), federation)
        for step in session.rounds(purse):
            if isinstance(step, RoundRecord):
                federation.count_profits(step)
        return federation

    honest = {number: play(number) for number in seeds}
    for trick in TRICKS:
        gains = []
        costs = []
        for number in seeds:
            usual = honest[number]
            for client, name in enumerate(usual.clients):
                tricked = play(number, trick, client)
                gain = tricked.profits[name] - usual.profits[name]
                gains.append(gain / max(fmean(usual.payments.values()), 1))
                costs.append(usual.costs[name] / fmean(usual.costs.values()))
        best = int(np.argmax(gains))
        yield RunFinding(trick.name, len(gains), fmean(gains), gains[best], costs[best])


class _Tricked:
    """A synthetic federation in which one client may play a trick; it counts everybody's profit.

    Args:
        seed: The seed of the costs and of the learning curve's noise.
        trick: What the client does; None if it is honest.
        client: The position of the client.
        columns: The names of the columns that bids carry.
        unit: The step of prices, in micro-units.
    """

    def __init__(
        self, seed: int, trick: Trick | None, client: int, columns: Sequence[str], unit: int
    ) -> None:
        prices = Distribution.parse("uniform(0.5, 1.5)")
        bidders = Bidders(CLIENTS, prices, seed, stability=1, unit=unit)
        self._inner = SyntheticFederation(bidders, LearningCurve(), seed)
        self.capabilities = self._inner.capabilities
        self.clients = bidders.clients
        self.costs = dict(zip(bidders.clients, bidders.costs(1).tolist(), strict=True))
        self.payments = dict.fromkeys(bidders.clients, 0)
        self.profits = dict.fromkeys(bidders.clients, 0)
        self._trick = trick
        self._client = bidders.clients[client]
        self._double = f"{self._client} again"
        self._columns = {
            name: stream(seed, f"column {name}").uniform(0.1, 1, CLIENTS) for name in columns
        }

    def evaluate(self) -> Evaluation:
        return self._inner.evaluate()

    def bids(self, round: int) -> Bids:
        honest = replace(self._inner.bids(round), columns=self._columns)
        trick = self._trick
        if trick is None:
            return honest
        multiple = trick.asks(round)
        if multiple is None:
            return honest.without([self._client])
        price = int(honest.price_of(self._client) * multiple)
        price += -price % honest.unit
        bids = honest.replace_price(self._client, price)
        if not trick.doubles:
            return bids
        place = bids.clients.index(self._client)
        columns = {name: np.append(values, values[place]) for name, values in bids.columns.items()}
        clients = (*bids.clients, self._double)
        return Bids(clients, np.append(bids.prices, price), columns, bids.unit)

    def train(self, round: int, award: Award) -> Delivery:
        delivery = self._inner.train(round, award)
        if self._trick is None or self._trick.delivers(round):
            return delivery
        delivered = dict(delivery.delivered)
        void = dict(delivery.void)
        if delivered.pop(self._client, None) is not None:
            void[self._client] = "it did not answer"
        return replace(delivery, delivered=delivered, void=void)

    def count_profits(self, record: RoundRecord) -> None:
        """Add each payment less the cost of delivering."""
        for client, payment in record.payments.items():
            owner = self._client if client == self._double else client
            self.payments[owner] += payment
            self.profits[owner] += payment - self.costs[owner]

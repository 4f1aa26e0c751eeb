"""The audit of a mechanism: a search for counter-examples to its properties, claimed or not."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from bara.errors import InvalidRecordError, OverspentError
from bara.mechanisms.properties import (
    EVERY_PROPERTY,
    PROPERTIES,
    Case,
    CounterExample,
    in_words,
    profit,
    random_case,
)
from bara.protocols import Mechanism, requirements_of
from bara.records import (
    MICRO,
    AwardedRound,
    Bids,
    Delivery,
    Evaluation,
    Evidence,
    FloatArray,
    Offer,
    Purse,
    RoundRecord,
)
from bara.text import counted


@dataclass(frozen=True)
class AuditFinding:
    """The result of an audit for one property.

    Attributes:
        name: The name of the property.
        claimed: True if the mechanism promises it.
        trials: The number of rounds it was tried on.
        counter_example: The round in which it fails; None if it held in all of them.
        refused: True if that round is one that no run would award, whatever is claimed: a winner is
            paid nothing, or a payment is no whole number.
    """

    name: str
    claimed: bool
    trials: int
    counter_example: str | None
    refused: bool = False

    @property
    def broken(self) -> bool:
        """True for a promise that does not hold, and for an award that no run would make."""
        return self.refused or (self.claimed and self.counter_example is not None)


def audit(
    make: Callable[[], Mechanism],
    trials: int = 1000,
    seed: int = 0,
    names: Collection[str] = EVERY_PROPERTY,
    unit: int = 1,
) -> Iterator[AuditFinding]:
    """Try properties of a mechanism on random rounds, each up to its first counter-example.

    A mechanism is told of each round that it was tried on, so that what it learns is tried as well;
    after ten rounds a new one takes its place.

    Args:
        make: The function that makes a mechanism.
        trials: The number of rounds to try each property on.
        seed: The seed of the rounds.
        names: The properties to try.
        unit: The micro-units that every price is a multiple of.
    """
    mechanism = make()
    columns = columns_of(mechanism)
    for index, (name, check) in enumerate(PROPERTIES.items()):
        if name not in names:
            continue
        rng = np.random.default_rng((seed, index))
        fates = np.random.default_rng((seed, index, 1))
        tried = 0
        counter_example = None
        refused = False
        while counter_example is None and tried < trials:
            told = tried % _LIFE
            if told == 0:
                mechanism = make()
            tried += 1
            case = random_case(rng, columns, unit)
            try:
                found = check(mechanism, case)
                if found is None:
                    mechanism.tell(_settled(mechanism, case, told + 1, fates))
                    continue
            except (InvalidRecordError, OverspentError) as error:
                found = CounterExample(f"{error}; {in_words(case)}")
                refused = True
            counter_example = found.text
            if told:
                counter_example = f"after {counted(told, 'round')}, {found.text}"
        yield AuditFinding(name, name in mechanism.claims, tried, counter_example, refused)


_LIFE = 10
"""The number of rounds that one mechanism is tried on, and told of."""


def _settled(
    mechanism: Mechanism, case: Case, number: int, rng: np.random.Generator
) -> RoundRecord:
    """Return the case as a settled round: most winners deliver, some fail."""
    purse = replace(case.purse, round=number)
    awarded = AwardedRound.of(purse, case.offer, mechanism.menu(case.bids))
    delivered = {}
    void = {}
    for client in awarded.award.clients:
        if rng.random() < 0.2:
            void[client] = "it did not answer"
        else:
            before, after = rng.uniform(0, 2, 2)
            delivered[client] = Evidence(int(rng.integers(1, 100)), before, after)
    return awarded.settle(Delivery(Evaluation(rng.random()), delivered, void))


def columns_of(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the columns of bids that a mechanism is tried on: samples, and what it requires."""
    return tuple(dict.fromkeys(["samples", *requirements_of(mechanism).columns]))


_LIES = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0])
"""The multiples of its cost that a client tries to ask."""


@dataclass(frozen=True)
class Regret:
    """The gain from a client's best lie, in per cent of the mean cost of taking part.

    Attributes:
        mean: The mean over all clients and rounds; where no lie gains, it counts as 0.
        most: The largest of these gains.
        rounds: The number of rounds played.
    """

    mean: float
    most: float
    rounds: int


def regret(mechanism: Mechanism, rounds: int = 20, clients: int = 20, seed: int = 0) -> Regret:
    """Measure what clients gain by asking a multiple of their cost, in rounds as in the paper.

    Costs are from U(0.5, 1.5), times twice the privacy budget where there is one, which is from
    U(0.1, 1); the offer is a budget between a twentieth of all costs and all of them.

    Args:
        mechanism: The mechanism to measure.
        rounds: The number of rounds.
        clients: The number of clients in each.
        seed: The seed of costs, privacy budgets and offers.
    """
    rng = np.random.default_rng(seed)
    gains = np.concatenate([_gains(mechanism, rng, clients) for _ in range(rounds)])
    return Regret(100 * float(gains.mean()), 100 * float(gains.max()), rounds)


def _gains(mechanism: Mechanism, rng: np.random.Generator, clients: int) -> FloatArray:
    """Return the gain from each client's best lie in one round, as a share of the mean cost."""
    costs = rng.uniform(0.5, 1.5, clients)
    columns = {name: rng.uniform(0.1, 1, clients) for name in requirements_of(mechanism).columns}
    if "epsilon" in columns:
        costs *= 2 * columns["epsilon"]
    names = tuple(f"client-{i:02d}" for i in range(clients))
    bids = Bids(names, np.rint(costs * MICRO).astype(np.int64), columns)
    budget = int(bids.prices.sum() * rng.uniform(0.05, 1))
    offer = Offer.spend(budget)
    purse = Purse(budget, 1)

    def gain(client: str, cost: int, ask: int) -> int:
        menu = mechanism.menu(bids.replace_price(client, ask))
        return profit(menu.unweighed(offer, purse), client, cost)

    gains = []
    for client, cost in zip(names, bids.prices.tolist(), strict=True):
        best_lie = max(gain(client, cost, int(cost * lie)) for lie in _LIES)
        gains.append(max(0, best_lie) - gain(client, cost, cost))
    return np.array(gains).clip(0) / float(bids.prices.mean())

"""Tries a mechanism, a user's own included, against the properties it claims, and against the others."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from bara.mechanisms.properties import EVERY_PROPERTY, PROPERTIES, Case, profit, random_case
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
class Finding:
    """What an audit found about one property.

    Attributes:
        name: Which property.
        claimed: Whether the mechanism promises it.
        trials: In how many rounds it was looked for.
        counter_example: Where it fails, or None if it held in all of them.
    """

    name: str
    claimed: bool
    trials: int
    counter_example: str | None

    @property
    def broken(self) -> bool:
        """A promise that does not hold."""
        return self.claimed and self.counter_example is not None


def audit(
    make: Callable[[], Mechanism],
    trials: int = 1000,
    seed: int = 0,
    names: Collection[str] = EVERY_PROPERTY,
    unit: int = 1,
) -> Iterator[Finding]:
    """Try these properties on random rounds, with prices of so many micro-units; stop at a first counter-example.

    A mechanism is told of each round that it was tried on, so that what it learns is tried, too;
    after ten rounds a new one takes its place.
    """
    mechanism = make()
    columns = columns_of(mechanism)
    for index, (name, check) in enumerate(PROPERTIES.items()):
        if name not in names:
            continue
        rng, fates = np.random.default_rng((seed, index)), np.random.default_rng((seed, index, 1))
        tried, counter_example = 0, None
        while counter_example is None and tried < trials:
            told = tried % _LIFE
            mechanism = mechanism if told else make()
            tried += 1
            case = random_case(rng, columns, unit)
            if found := check(mechanism, case):
                counter_example = (f"after {counted(told, 'round')}, " if told else "") + found.text
            else:
                mechanism.tell(_settled(mechanism, case, told + 1, fates))
        yield Finding(name, name in mechanism.claims, tried, counter_example)


_LIFE = 10
"""Rounds that one mechanism is tried on, and told of."""


def _settled(
    mechanism: Mechanism, case: Case, number: int, rng: np.random.Generator
) -> RoundRecord:
    """The round as it might have ended: most winners deliver and learn, some fail."""
    awarded = AwardedRound.of(
        replace(case.purse, round=number), case.offer, mechanism.menu(case.bids)
    )
    delivered, void = {}, {}
    for client in awarded.award.clients:
        if rng.random() < 0.2:
            void[client] = "it did not answer"
        else:
            before, after = rng.uniform(0, 2, 2)
            delivered[client] = Evidence(int(rng.integers(1, 100)), before, after)
    return awarded.settle(Delivery(Evaluation(rng.random()), delivered, void))


def columns_of(mechanism: Mechanism) -> tuple[str, ...]:
    """What bids carry in the rounds that a mechanism is tried on."""
    return tuple({"samples": 0, **dict.fromkeys(requirements_of(mechanism).columns)})


_LIES = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0])


@dataclass(frozen=True)
class Regret:
    """What lying gains where it does, in per cent of what taking part costs a client on average.

    Attributes:
        mean: Over all clients and rounds, each with the best of its lies.
        most: The largest of them.
        rounds: How many rounds were looked at.
    """

    mean: float
    most: float
    rounds: int


def regret(mechanism: Mechanism, rounds: int = 20, clients: int = 20, seed: int = 0) -> Regret:
    """How much a client gains at most by asking a multiple of its cost, in rounds like those of the paper's market.

    Costs are from U(0.5, 1.5), times twice the privacy budget where there is one, which is from
    U(0.1, 1); the offer is a budget between a twentieth of all costs and all of them.
    """
    rng = np.random.default_rng(seed)
    gains = np.concatenate([_gains(mechanism, rng, clients) for _ in range(rounds)])
    return Regret(100 * float(gains.mean()), 100 * float(gains.max()), rounds)


def _gains(mechanism: Mechanism, rng: np.random.Generator, clients: int) -> FloatArray:
    costs = rng.uniform(0.5, 1.5, clients)
    columns = {name: rng.uniform(0.1, 1, clients) for name in requirements_of(mechanism).columns}
    costs *= 2 * columns["epsilon"] if "epsilon" in columns else 1
    names = tuple(f"client-{i:02d}" for i in range(clients))
    bids = Bids(names, np.rint(costs * MICRO).astype(np.int64), columns)
    budget = int(bids.prices.sum() * rng.uniform(0.05, 1))
    offer, purse = Offer.spend(budget), Purse(budget, 1)

    def gain(client: str, cost: int, ask: int) -> int:
        return profit(
            mechanism.menu(bids.replace_price(client, ask)).unweighed(offer, purse), client, cost
        )

    return np.array(
        [
            max(0, *(gain(client, cost, int(cost * lie)) for lie in _LIES))
            - gain(client, cost, cost)
            for client, cost in zip(names, bids.prices.tolist(), strict=True)
        ]
    ).clip(0) / float(bids.prices.mean())

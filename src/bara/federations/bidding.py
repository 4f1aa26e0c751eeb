"""Clients with private costs, and what they make of them when they bid."""

from dataclasses import dataclass

import numpy as np

from bara.errors import ConfigError
from bara.federations.costs import Distribution, PrivacyCosts
from bara.plugins import nearest, parse_call
from bara.randomness import stream
from bara.records import MICRO, Award, Bids, FloatArray, IntArray

TRUTHFUL = "truthful"
MOST_COST = 1e11
"""What no round of training costs; beyond, a price does not fit in 63 bits."""

STRATEGIES = (TRUTHFUL, "overbid", "learner")


def client_names(count: int) -> tuple[str, ...]:
    """client-00, client-01, ...: names that sort as they count.

    >>> client_names(3)
    ('client-0', 'client-1', 'client-2')
    """
    width = len(str(max(count - 1, 0)))
    return tuple(f"client-{i:0{width}d}" for i in range(count))


@dataclass(frozen=True)
class Strategy:
    """What a client asks, given what taking part costs it.

    `truthful` asks its cost; `overbid(0.2)` always 20 % more; `learner(0.05)` raises its markup by 5 % after every
    round it won and lowers it after every round it lost, never below its cost.
    """

    name: str = TRUTHFUL
    step: float = 0.0

    @classmethod
    def parse(cls, text: str) -> "Strategy":
        """Read `truthful`, `overbid(0.2)` or `learner(0.05)`."""
        name, arguments = parse_call(text, "a bidding strategy")
        if name not in STRATEGIES:
            raise ConfigError(f"no bidding strategy is named {name!r}; {nearest(name, list(STRATEGIES))}")
        default = {TRUTHFUL: 0.0, "overbid": 0.2, "learner": 0.05}[name]
        step = arguments[0] if arguments else default
        if len(arguments) > (name != TRUTHFUL) or not 0 <= step < 100:
            raise ConfigError(f"{text!r} is no strategy; required is {name!r} with at most one non-negative number")
        return cls(name, step)

    @property
    def first_markup(self) -> float:
        """What it multiplies its cost by before it has learned anything."""
        return 1 + self.step if self.name == "overbid" else 1.0

    def next_markup(self, markup: float, *, won: bool) -> float:
        """What it multiplies its cost by after a round."""
        if self.name != "learner":
            return markup
        return markup * (1 + self.step) if won else max(markup / (1 + self.step), 1.0)


class Bidders:
    """The clients of a federation as bidders: a cost each round, and a strategy.

    Args:
        count: How many clients.
        distribution: Where the costs of each round come from; with `PrivacyCosts` the bids carry privacy budgets.
        seed: Costs depend on nothing but (seed, round).
        strategic: The first so many clients play `strategy`; the others ask their cost.
        strategy: What the strategic ones do.
        samples: Each client's data size, if the server knows it; it travels with the bids.
        factors: What each client's costs are multiplied by; None for 1.
        drift: By what part all costs grow each round.
        absence_rate: The part of the time a client is away, ten rounds in a row, and does not bid.
    """

    ABSENCE = 10
    """Rounds that one who is away stays away."""

    def __init__(
        self,
        count: int,
        distribution: Distribution | PrivacyCosts,
        seed: int,
        *,
        strategic: int = 0,
        strategy: Strategy | None = None,
        samples: IntArray | None = None,
        factors: FloatArray | None = None,
        drift: float = 0.0,
        absence_rate: float = 0.0,
    ) -> None:
        self.clients = client_names(count)
        self.strategic = self.clients[:strategic]
        self._distribution = distribution
        self._seed = seed
        self._strategy = Strategy() if strategy is None else strategy
        self._markups: FloatArray = np.ones(count)
        self._markups[:strategic] = self._strategy.first_markup
        self._told = 0
        self._factors: FloatArray = np.ones(count) if factors is None else factors
        self._drift = drift
        self._absence_rate = absence_rate
        self._columns = {} if samples is None else {"samples": samples.astype(float)}
        if isinstance(distribution, PrivacyCosts):
            self._columns["epsilon"] = distribution.epsilons

    def costs(self, round: int) -> IntArray:  # noqa: A002 - a round is a round
        """What taking part in this round costs each client, in micro-units."""
        drawn = self._distribution.draw(stream(self._seed, "costs", round), len(self.clients))
        scaled = drawn * self._factors * (1 + self._drift) ** (round - 1)
        if not scaled.max() < MOST_COST:
            raise ConfigError(f"clients.bids draws a cost of {scaled.max():.3g}; required is below {MOST_COST:.0e}")
        return np.maximum(np.rint(scaled * MICRO), 1).astype(np.int64)

    def bids(self, round: int) -> Bids:  # noqa: A002
        """What each asks."""
        prices = np.ceil(self.costs(round) * self._markups_in(round)).astype(np.int64)
        return Bids(self.clients, prices, self._columns).without(self.away(round))

    def away(self, round: int) -> list[str]:  # noqa: A002
        """Who is not there this round."""
        drawn = stream(self._seed, "absence", round // self.ABSENCE).random(len(self.clients))
        return [client for client, value in zip(self.clients, drawn, strict=True) if value < self._absence_rate]

    def tell(self, round: int, award: Award) -> None:  # noqa: A002
        """Let the strategic ones learn whether they won."""
        self._markups = self._markups_in(round)
        self._told = round
        winners = set(award.clients) if self.strategic else ()
        for i, client in enumerate(self.strategic):
            self._markups[i] = self._strategy.next_markup(self._markups[i], won=client in winners)

    def _markups_in(self, round: int) -> FloatArray:  # noqa: A002
        """What each multiplies its cost by; a federation is not asked to train in a round that all have lost."""
        markups = self._markups.copy()
        for i in range(len(self.strategic)):
            for _ in range(self._told + 1, round):
                markups[i] = self._strategy.next_markup(markups[i], won=False)
        return markups

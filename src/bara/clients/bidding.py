"""Clients with private costs, and what they make of them when they bid."""

from dataclasses import dataclass

import numpy as np
import scipy

from bara.clients.costs import Distribution, PrivacyCosts
from bara.errors import ConfigError
from bara.plugins import nearest, parse_call
from bara.randomness import stream
from bara.records import MICRO, Award, Bids, FloatArray, IntArray

TRUTHFUL = "truthful"
MOST_COST = 1e11
"""What no round of training costs; beyond, a price does not fit in 63 bits."""

STRATEGIES = {TRUTHFUL: 0.0, "overbid": 0.2, "learner": 0.05, "equilibrium": 0.0}
"""What a client may do, each with its number unless that is given."""


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

    `truthful` asks its cost; `overbid(0.2)` always 20 % more; `learner(0.05)` raises its markup by
    5 % after every round it won and lowers it after every round it lost, never below its cost;
    `equilibrium(8)` asks what pays best at first price where the 8 cheapest win and everybody does
    the same (FMore's bidders).
    """

    name: str = TRUTHFUL
    step: float = 0.0

    @classmethod
    def parse(cls, text: str) -> "Strategy":
        """Read `truthful`, `overbid(0.2)`, `learner(0.05)` or `equilibrium(8)`."""
        name, arguments = parse_call(text, "a bidding strategy")
        if name not in STRATEGIES:
            raise ConfigError(
                f"no bidding strategy is named {name!r}; {nearest(name, list(STRATEGIES))}"
            )
        step = arguments[0] if arguments else STRATEGIES[name]
        if len(arguments) > (name != TRUTHFUL) or not 0 <= step < 100:
            raise ConfigError(
                f"{name} takes {'no number' if name == TRUTHFUL else 'at most one number, 0 to 100'}, got {text!r}"
            )
        if name == "equilibrium" and (step < 1 or step != int(step)):
            raise ConfigError(
                f"equilibrium must say how many win, a whole number from 1, like equilibrium(8), got {text!r}"
            )
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


def equilibrium_asks(
    distribution: Distribution, clients: int, winners: int
) -> tuple[FloatArray, FloatArray]:
    """Costs in ascending order, and what clients of these costs ask in the symmetric equilibrium at first price.

    Zeng et al. 2020 (FMore), after Che 1993, for clients of equal quality: with G(x) the
    probability that fewer than K of the N - 1 others cost less than x, a client of cost c asks c +
    integral of G from c up, divided by G(c).

    Args:
        distribution: Where everybody's costs come from; its upper end is that of 10,001 draws.
        clients: N.
        winners: K; with K of N or more everybody wins, and asks the upper end.
    """
    costs = np.sort(distribution.draw(np.random.default_rng(0), 10_001))
    wins = np.asarray(
        scipy.special.bdtr(min(winners, clients) - 1, clients - 1, np.linspace(0, 1, len(costs)))
    )
    areas = np.diff(costs) * (wins[1:] + wins[:-1]) / 2
    above = np.append(np.cumsum(areas[::-1])[::-1], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return costs, costs + np.where(wins > 0, above / wins, 0.0)


class Bidders:
    """The clients of a federation as bidders: a cost each round, and a strategy.

    Args:
        clients: How many clients, or their names.
        distribution: Where the costs of each round come from; with `PrivacyCosts` the bids carry
            privacy budgets.
        seed: Costs depend on nothing but (seed, round).
        strategic: The first so many clients play `strategy`; the others ask their cost.
        strategy: What the strategic ones do.
        samples: Each client's data size, if the server knows it; it travels with the bids.
        factors: What each client's costs are multiplied by; None for 1.
        drift: By what part all costs grow each round.
        absence_rate: The part of the time a client is away, ten rounds in a row, and does not bid.
        unit: What can be paid is a multiple of so many micro-units: who has another price asks the
            next one up.
    """

    ABSENCE = 10
    """Rounds that one who is away stays away."""

    def __init__(
        self,
        clients: int | tuple[str, ...],
        distribution: Distribution | PrivacyCosts,
        seed: int,
        *,
        strategic: int = 0,
        strategy: Strategy | None = None,
        samples: IntArray | None = None,
        factors: FloatArray | None = None,
        drift: float = 0.0,
        absence_rate: float = 0.0,
        unit: int = 1,
    ) -> None:
        self.clients = client_names(clients) if isinstance(clients, int) else clients
        count = len(self.clients)
        self.strategic = self.clients[:strategic]
        self._distribution = distribution
        self._seed = seed
        self._strategy = Strategy() if strategy is None else strategy
        self._markups: FloatArray = np.ones(count)
        self._markups[:strategic] = self._strategy.first_markup
        self._told = 0
        self._equilibrium = None
        if self._strategy.name == "equilibrium":
            if isinstance(distribution, PrivacyCosts):
                raise ConfigError(
                    "clients.strategy is equilibrium, but privacy budgets differ; expected equal clients"
                )
            self._equilibrium = equilibrium_asks(distribution, count, int(self._strategy.step))
        self._factors: FloatArray = np.ones(count) if factors is None else factors
        self._drift = drift
        self._absence_rate = absence_rate
        self._unit = unit
        self._columns = {} if samples is None else {"samples": samples.astype(float)}
        if isinstance(distribution, PrivacyCosts):
            self._columns["epsilon"] = distribution.epsilons

    def costs(self, round: int) -> IntArray:
        """What taking part in this round costs each client, in micro-units."""
        scaled = self._drawn(round) * self._factors * (1 + self._drift) ** (round - 1)
        if not scaled.max() < MOST_COST:
            raise ConfigError(
                f"clients.bids must draw costs below {MOST_COST:.0e}, got {scaled.max():.3g}"
            )
        return np.maximum(np.rint(scaled * MICRO), 1).astype(np.int64)

    def _drawn(self, round: int) -> FloatArray:
        return self._distribution.draw(stream(self._seed, "costs", round), len(self.clients))

    def bids(self, round: int) -> Bids:
        """What each asks."""
        prices = np.ceil(self.costs(round) * self._markups_in(round)).astype(np.int64)
        prices += -prices % self._unit
        return Bids(self.clients, prices, self._columns, self._unit).without(self.away(round))

    def away(self, round: int) -> list[str]:
        """Who is not there this round."""
        drawn = stream(self._seed, "absence", round // self.ABSENCE).random(len(self.clients))
        return [
            client
            for client, value in zip(self.clients, drawn, strict=True)
            if value < self._absence_rate
        ]

    def tell(self, round: int, award: Award) -> None:
        """Let the strategic ones learn whether they won."""
        self._markups = self._markups_in(round)
        self._told = round
        winners = set(award.clients) if self.strategic else ()
        for i, client in enumerate(self.strategic):
            self._markups[i] = self._strategy.next_markup(self._markups[i], won=client in winners)

    def _markups_in(self, round: int) -> FloatArray:
        """What each multiplies its cost by; a federation is not asked to train in a round that all have lost."""
        markups = self._markups.copy()
        for i in range(len(self.strategic)):
            for _ in range(self._told + 1, round):
                markups[i] = self._strategy.next_markup(markups[i], won=False)
        if self._equilibrium is not None:
            own = self._drawn(round)[: len(self.strategic)]
            markups[: len(own)] = np.maximum(np.interp(own, *self._equilibrium) / own, 1.0)
        return markups

"""Bidders: clients with private costs and the strategies by which they bid."""

from dataclasses import dataclass

import numpy as np
import scipy

from bara.clients.costs import Distribution, PrivacyCosts, price_shares
from bara.errors import ConfigError
from bara.plugins import parse_call
from bara.randomness import stream
from bara.records import MICRO, Award, Bids, FloatArray, IntArray
from bara.text import nearest

TRUTHFUL = "truthful"
MOST_COST = 1e11
"""The limit that every cost must stay below, so that a price in micro-units fits in 63 bits."""

STRATEGIES = {TRUTHFUL: 0.0, "overbid": 0.2, "learner": 0.05, "equilibrium": 0.0}
"""The strategies by name, each with the number it has unless another is given."""


def client_names(count: int) -> tuple[str, ...]:
    """Return the names client-00, client-01, ..., padded so that they sort by number.

    >>> client_names(3)
    ('client-0', 'client-1', 'client-2')
    """
    width = len(str(max(count - 1, 0)))
    return tuple(f"client-{i:0{width}d}" for i in range(count))


@dataclass(frozen=True)
class Strategy:
    """A rule by which a client turns its cost into the price it asks.

    A `truthful` client asks its cost; `overbid(0.2)` always asks 20 % more; `learner(0.05)` raises
    its markup by 5 % after every round it won and lowers it after every round it lost, never below
    its cost; `equilibrium(8)` asks what pays best in a first-price auction that the 8 cheapest win
    and in which every client bids this way (FMore's bidders).

    Attributes:
        name: One of `STRATEGIES`.
        step: The number in its parentheses: a markup, a learning step or the count of winners.
    """

    name: str = TRUTHFUL
    step: float = 0.0

    @classmethod
    def parse(cls, text: str) -> "Strategy":
        """Parse `truthful`, `overbid(0.2)`, `learner(0.05)` or `equilibrium(8)`."""
        name, arguments = parse_call(text, "a bidding strategy")
        if name not in STRATEGIES:
            raise ConfigError(
                f"no bidding strategy is named {name!r}; {nearest(name, list(STRATEGIES))}"
            )
        step = arguments[0] if arguments else STRATEGIES[name]
        most_arguments = 1
        allowed = "at most one number, 0 to 100"
        if name == TRUTHFUL:
            most_arguments = 0
            allowed = "no number"
        if len(arguments) > most_arguments or not 0 <= step < 100:
            raise ConfigError(f"{name} takes {allowed}, got {text!r}")
        if name == "equilibrium" and (step < 1 or step != int(step)):
            raise ConfigError(
                "equilibrium must say how many win, a whole number from 1, like equilibrium(8), "
                f"got {text!r}"
            )
        return cls(name, step)

    @property
    def first_markup(self) -> float:
        """The factor between price and cost in the first round."""
        return 1 + self.step if self.name == "overbid" else 1.0

    def next_markup(self, markup: float, *, won: bool) -> float:
        """Return the factor between price and cost after a round that the client won or lost."""
        if self.name != "learner":
            return markup
        if won:
            return markup * (1 + self.step)
        return max(markup / (1 + self.step), 1.0)


def equilibrium_asks(
    distribution: Distribution, clients: int, winners: int
) -> tuple[FloatArray, FloatArray]:
    """Return ascending costs and the prices asked at these costs in a first-price equilibrium.

    Zeng et al. 2020 (FMore), after Che 1993, for clients of equal quality: with G(x) the
    probability that fewer than K of the N - 1 others cost less than x, a client of cost c asks
    c + (the integral of G from c up) / G(c).

    Args:
        distribution: The distribution of every client's cost; its upper end is the largest of
            10,001 draws.
        clients: N, the number of clients.
        winners: K, the number of winners; with K >= N all clients win and ask the upper end.
    """
    costs = np.sort(distribution.draw(np.random.default_rng(0), 10_001))
    cheaper = np.linspace(0, 1, len(costs))  # the probability that another client's cost is lower
    wins = np.asarray(scipy.special.bdtr(min(winners, clients) - 1, clients - 1, cheaper))
    areas = np.diff(costs) * (wins[1:] + wins[:-1]) / 2
    above = np.append(np.cumsum(areas[::-1])[::-1], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return costs, costs + np.where(wins > 0, above / wins, 0.0)


class Bidders:
    """The clients of a federation as bidders: each has a cost every round, and a strategy.

    Args:
        clients: The number of clients, or their names.
        distribution: The source of the costs of each round; with `PrivacyCosts` the bids carry
            privacy budgets.
        seed: The seed of costs and absences, which depend on nothing but (seed, round).
        strategic: The number of clients, counted from the first, that follow `strategy`; the others
            ask their cost.
        strategy: The rule that strategic clients bid by; None for truthful.
        samples: Each client's data size, if the server knows it; it travels with the bids.
        factors: The number that each client's costs are multiplied by; None for 1.
        stability: How much of a cost is the client's own and stays: 0 if costs are redrawn every
            round, 1 if each client's is drawn once. In between, it is the correlation between two
            rounds of the normal scores that costs are drawn by; the distribution of all costs is
            the same for any stability.
        drift: The fraction by which all costs grow each round.
        absence_rate: The fraction of the time that a client is away, ten rounds in a row, and does
            not bid.
        unit: The step of payable prices in micro-units; other prices are rounded up to one.
    """

    ABSENCE = 10
    """The number of rounds that an absent client stays away."""

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
        stability: float = 0.0,
        drift: float = 0.0,
        absence_rate: float = 0.0,
        unit: int = 1,
    ) -> None:
        self.clients = client_names(clients) if isinstance(clients, int) else clients
        count = len(self.clients)
        self.strategic = self.clients[:strategic]
        self._distribution = distribution
        self._seed = seed
        self._strategy = strategy or Strategy()
        self._markups: FloatArray = np.ones(count)
        self._markups[:strategic] = self._strategy.first_markup
        self._told = 0
        self._equilibrium = None
        if self._strategy.name == "equilibrium":
            if isinstance(distribution, PrivacyCosts):
                raise ConfigError(
                    "clients.strategy is equilibrium, but privacy budgets differ; "
                    "expected equal clients"
                )
            self._equilibrium = equilibrium_asks(distribution, count, int(self._strategy.step))
        self._factors: FloatArray = np.ones(count) if factors is None else factors
        self._stability = stability
        self._drift = drift
        self._absence_rate = absence_rate
        self._unit = unit
        self.lacks: dict[str, str] = {}
        """What these clients cannot do for a mechanism (`bara.protocols.Capabilities`)."""
        is_constant = isinstance(distribution, Distribution) and distribution.name == "constant"
        if drift or (stability < 1 and not is_constant):
            self.lacks["standing"] = "set clients.stability = 1 and clients.drift = 0"
        self._columns: dict[str, FloatArray] = {}
        if samples is not None:
            self._columns["samples"] = samples.astype(float)
        if isinstance(distribution, PrivacyCosts):
            self._columns["epsilon"] = distribution.epsilons

    def costs(self, round: int) -> IntArray:
        """Return each client's cost of taking part in this round, in micro-units."""
        scaled = self._drawn(round) * self._factors * (1 + self._drift) ** (round - 1)
        if not scaled.max() < MOST_COST:
            raise ConfigError(
                f"clients.bids and clients.costs must make costs below {MOST_COST:.0e}, "
                f"got {scaled.max():.3g}"
            )
        return np.maximum(np.rint(scaled * MICRO), 1).astype(np.int64)

    def _drawn(self, round: int) -> FloatArray:
        """Draw each client's cost, before factors and drift."""
        count = len(self.clients)
        redrawn = stream(self._seed, "costs", round)
        if not self._stability:
            return self._distribution.draw(redrawn, count)
        own = stream(self._seed, "own costs").standard_normal(count)
        shares = price_shares(own, redrawn.standard_normal(count), self._stability)
        return self._distribution.quantiles(shares)

    def bids(self, round: int) -> Bids:
        """Return the bids of all clients that are present in this round."""
        prices = np.ceil(self.costs(round) * self._markups_in(round)).astype(np.int64)
        prices += -prices % self._unit
        return Bids(self.clients, prices, self._columns, self._unit).without(self.away(round))

    def away(self, round: int) -> list[str]:
        """Return the clients that are absent in this round."""
        drawn = stream(self._seed, "absence", round // self.ABSENCE).random(len(self.clients))
        return [self.clients[i] for i in np.flatnonzero(drawn < self._absence_rate)]

    def tell(self, round: int, award: Award) -> None:
        """Tell the strategic clients whether they won, so that they adapt their markups."""
        self._markups = self._markups_in(round)
        self._told = round
        if not self.strategic:
            return
        winners = set(award.clients)
        for i, client in enumerate(self.strategic):
            self._markups[i] = self._strategy.next_markup(self._markups[i], won=client in winners)

    def _markups_in(self, round: int) -> FloatArray:
        """Return each client's markup, counting every round since the last `tell` as lost.

        A federation does not train in a round that nobody won, so no `tell` arrives for it.
        """
        markups = self._markups.copy()
        for i in range(len(self.strategic)):
            for _ in range(self._told + 1, round):
                markups[i] = self._strategy.next_markup(markups[i], won=False)
        if self._equilibrium is not None:
            own = self._drawn(round)[: len(self.strategic)]
            markups[: len(own)] = np.maximum(np.interp(own, *self._equilibrium) / own, 1.0)
        return markups

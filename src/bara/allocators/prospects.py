"""Plans of every price for the rounds left, with the accuracy expected of each: what money buys.

A plan has a main phase and, perhaps, an end phase with more clients. Its price is known; its
outcome is drawn from the belief about the learning curve. A sum of money buys the best plan that
costs no more than that sum.
"""

import math

import numpy as np

from bara.allocators._plans import PREMIUMS
from bara.records import FloatArray, IntArray, Plan, Prospect, Purse
from bara.surrogates import Shapes, interval

ARMS = 10
"""The most numbers of clients that a plan chooses from."""

LENGTHS = 12
"""The number of lengths of the main phase."""

ENDS = (0, 1, 3, 8)
"""The lengths of the end phase, in rounds."""

PARTS = (0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0)
"""The parts of the money left for which the curve is computed."""

ENOUGH = 0.005
"""The accuracy below that of all the money which counts as just as good."""


class Prospects:
    """The plans of every price for the rounds left.

    Args:
        purse: The money and the rounds left.
        arms: The numbers of clients to choose from.
        costs: The expected cost of each.
        shapes: The learning curves that the task may have.
        real: The part of a round's luck that is the model's own and not its measurement's.

    Attributes:
        spend: The cost of each plan.
        means: The accuracy expected of each plan.
    """

    def __init__(
        self, purse: Purse, arms: IntArray, costs: FloatArray, shapes: Shapes, real: float = 1.0
    ) -> None:
        self._purse = purse
        self._shapes = shapes
        self._real = real
        some = _thinned(arms)
        self._arms = arms[some]
        self._costs = costs[some]
        self._plans = self._grid(np.unique(np.rint(np.geomspace(1, purse.rounds_left, LENGTHS))))
        self.spend = self._price(self._plans)
        self._finals = self._outcomes(self._plans)
        self.means = self._finals.mean(axis=1)

    def curve(self, kept: float) -> tuple[Prospect, ...]:
        """Return the accuracy to expect against the spend, from stopping now to twice the money.

        Args:
            kept: The accuracy of the model that the run would keep if it stopped now.
        """
        left = self._purse.left
        best = (kept, kept, kept)
        found = []
        for fraction in PARTS:
            affordable = np.flatnonzero(self.spend <= fraction * left)
            if len(affordable):
                plan = affordable[np.argmax(self.means[affordable])]
                if self.means[plan] > best[0]:
                    draws = np.maximum(self._finals[plan], kept)
                    best = (float(draws.mean()), *interval(draws))
            found.append(Prospect(self._purse.spent + int(fraction * left), *best))
        return tuple(found)

    def chances(self, level: float) -> FloatArray:
        """Return the probability that each plan brings the model to that level."""
        return np.asarray((self._finals >= level).mean(axis=1))

    def up_to(self, level: float) -> FloatArray:
        """Return the accuracy expected of each plan, capped at the level in every draw."""
        return np.asarray(np.minimum(self._finals, level).mean(axis=1))

    def frugal(self, values: FloatArray, slack: float) -> Plan | None:
        """Return the cheapest affordable plan of nearly the best value; None if none is affordable.

        Args:
            values: The value of each plan.
            slack: How far the plan's value may lie below the best one.
        """
        affordable = np.flatnonzero(self.spend <= self._purse.left)
        if not len(affordable):
            return None
        good = affordable[values[affordable] >= values[affordable].max() - slack]
        return self._told(self._plans[:, good[np.argmin(self.spend[good])]])

    def cheapest(self, level: float, sure: float, part: float = 1.0) -> Plan | None:
        """Return the cheapest plan that reaches a level, even one beyond the purse; None if none.

        Args:
            level: The accuracy to reach.
            sure: The probability with which the plan must reach it.
            part: The part of the rounds left within which the plan must be done.
        """
        plans = self._grid(np.array([math.ceil(part * self._purse.rounds_left)]), clip=True)
        i, j, end, most = plans
        needed = most
        for _ in range(2):  # the fewer rounds it takes, the less luck there is to be had in them
            lucky = np.array([i, j, end, np.ceil(np.minimum(needed, most))]).astype(int)
            rounds = self._shapes.rounds_to(
                level - self._luck(lucky), self._arms[i], self._arms[j], end
            )
            needed = np.quantile(rounds, sure, axis=1, method="higher")
        spend = np.where(needed <= most, needed * self._costs[i] + end * self._costs[j], math.inf)
        best = int(np.argmin(spend))
        if math.isinf(spend[best]):
            return None
        return self._told(np.array([i[best], j[best], end[best], math.ceil(needed[best])]))

    def cost(self, n: float) -> float:
        """Return the expected cost of n clients."""
        return float(np.interp(n, self._arms, self._costs))

    def _grid(self, lengths: FloatArray, *, clip: bool = False) -> IntArray:
        """Return plans as columns: the arms of main and end phase, the rounds of end and main.

        Without an end phase, both arms are the same.

        Args:
            lengths: The lengths of the main phase to consider.
            clip: Shorten a main phase that leaves no room for the end phase.
        """
        many = range(len(self._arms))
        left = self._purse.rounds_left
        axes = np.meshgrid(many, many, ENDS, lengths, indexing="ij")
        grid = np.stack([axis.ravel() for axis in axes]).astype(int)
        if clip:
            grid[3] = np.minimum(grid[3], left - grid[2])
        i, j, end, rounds = grid
        fits = (rounds + end <= left) & (rounds >= 0)
        grows = np.where(end > 0, j > i, j == i)
        return np.asarray(grid[:, fits & grows])

    def _price(self, plans: IntArray) -> FloatArray:
        i, j, end, rounds = plans
        return np.asarray(rounds * self._costs[i] + end * self._costs[j])

    def _outcomes(self, plans: IntArray) -> FloatArray:
        """Return the final accuracy of each plan in each draw: the best of its last rounds."""
        i, j, end, rounds = plans
        finals = self._shapes.after(self._arms[i], rounds, self._arms[j], end)
        return np.asarray((finals + self._luck(plans)[:, None]).clip(0, 1))

    def _luck(self, plans: IntArray) -> FloatArray:
        """Return by how much the best of the last rounds is above their mean."""
        _, j, end, rounds = plans
        window = np.where(end > 0, end, rounds).clip(max=len(PREMIUMS) - 1)
        return np.asarray(self._real * self._shapes.deviation(self._arms[j]) * PREMIUMS[window])

    def _told(self, plan: IntArray) -> Plan:
        column = plan[:, None]
        i, j, end, rounds = plan.tolist()
        finals = self._outcomes(column)[0]
        low, high = interval(finals)
        return Plan(
            main_n=int(self._arms[i]),
            main_rounds=float(rounds),
            end_n=int(self._arms[j]),
            end_rounds=end,
            spend=int(self._price(column)[0]),
            accuracy=float(finals.mean()),
            low=low,
            high=high,
        )


def enough(prospects: tuple[Prospect, ...], money: int) -> int:
    """Return the least spend that buys what the money does, but for half a point."""
    within = [one for one in prospects if one.spend <= money]
    return next(one.spend for one in within if one.accuracy >= within[-1].accuracy - ENOUGH)


def _thinned(arms: IntArray) -> IntArray:
    """Return the positions of the arms to consider, spaced more closely where n is small."""
    wanted = np.geomspace(arms[0], arms[-1], min(ARMS, len(arms)))
    return np.unique(np.abs(arms[:, None] - wanted).argmin(axis=0))

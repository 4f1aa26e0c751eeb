"""What money would buy: plans of every price for the rounds that are left, and what each is expected to come to.

A plan has a main phase and, perhaps, an end phase with more clients. Its price is known; what
becomes of it is drawn from what is believed of the learning curve. The best of those that cost no
more than a sum is what that sum buys.
"""

import math

import numpy as np

from bara.allocators._plans import PREMIUMS
from bara.records import FloatArray, IntArray, Plan, Prospect, Purse
from bara.surrogates import Shapes, interval

ARMS = 10
LENGTHS = 12
ENDS = (0, 1, 3, 8)
"""Rounds of the end phase."""

PARTS = (0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Parts of the money left at which the curve is told."""

ENOUGH = 0.005
"""How far below what all the money buys is as good as that."""


class Prospects:
    """Plans of every price.

    Args:
        purse: What is left.
        arms: Numbers of clients.
        costs: What each is expected to cost.
        shapes: What the learning curve may be.
        real: The part of a round's luck that is the model's own and not its measurement's.

    Attributes:
        spend: What each plan costs.
        means: The accuracy each is expected to come to.
    """

    def __init__(
        self, purse: Purse, arms: IntArray, costs: FloatArray, shapes: Shapes, real: float = 1.0
    ) -> None:
        self._purse, self._shapes, self._real = purse, shapes, real
        some = _thinned(arms)
        self._arms, self._costs = arms[some], costs[some]
        self._plans = self._grid(np.unique(np.rint(np.geomspace(1, purse.rounds_left, LENGTHS))))
        self.spend = self._price(self._plans)
        self._finals = self._outcomes(self._plans)
        self.means = self._finals.mean(axis=1)

    def curve(self, kept: float) -> tuple[Prospect, ...]:
        """What the run comes to if it costs so much in all: from stopping now to spending twice what is left."""
        spent, left = self._purse.spent, self._purse.left
        found, best = [], (kept, kept, kept)
        for part in PARTS:
            fine = np.flatnonzero(self.spend <= part * left)
            if len(fine) and self.means[plan := fine[np.argmax(self.means[fine])]] > best[0]:
                draws = np.maximum(self._finals[plan], kept)
                best = (float(draws.mean()), *interval(draws))
            found.append(Prospect(spent + int(part * left), *best))
        return tuple(found)

    def chances(self, level: float) -> FloatArray:
        """How likely each plan is to bring the model to that level."""
        return np.asarray((self._finals >= level).mean(axis=1))

    def up_to(self, level: float) -> FloatArray:
        """What each plan is expected to come to, where more than that level counts for nothing."""
        return np.asarray(np.minimum(self._finals, level).mean(axis=1))

    def frugal(self, values: FloatArray, slack: float) -> Plan | None:
        """The cheapest plan that the purse can pay and whose value is near the best one's; None where none can be."""
        fine = np.flatnonzero(self.spend <= self._purse.left)
        if not len(fine):
            return None
        fine = fine[values[fine] >= values[fine].max() - slack]
        return self._told(self._plans[:, fine[np.argmin(self.spend[fine])]])

    def cheapest(self, level: float, sure: float, part: float = 1.0) -> Plan | None:
        """The cheapest plan that brings the model to that level, so surely, whatever it costs.

        Args:
            level: The accuracy to come to.
            sure: How surely.
            part: Within which part of the rounds left.
        """
        plans = self._grid(np.array([math.ceil(part * self._purse.rounds_left)]), clip=True)
        i, j, end, most = plans
        needed = most
        for _ in range(2):  # the fewer rounds it takes, the less of luck is to be had in them
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
        """What so many clients are expected to cost."""
        return float(np.interp(n, self._arms, self._costs))

    def _grid(self, lengths: FloatArray, *, clip: bool = False) -> IntArray:
        """Rows: arms of the main and the end phase (the same where there is none), rounds of the end and the main."""
        many, left = range(len(self._arms)), self._purse.rounds_left
        grid = np.stack(
            [axis.ravel() for axis in np.meshgrid(many, many, ENDS, lengths, indexing="ij")]
        ).astype(int)
        if clip:
            grid[3] = np.minimum(grid[3], left - grid[2])
        i, j, end, rounds = grid
        keep = (rounds + end <= left) & (rounds >= 0) & np.where(end > 0, j > i, j == i)
        return np.asarray(grid[:, keep])

    def _price(self, plans: IntArray) -> FloatArray:
        i, j, end, rounds = plans
        return np.asarray(rounds * self._costs[i] + end * self._costs[j])

    def _outcomes(self, plans: IntArray) -> FloatArray:
        """What each plan comes to, by draw: the best of its last rounds."""
        i, j, end, rounds = plans
        finals = self._shapes.after(self._arms[i], rounds, self._arms[j], end)
        return np.asarray((finals + self._luck(plans)[:, None]).clip(0, 1))

    def _luck(self, plans: IntArray) -> FloatArray:
        """How much better the best of the last rounds is than their mean."""
        _, j, end, rounds = plans
        window = np.where(end > 0, end, rounds).clip(max=len(PREMIUMS) - 1)
        return np.asarray(self._real * self._shapes.deviation(self._arms[j]) * PREMIUMS[window])

    def _told(self, plan: IntArray) -> Plan:
        column = plan[:, None]
        i, j, end, rounds = (int(x) for x in plan)
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
    """What buys as much as the money does, but for half a point."""
    within = [one for one in prospects if one.spend <= money]
    return next(one.spend for one in within if one.accuracy >= within[-1].accuracy - ENOUGH)


def _thinned(arms: IntArray) -> IntArray:
    """Which arms to consider: the first, the last, and some between, the closer the fewer clients."""
    wanted = np.geomspace(arms[0], arms[-1], min(ARMS, len(arms)))
    return np.unique(np.abs(arms[:, None] - wanted).argmin(axis=0))

"""Plans for what is left of a run: a main phase, and an end phase.

Notation:
    n, R        clients in each round of the main phase, and how many rounds it has
    m, L        the same of the end phase
"""

from itertools import pairwise
from statistics import NormalDist

import numpy as np

from bara.records import Belief, FloatArray, IntArray, Offer, Plan, Purse
from bara.surrogates import Shapes, interval, progress

LENGTHS = 14
SHORT = 12
"""End phases up to so many rounds are all considered; of longer ones a few."""

REAL = 0.8
"""The part of a round's deviation from the curve that other data than those it was measured on would show, too."""

FINALE_SHARES = 4
"""The even shares that each round of a finale gets, as `Finale` has by default."""

MARGIN = 0.0005
"""The accuracy by which a plan must be better to count as better."""


def _premiums(most: int) -> FloatArray:
    """What choosing among 0, 1, 2, ... rounds of like noise is worth, one after the other, in deviations of it.

    Each is the expectation of the larger of a standard normal variable and the one before.
    """
    normal, values = NormalDist(), [0.0, 0.0]
    while len(values) <= most:
        values.append(values[-1] * normal.cdf(values[-1]) + normal.pdf(values[-1]))
    return np.array(values)


PREMIUMS = _premiums(10)


class Plans:
    """Every plan worth a thought for what is left, and what becomes of each.

    The end phase has a number of clients and a length; the main phase gets the rest of the money in
    even shares, over as many rounds as are left or as a number of clients can be paid for. The last
    plan is even with a finale.

    Args:
        purse: What is left.
        arms: Numbers of clients.
        costs: What each is expected to cost.
        shapes: What the learning curve may be.
    """

    def __init__(self, purse: Purse, arms: IntArray, costs: FloatArray, shapes: Shapes) -> None:
        self._purse, self._arms, self._costs, self._shapes = purse, arms, costs, shapes
        columns = np.concatenate([self._grid(), self._finale()], axis=1)
        self._n, self._rounds, self._end_n, self._end_rounds, self._share = columns
        self.finals = shapes.after(self._n, self._rounds, self._end_n, self._end_rounds)
        ending = np.where(self._end_rounds > 0, self._end_n, self._n)
        window = (
            np.where(self._end_rounds > 0, self._end_rounds, self._rounds)
            .clip(max=len(PREMIUMS) - 1)
            .astype(int)
        )
        self._values = self.finals.mean(axis=1) + REAL * shapes.deviation(ending) * PREMIUMS[window]

    def _grid(self) -> FloatArray:
        """Columns n, R, m, L and the money for each main round."""
        left, money, arms, costs = (
            self._purse.rounds_left,
            self._purse.left,
            self._arms,
            self._costs,
        )
        some = np.rint(np.geomspace(1, left, LENGTHS)).astype(int)
        lengths = np.unique(np.concatenate([np.arange(min(left, SHORT) + 1), some]))
        i, j, length = np.meshgrid(range(len(arms)), range(len(arms)), lengths, indexing="ij")
        rest = money - length * costs[j]
        rounds = np.minimum(left - length, np.maximum(rest, 0) // costs[i])
        share = np.where(rounds > 0, rest / np.maximum(rounds, 1), 0.0)
        n = np.where(rounds > 0, np.interp(share, costs, arms), 1.0)
        # An end phase that is larger and can be paid; or none, and a main phase.
        keep = np.where(
            length > 0, (rest >= 0) & ((n < arms[j]) | (rounds == 0)), (j == 0) & (rounds > 0)
        )
        keep[:-1] &= (
            rounds[:-1] != rounds[1:]
        )  # as many rounds are the same plan, whatever n they were counted with
        return np.stack([n, rounds, arms[j].astype(float), length, share])[:, keep]

    def _finale(self) -> FloatArray:
        left = self._purse.rounds_left
        length = min(max(self._purse.max_rounds // 20, 1), left)
        share = self._purse.left / (left - length + FINALE_SHARES * length)
        n, end_n = np.interp([share, FINALE_SHARES * share], self._costs, self._arms)
        return np.array([[n], [left - length], [end_n], [length], [share]])

    def best(self, margin: float) -> int:
        """The plan that is worth most; even with a finale unless another promises so much more."""
        best = int(np.argmax(self._values))
        return best if self._values[best] > self._values[-1] + margin else len(self._values) - 1

    def offer(self, plan: int, variation: float) -> Offer:
        """The first step of a plan: its share of the money, but never for so few clients that the round does harm.

        In the main phase more clients than planned may cost more than planned: by what their
        progress is worth at the plan's own price for progress, the marginal cost of the planned n.
        """
        if self._rounds[plan]:
            budget, n = self._share[plan] * variation, float(self._n[plan])
            caps = budget + self._worth_of_more(n).clip(0, budget / 4)
        else:
            budget, n = self._purse.left / self._end_rounds[plan], float(self._end_n[plan])
            caps = np.full(int(self._arms[-1]), budget)
        caps[: int(n) // 2] = 0
        return Offer.caps(np.minimum(caps, self._purse.left).astype(np.int64))

    def _worth_of_more(self, n: float) -> FloatArray:
        """For 1, 2, ... clients: what their progress beyond that of n is worth, in money."""
        many = np.arange(1, self._arms[-1] + 1)
        kappa, clients = float(self._shapes.kappa.mean()), self._shapes.clients
        below, above = max(n - 0.5, 1.0), n + 0.5
        cost = np.diff(np.interp([below, above], self._arms, self._costs))[0]
        gain = progress(above, clients, kappa) - progress(below, clients, kappa)
        if not gain > 0:
            return np.zeros(len(many))
        return np.asarray(
            (progress(many, clients, kappa) - progress(n, clients, kappa)) * cost / gain
        )

    def belief(self, plan: int, rng: np.random.Generator) -> Belief:
        """The plan, and for each n of the main phase the best that can be made of it."""
        mean = self.finals.mean(axis=1)
        edges = np.concatenate([[-np.inf], (self._arms[1:] + self._arms[:-1]) / 2, [np.inf]])
        tops = []
        for low, high in pairwise(edges):
            rows = np.flatnonzero((self._n > low) & (self._n <= high))
            tops.append(int(rows[np.argmax(mean[rows])]) if len(rows) else plan)
        n, rounds, end_n, end_rounds = (
            float(one[plan]) for one in (self._n, self._rounds, self._end_n, self._end_rounds)
        )
        noise = self._shapes.deviation(end_n if end_rounds else n)[0]
        finals = self.finals[plan] + noise * rng.standard_normal(self.finals.shape[1])
        low, high = interval(finals.clip(0, 1))
        spend = rounds * self._share[plan] + end_rounds * np.interp(end_n, self._arms, self._costs)
        return Belief(
            stage="plan",
            arms=tuple(int(n) for n in self._arms),
            mean=tuple(float(mean[row]) for row in tops),
            deviation=tuple(float(self.finals[row].std()) for row in tops),
            plan=Plan(
                main_n=round(n),
                main_rounds=rounds,
                end_n=round(end_n),
                end_rounds=int(end_rounds),
                spend=int(min(spend, self._purse.left)),
                accuracy=float(np.clip(mean[plan], low, high)),
                low=float(low),
                high=float(high),
            ),
        )

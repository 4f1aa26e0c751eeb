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
"""The number of lengths of an end phase, short ones apart."""

SHORT = 12
"""The longest end phase up to which every length is considered; of longer ones a few are."""

REAL = 0.8
"""The part of a round's deviation from the curve that other samples would show as well.

Plans assume it whatever the number of samples; `KeptModel.real` follows from that number.
"""

FINALE_SHARES = 4
"""The even shares that each round of a finale gets, as `Finale` has by default.

Other shapes of a finale changed the final accuracy by -0.7 ± 0.7 to -0.0 ± 0.4 points (development
suite, docs/results/finale-shapes.csv).
"""

MARGIN = 0.0005
"""The accuracy by which a plan must be better to count as better: a twentieth of a point.

On the way to a target (`benchmarks/measure_aims.py`, as in `_aims`), 0 reaches 88 % for 90 % and
0.005 reaches 46 % for 53 %, instead of 79 % for 84 %.
"""


def _premiums(most: int) -> FloatArray:
    """Return what choosing among 0, 1, 2, ... rounds of like noise gains, in its deviations.

    Each value is the expectation of the larger of a standard normal variable and the value before.
    """
    normal = NormalDist()
    values = [0.0, 0.0]
    while len(values) <= most:
        values.append(values[-1] * normal.cdf(values[-1]) + normal.pdf(values[-1]))
    return np.array(values)


PREMIUMS = _premiums(10)


class Plans:
    """The plans considered for the rest of a run, each with its outcome.

    The end phase has a number of clients and a length. The main phase gets the rest of the money in
    even shares, over all the rounds left, or over as many as a number of clients can be paid for.
    The last plan is even with a finale.

    Args:
        purse: The money and the rounds left.
        arms: The numbers of clients to choose from.
        costs: The expected cost of each.
        shapes: The learning curves that the task may have.
    """

    def __init__(self, purse: Purse, arms: IntArray, costs: FloatArray, shapes: Shapes) -> None:
        self._purse = purse
        self._arms = arms
        self._costs = costs
        self._shapes = shapes
        columns = np.concatenate([self._grid(), self._finale()], axis=1)
        self._n, self._rounds, self._end_n, self._end_rounds, self._share = columns
        self.finals = shapes.after(self._n, self._rounds, self._end_n, self._end_rounds)
        has_end = self._end_rounds > 0
        last_n = np.where(has_end, self._end_n, self._n)
        last_rounds = np.where(has_end, self._end_rounds, self._rounds)
        window = last_rounds.clip(max=len(PREMIUMS) - 1).astype(int)
        self._values = self.finals.mean(axis=1) + REAL * shapes.deviation(last_n) * PREMIUMS[window]

    def _grid(self) -> FloatArray:
        """Return rows of n, R, m, L and the money for each round of the main phase."""
        left = self._purse.rounds_left
        arms = self._arms
        costs = self._costs
        some = np.rint(np.geomspace(1, left, LENGTHS)).astype(int)
        lengths = np.unique(np.concatenate([np.arange(min(left, SHORT) + 1), some]))
        i, j, length = np.meshgrid(range(len(arms)), range(len(arms)), lengths, indexing="ij")
        rest = self._purse.left - length * costs[j]
        rounds = np.minimum(left - length, np.maximum(rest, 0) // costs[i])
        share = np.where(rounds > 0, rest / np.maximum(rounds, 1), 0.0)
        n = np.where(rounds > 0, np.interp(share, costs, arms), 1.0)
        # Either an end phase that is larger and can be paid, or none and a main phase.
        with_end = (rest >= 0) & ((n < arms[j]) | (rounds == 0))
        without_end = (j == 0) & (rounds > 0)
        chosen = np.where(length > 0, with_end, without_end)
        # As many main rounds make the same plan, whatever n they were counted with.
        chosen[:-1] &= rounds[:-1] != rounds[1:]
        return np.stack([n, rounds, arms[j].astype(float), length, share])[:, chosen]

    def _finale(self) -> FloatArray:
        left = self._purse.rounds_left
        length = min(max(self._purse.max_rounds // 20, 1), left)
        share = self._purse.left / (left - length + FINALE_SHARES * length)
        n, end_n = np.interp([share, FINALE_SHARES * share], self._costs, self._arms)
        return np.array([[n], [left - length], [end_n], [length], [share]])

    def best(self, margin: float) -> int:
        """Return the most valuable plan if it beats even with a finale by the margin, else that."""
        best = int(np.argmax(self._values))
        if self._values[best] > self._values[-1] + margin:
            return best
        return len(self._values) - 1

    def offer(self, plan: int, variation: float) -> Offer:
        """Offer the first step of a plan: its share of the money, but nothing for too few clients.

        In the main phase more clients than planned may cost more than planned: by what their
        progress is worth at the plan's own price for progress, the marginal cost of the planned n.

        Args:
            plan: The position of the plan.
            variation: The factor by which to vary the share of the main phase.
        """
        if self._rounds[plan]:
            n = float(self._n[plan])
            budget = self._share[plan] * variation
            caps = budget + self._worth_of_more(n).clip(0, budget / 4)
        else:
            n = float(self._end_n[plan])
            budget = self._purse.left / self._end_rounds[plan]
            caps = np.full(int(self._arms[-1]), budget)
        caps[: int(n) // 2] = 0
        return Offer.caps(np.minimum(caps, self._purse.left).astype(np.int64))

    def _worth_of_more(self, n: float) -> FloatArray:
        """Return what the progress of 1, 2, ... clients beyond that of n is worth, in money."""
        many = np.arange(1, self._arms[-1] + 1)
        kappa = float(self._shapes.kappa.mean())
        clients = self._shapes.clients
        below = max(n - 0.5, 1.0)
        above = n + 0.5
        cost = np.diff(np.interp([below, above], self._arms, self._costs))[0]
        gain = progress(above, clients, kappa) - progress(below, clients, kappa)
        if not gain > 0:
            return np.zeros(len(many))
        more = progress(many, clients, kappa) - progress(n, clients, kappa)
        return np.asarray(more * cost / gain)

    def belief(self, plan: int, rng: np.random.Generator) -> Belief:
        """Return the plan, and for each n of the main phase the outcome of its best plan."""
        mean = self.finals.mean(axis=1)
        edges = np.concatenate([[-np.inf], (self._arms[1:] + self._arms[:-1]) / 2, [np.inf]])
        tops = []
        for low, high in pairwise(edges):
            rows = np.flatnonzero((self._n > low) & (self._n <= high))
            if len(rows):
                tops.append(int(rows[np.argmax(mean[rows])]))
            else:
                tops.append(plan)
        n = float(self._n[plan])
        rounds = float(self._rounds[plan])
        end_n = float(self._end_n[plan])
        end_rounds = float(self._end_rounds[plan])
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

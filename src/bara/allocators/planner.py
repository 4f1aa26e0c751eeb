"""The planner: learns the learning curve online and replans every round what is left, money and rounds.

A round's progress depends only weakly on how many clients take part; the noise of selecting few is large, but only
the last rounds' noise is still in the final model. So cheap rounds first and large ones at the end are good value,
how much so depends on the task, and that is learned (`bara.surrogates.learning_curve`).

Notation:
    i, j    arms: n in the main phase and in the end phase
    L       rounds of the end phase
    R       rounds of the main phase: as many as money and deadline allow
    d       draws from the posterior
"""

import math

import numpy as np

from bara.allocators.arms import arms_of, check_clients
from bara.allocators.finale import Finale
from bara.randomness import stream
from bara.records import Belief, FloatArray, IntArray, Offer, Plan, Purse, RoundRecord
from bara.surrogates import LearningCurveBelief, Shapes, gap_left, progress, spread

ARMS = 24
DRAWS = 32
FIRST_ROUNDS = 4
"""Rounds before which there is nothing to plan on."""


class Planner:
    """Plans the whole rest of the run before every round, and plays the first step.

    Args:
        clients: N, the largest number of clients there may be.
        seed: Where draws from the posterior come from; a round's depend on nothing but (seed, round).
    """

    def __init__(self, clients: int, seed: int = 0) -> None:
        check_clients("planner", clients)
        self._clients = clients
        self._seed = seed
        self._arms = arms_of(clients, ARMS)
        self._costs = np.zeros(len(self._arms))
        self._menus = np.zeros(len(self._arms))
        self._curve: LearningCurveBelief | None = None
        self._belief = Belief(stage="even with a finale: nothing learned yet")
        self._planned: tuple[Purse, Offer] | None = None

    def ask(self, purse: Purse) -> Offer:
        """The first step of the plan."""
        if self._planned is not None and self._planned[0] == purse:
            return self._planned[1]
        return self._decide(purse)[0]

    def tell(self, record: RoundRecord) -> None:
        """Learn what n cost and what they taught, and plan what is left."""
        if record.round == 0:
            self._curve = LearningCurveBelief(self._clients, record.evaluation.accuracy)
            return
        costs = record.awarded.costs
        served = self._arms <= len(costs)
        self._costs[served] += costs[self._arms[served] - 1]
        self._menus[served] += 1
        if record.n and self._curve is not None:
            self._curve.tell(record.n, record.evaluation.accuracy)
        purse = record.purse_after
        if purse.rounds_left:
            offer, self._belief = self._decide(purse)
            self._planned = (purse, offer)

    def belief(self) -> Belief:
        """For each n of the main phase the final accuracy it expects, and the plan it follows."""
        return self._belief

    def _decide(self, purse: Purse) -> tuple[Offer, Belief]:
        known = self._menus > 0
        if self._curve is None or self._curve.rounds < FIRST_ROUNDS or not known.any():
            return Finale().ask(purse), Belief(stage="even with a finale: too few rounds to plan on")
        rng = stream(self._seed, "posterior", purse.round)
        shapes = self._curve.draw(rng, DRAWS)
        arms, costs = self._arms[known], self._costs[known] / self._menus[known]
        plans = _Plans(purse, arms, costs)
        finals = plans.finals(shapes, self._curve.initial, self._clients)
        best = int(np.argmax(finals.mean(axis=1)))
        return plans.offer(best, self._variation(purse)), plans.belief(best, finals)

    def _variation(self, purse: Purse) -> float:
        """Early rounds vary around the plan, so that the curve can be told apart from the noise."""
        fade = max(1 - purse.round / (0.4 * purse.max_rounds), 0.0)
        rng = stream(self._seed, "variation", purse.round)
        return math.exp(0.4 * fade * rng.uniform(-1, 1))


class _Plans:
    """Every plan for what is left: n in the main phase, n in the end phase, how long that is."""

    def __init__(self, purse: Purse, arms: IntArray, costs: FloatArray) -> None:
        rounds, money = purse.rounds_left, purse.left
        lengths = np.unique(np.rint(np.geomspace(1, rounds, 12)).astype(int))
        grid = np.meshgrid(range(len(arms)), range(len(arms)), [0, *lengths], indexing="ij")
        i, j, length = (axis.ravel() for axis in grid)
        rest = money - length * costs[j]
        main = np.minimum(rounds - length, rest / costs[i])
        # An end phase that is larger and can be paid, or none and a main phase of a round at least.
        keep = np.where(length > 0, (j > i) & (rest >= 0), (j == i) & (main >= 1))
        keep |= (length == 1) & (j == i) & (rest >= 0) & (main < 1)  # one last round
        self._i, self._j, self._length = (np.append(column[keep], 0) for column in (i, j, length))
        self._rest, self._rounds = np.append(rest[keep], money), np.append(main[keep], 0.0)  # the last plan: stop now
        self._purse, self._arms, self._costs = purse, arms, costs

    def finals(self, shapes: Shapes, initial: float, clients: int) -> FloatArray:
        """The final accuracy of every plan under every draw."""
        rho = progress(self._arms[:, None], clients, shapes.kappa)  # [arms, draws]
        apart = spread(self._arms, clients)[:, None]
        R, L = self._rounds[:, None], self._length[:, None]
        S = shapes.progress + R * rho[self._i] + L * rho[self._j]
        kept_main, kept_end = shapes.phi**R, shapes.phi**L
        E = kept_main * shapes.selection + (1 - kept_main) * apart[self._i]
        E = kept_end * E + (1 - kept_end) * apart[self._j]
        g = gap_left(S, shapes.s, shapes.p)
        return np.asarray(shapes.a_max - (shapes.a_max - initial) * g - shapes.delta * E)

    def offer(self, best: int, variation: float) -> Offer:
        """The first step of a plan: its share of the money, but never for so few clients that the round does harm."""
        rounds, length = self._rounds[best], int(self._length[best])
        if rounds >= 1:
            budget, n = self._rest[best] / rounds * variation, int(self._arms[self._i[best]])
        elif length:
            budget, n = self._purse.left / length, int(self._arms[self._j[best]])
        else:
            return Offer.stop()
        caps = np.full(int(self._arms[-1]), int(min(budget, self._purse.left)))
        caps[: n // 2] = 0
        return Offer.caps(caps)

    def belief(self, best: int, finals: FloatArray) -> Belief:
        """The plan, and for each n of the main phase the best that can be made of it."""
        mean = finals.mean(axis=1)
        per_arm = [np.flatnonzero(self._i == k) for k in range(len(self._arms))]
        tops = [int(rows[np.argmax(mean[rows])]) if len(rows) else len(mean) - 1 for rows in per_arm]
        low, high = np.quantile(finals[best], [0.05, 0.95])
        spend = self._rounds[best] * self._costs[self._i[best]] + self._length[best] * self._costs[self._j[best]]
        plan = Plan(
            main_n=int(self._arms[self._i[best]]),
            main_rounds=float(self._rounds[best]),
            end_n=int(self._arms[self._j[best]]),
            end_rounds=int(self._length[best]),
            spend=int(spend),
            accuracy=float(mean[best]),
            low=float(low),
            high=float(high),
        )
        return Belief(
            stage="plan",
            arms=tuple(int(n) for n in self._arms),
            mean=tuple(float(mean[row]) for row in tops),
            deviation=tuple(float(finals[row].std()) for row in tops),
            plan=plan,
        )

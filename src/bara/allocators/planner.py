"""The planner, which learns the learning curve online and plans the rest of the run every round.

A round's progress depends only weakly on how many clients take part. The noise of selecting few is
large, but only the last rounds' noise is still in the final model. So cheap rounds first and large
ones at the end are good value; how much so depends on the task, and is learned
(`bara.surrogates.learning_curve`).
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.allocators._aims import Aims, Outset
from bara.allocators._arms import arms_of, check_clients
from bara.allocators._kept import KeptModel
from bara.allocators._plans import MARGIN, Plans
from bara.allocators.finale import Finale
from bara.allocators.prospects import Prospects, enough
from bara.randomness import stream
from bara.records import Belief, Goal, MoneyOutlook, Offer, Purse, RoundRecord
from bara.surrogates import LearningCurveBelief, Shapes

BoolArray = NDArray[np.bool_]

ARMS = 24
"""The most numbers of clients that a plan chooses from."""

DRAWS = 48
"""The number of curves drawn from the posterior for a decision."""

FIRST_ROUNDS = 4
"""The number of rounds to see before the first plan."""

PATIENCE = 0.8
"""The weight of past surprises in their average, which covers about five rounds."""

MISFIT = 3.0
"""The root mean square of recent surprises, in deviations, above which the curve is distrusted."""


class Planner:
    """The default allocator: before every round it plans the rest of the run and plays one step.

    Args:
        clients: N, the largest number of clients there may be.
        seed: The seed of the draws from the posterior and of the early variation.
        goal: The goal of the spending; None for the best model that all the money can buy.

    >>> from bara.records import Evaluation, show_money
    >>> allocator, purse = Planner(clients=20), Purse.of(total=1500, max_rounds=200)
    >>> allocator.tell(RoundRecord.initial(purse, Evaluation(accuracy=0.1)))
    >>> show_money(allocator.ask(purse).budget), allocator.belief().stage
    ('6.521739', 'even with a finale: nothing learned yet')
    """

    goals = frozenset({"target", "worth"})
    """The kinds of goal that the planner can follow (`bara.protocols.check_goal`)."""

    def __init__(
        self,
        clients: int,
        seed: int = 0,
        goal: Goal | None = None,
    ) -> None:
        check_clients("planner", clients)
        self._clients = clients
        self._goal = goal or Goal()
        self._kept = KeptModel()
        self._aims = Aims(self._goal, clients)
        self._seed = seed
        self._arms = arms_of(clients, ARMS)
        self._costs = np.zeros(len(self._arms))
        self._menus = np.zeros(len(self._arms))
        self._priced = 0  # the last round whose menu was learned
        self._curve: LearningCurveBelief | None = None
        self._surprise = 1.0
        self._paid_all = True  # whether every round's share has paid somebody
        self._belief = Belief(stage="even with a finale: nothing learned yet")
        self._planned: tuple[Purse, Offer] | None = None

    def ask(self, purse: Purse) -> Offer:
        """Offer the first step of the plan."""
        if self._planned is not None and self._planned[0] == purse:
            return self._planned[1]
        return self._decide(purse)[0]

    def tell(self, record: RoundRecord) -> None:
        """Learn the costs and the progress of a round, and plan the rest of the run."""
        accuracy = record.evaluation.accuracy
        if record.round == 0:
            self._curve = LearningCurveBelief(self._clients, accuracy)
            self._aims.start(accuracy)
            return
        if not record.awarded.award.n:
            self._paid_all = False
        if record.n and self._curve is not None:
            expected = None
            if self._curve.rounds >= FIRST_ROUNDS:
                off = self._curve.surprise(record.n, accuracy)
                self._surprise = PATIENCE * self._surprise + (1 - PATIENCE) * off**2
                expected = self._curve.expected(record.n, 1)
            self._curve.tell(record.n, accuracy)
            self._kept.tell(record.evaluation, expected)
        self._aims.tell(record, knows_the_answer=record.round <= self._priced)
        purse = record.purse_after
        if purse.rounds_left:  # otherwise the last plan stands, with the costs it was made with
            self._learn_costs(record)
            offer, self._belief = self._decide(purse)
            self._planned = (purse, offer)
            self._aims.believe(self._belief.outlook, purse)

    def belief(self) -> Belief:
        """Return the final accuracy expected for each n of the main phase, and the plan."""
        return self._belief

    def memory(self) -> dict[str, Any]:
        """Return what cannot be learned from the rounds alone: costs, and an operator's answer."""
        return {
            "round": self._priced,
            "costs": self._costs.tolist(),
            "menus": self._menus.tolist(),
            "approved": self._aims.approved,
            "bidding": self._aims.most_bidding,
        }

    def restore(self, memory: dict[str, Any]) -> None:
        """Restore costs and answer; the rounds are replayed afterwards without their menus."""
        self._priced = memory["round"]
        self._costs = np.array(memory["costs"])
        self._menus = np.array(memory["menus"])
        self._aims.approved = memory.get("approved")
        self._aims.most_bidding = memory.get("bidding", 0)

    def _learn_costs(self, record: RoundRecord) -> None:
        """Add a menu to the mean costs, in which round k of t weighs k / t: prices may drift."""
        if record.round <= self._priced:
            return
        self._priced = record.round
        self._aims.most_bidding = max(self._aims.most_bidding, len(record.awarded.bids))
        costs = record.awarded.costs
        served = self._arms <= len(costs)
        fade = 1 - 1 / record.round
        self._costs[served] = fade * self._costs[served] + costs[self._arms[served] - 1]
        self._menus[served] = fade * self._menus[served] + 1

    def _decide(self, purse: Purse) -> tuple[Offer, Belief]:
        known = self._menus > 0
        if self._goal.name is not None:
            return self._towards_the_goal(purse, known)
        if self._curve is None or self._curve.rounds < FIRST_ROUNDS or not known.any():
            return self._first(purse)
        if self._surprise > MISFIT**2:
            return _default(purse, "what happened last does not fit the curve")
        # The same random numbers every round: plans change with what is learned, not with the draw.
        shapes = self._curve.draw(stream(self._seed, "posterior"), DRAWS)
        plans = Plans(purse, self._arms[known], self._costs[known] / self._menus[known], shapes)
        best = plans.best(MARGIN)
        outlook = self._prospects(purse, known, shapes).curve(self._kept.accuracy)
        belief = plans.belief(best, stream(self._seed, "noise", purse.round))
        belief = replace(belief, outlook=MoneyOutlook(outlook, enough(outlook, purse.total)))
        return plans.offer(best, self._variation(purse)), belief

    def _first(self, purse: Purse) -> tuple[Offer, Belief]:
        """Offer even shares with a finale; without one once a round's share has paid nobody.

        A finale would hold back what few rounds can be paid with.
        """
        if self._paid_all:
            return _default(purse, "too few rounds to plan on")
        stage = "even: a round's share has paid nobody, and is carried over"
        return Finale(rounds=0).ask(purse), Belief(stage=stage)

    def _towards_the_goal(self, purse: Purse, known: BoolArray) -> tuple[Offer, Belief]:
        if self._curve is None or self._curve.rounds < FIRST_ROUNDS or not known.any():
            return self._aims.first(purse, self._kept)
        shapes = self._curve.draw(stream(self._seed, "posterior"), DRAWS)
        prospects = self._prospects(purse, known, shapes)
        return self._aims.decide(Outset(purse, prospects, self._kept, self._variation(purse)))

    def _prospects(self, purse: Purse, known: BoolArray, shapes: Shapes) -> Prospects:
        return Prospects(
            purse,
            self._arms[known],
            self._costs[known] / self._menus[known],
            shapes,
            self._kept.real,
        )

    def _variation(self, purse: Purse) -> float:
        """Return a factor that varies early steps, to tell the curve from the noise."""
        fade = max(1 - purse.round / (0.4 * purse.max_rounds), 0.0)
        rng = stream(self._seed, "variation", purse.round)
        return math.exp(0.4 * fade * rng.uniform(-1, 1))


def _default(purse: Purse, why: str) -> tuple[Offer, Belief]:
    return Finale().ask(purse), Belief(stage=f"even with a finale: {why}")

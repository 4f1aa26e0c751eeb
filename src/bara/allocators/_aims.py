"""Decisions for a goal: reach a target cheaply, or go on while another point is worth its cost.

A target counts as reached once the planner is as sure as the goal asks that the *kept* model is
that accurate on samples other than those it was measured on (`bara.allocators._kept`). Until then
it plays the cheapest plan that brings the curve to the level at which it may be that sure. The
curve is learned along the way, and a plan that falls short can be mended later, at a price; so an
early plan need only be more likely than not to suffice, and a late one must be surer.

The constants were chosen together, on the development suite and on synthetic federations; the
report suite's 75 targets were then reached in 87 % for 21 % of the spend of `even` (docs/goals.md).
Except for GROWTH no record is left of how each was chosen. So each docstring says what
`benchmarks/measure_aims.py` measured afterwards, on 24 synthetic federations of 20 clients and 100
rounds: the constants as they are reach 79 % of the targets for 84 % of the spend of `even`, and one
constant at a time is varied. One target is 4 points, so small differences mean nothing.
"""

from dataclasses import dataclass, replace

from bara.allocators._kept import KeptModel
from bara.allocators._plans import FINALE_SHARES, MARGIN
from bara.allocators.prospects import Prospects
from bara.errors import ConfigError
from bara.records import (
    AwardedRound,
    Belief,
    Goal,
    MoneyOutlook,
    Offer,
    Plan,
    Purse,
    RoundRecord,
    decimal_money,
    tell_money,
)

FIRST_PART = 20
"""The first rounds recruit one in this many clients, as small rounds are the cheapest way up.

That holds where updates are remembered (docs/memory.md). Varied: 10 reaches 92 % for 86 %, 40
changes nothing (of 20 clients, both make one).
"""

HALF_WAY = 0.5
"""The part of the deadline by which n may grow to N.

What many clients would do is not known before it is tried, so until then a run neither stops nor
asks because its target looks out of reach. Varied: 0.25 reaches 88 % for 83 %, 1.0 reaches 17 % for
44 %.
"""

GROWTH = 4
"""The power of the time passed with which n may grow to N: early leaps cost much, later ones mend.

It was 2 at first: with 4, an easy target costs 1.43 instead of 1.61 times the cheapest constant n
in hindsight, and the report suite's targets are reached in 87 % for 21 % instead of 89 % for 22 %
(docs/goals.md, before and after the change). Varied: 2 reaches 92 % for 84 %, 8 reaches 71 % for
82 %.
"""

RECENT = 5
"""The most rounds over which n is averaged; a round recruits at most twice that average.

So the effect of more clients is seen before still more are recruited. Varied: 2 reaches 88 % for
85 %; 10 matters only beyond 100 rounds (see SPELL).
"""

SPELL = 20
"""A spell is one in this many of the deadline's rounds.

A goal is given up after a spell of doubtful rounds in a row, at least three. n is averaged over a
spell where that is shorter than RECENT. Varied: 10 reaches 83 % for 86 %, 40 reaches 83 % for 83 %.
"""

SLOW_START = 0.2
"""The part of the deadline in which a slow start looks like a curve that ends too low.

No goal is doubted in that time. Varied: 0.1 and 0.4 change nothing.
"""

FAR = 0.0025
"""The accuracy that may be given up for a cheaper plan once the target is out of reach.

Varied: 0 reaches 88 % for 91 %, 0.01 reaches 83 % for 78 %.
"""

IN_GOOD_TIME = 0.7
"""The part of the rounds left in which a plan must be done: curves flatten sooner than they seem.

Varied: 0.5 reaches 92 % for 89 %, 1.0 reaches 88 % for 82 %.
"""

DEARER = 1.5
"""The factor by which a round may cost more than expected: skipping expensive rounds costs time.

Varied: 1.0 reaches 71 % for 84 %, 3.0 reaches 79 % for 84 %.
"""


@dataclass(frozen=True)
class Outset:
    """The facts that a decision rests on.

    Attributes:
        purse: The money and the rounds left.
        prospects: The plans that money could buy.
        kept: The model that the run would keep if it ended now.
        variation: The factor by which to vary the planned number of clients, which teaches the
            effect of n.
    """

    purse: Purse
    prospects: Prospects
    kept: KeptModel
    variation: float


class Aims:
    """The decisions of a planner that has a goal.

    Args:
        goal: The target to reach, or the worth of a point of accuracy.
        clients: N, the largest number of clients there may be.
    """

    def __init__(self, goal: Goal, clients: int) -> None:
        self._goal = goal
        self._clients = clients
        self._doubts = 0  # consecutive decisions that saw no way to the goal
        self._recent_n = max(clients / FIRST_PART, 1.0)
        self._most_n = 0
        self._heard: set[str] = set()
        self._nothing_new = 0  # consecutive rounds in which nobody delivered for the first time
        self.most_bidding = 0  # the largest number of clients that bid in a round
        self.approved: bool | None = None  # the operator's answer, once one was asked

    def start(self, accuracy: float) -> None:
        """Refuse a target that the initial model has reached."""
        if self._goal.target is not None and accuracy >= self._goal.target:
            raise ConfigError(
                f"budget.target is {self._goal.target:g}, but the initial model reaches "
                f"{accuracy:.3g} already: there is nothing to pay for"
            )

    def tell(self, record: RoundRecord, *, knows_the_answer: bool) -> None:
        """Learn how many clients took part, and what an operator answered.

        Args:
            record: The settled round.
            knows_the_answer: The operator's answer was restored from memory; keep it.
        """
        delivered = set(record.delivery.delivered)
        if delivered:
            has_news = not delivered <= self._heard
            self._nothing_new = 0 if has_news else self._nothing_new + 1
            self._heard |= delivered
        if record.n:
            rounds = min(max(record.purse_after.max_rounds / SPELL, 1), RECENT)
            self._recent_n += (record.n - self._recent_n) / rounds
            self._most_n = max(self._most_n, record.n)
        asked = record.awarded.offer.asks is not None
        if asked and not knows_the_answer and _could_recruit(record.awarded):
            self.approved = record.awarded.award.n > 0

    def believe(self, outlook: MoneyOutlook | None, purse: Purse) -> None:
        """Count the consecutive decisions that saw no way to the goal."""
        if outlook is not None and self._doubtful(outlook, purse):
            self._doubts += 1
        else:
            self._doubts = 0

    def first(self, purse: Purse, kept: KeptModel) -> tuple[Offer, Belief]:
        """Offer few clients a few shares of the money, while nothing is known of the curve."""
        target = self._goal.target
        if target is not None:
            sure = kept.sure(target)
            if sure >= self._goal.confidence and not self._unheard:
                outlook = MoneyOutlook((), purse.spent, sure, sure)
                return self._reached(target, kept, outlook)
        share = purse.left // max(purse.rounds_left, 1)
        offer = Offer(limit=max(self._clients // FIRST_PART, 1), budget=FINALE_SHARES * share)
        stage = f"for the {self._goal.name}: few clients while nothing is known of the curve"
        return offer, Belief(stage=stage)

    def decide(self, outset: Outset) -> tuple[Offer, Belief]:
        """Return the next offer, and the belief it rests on."""
        if self._goal.target is None:
            return self._for_worth(outset)
        return self._for_target(self._goal.target, outset)

    def _for_target(self, target: float, outset: Outset) -> tuple[Offer, Belief]:
        purse = outset.purse
        prospects = outset.prospects
        confidence = self._goal.confidence
        level = outset.kept.level(target, confidence)
        affordable = prospects.spend <= purse.left
        needed = prospects.cheapest(level, confidence)
        sure = outset.kept.sure(target)
        outlook = MoneyOutlook(
            prospects.curve(outset.kept.accuracy),
            enough=None if needed is None else purse.spent + needed.spend,
            chance=float(prospects.chances(level)[affordable].max(initial=0.0)),
            sure=sure,
        )
        if sure >= confidence and not self._unheard:
            return self._reached(target, outset.kept, outlook)
        if sure >= confidence:
            return self._hear_more(target, outset, outlook)
        if self._gives_up(outlook, purse):
            return self._out_of_reach(target, outset, outlook)
        plan = prospects.cheapest(level, self._hedge(purse), IN_GOOD_TIME)
        if plan is None or plan.spend > purse.left:
            plan = prospects.frugal(prospects.up_to(level), MARGIN)
        belief = Belief("the cheapest way to the target", plan=plan, outlook=outlook)
        return self._play(plan, outset, belief)

    def _for_worth(self, outset: Outset) -> tuple[Offer, Belief]:
        purse = outset.purse
        prospects = outset.prospects
        kept = outset.kept.accuracy
        values = 100 * self._goal.worth * (prospects.means - kept) - prospects.spend
        plan = prospects.frugal(values, 0.0)
        enough = purse.spent
        if plan is not None and 100 * self._goal.worth * (plan.accuracy - kept) > plan.spend:
            enough += plan.spend
        outlook = MoneyOutlook(prospects.curve(kept), enough=enough)
        if self._gives_up(outlook, purse):
            worth = purse.show(self._goal.worth)
            why = f"one more point of accuracy would cost more than the {worth} it is worth"
            return _stop(why, outlook)
        belief = Belief("what is worth its cost", plan=plan, outlook=outlook)
        return self._play(plan, outset, belief)

    def _gives_up(self, outlook: MoneyOutlook, purse: Purse) -> bool:
        """Return True once enough consecutive decisions, this one included, saw no way."""
        enough_doubts = self._doubts + 1 >= max(purse.max_rounds // SPELL, 3)
        return enough_doubts and self._doubtful(outlook, purse)

    def _doubtful(self, outlook: MoneyOutlook, purse: Purse) -> bool:
        """Return True where the outlook shows no way to the goal, after a slow start at least."""
        if purse.round <= SLOW_START * purse.max_rounds:
            return False
        if outlook.chance is None:
            return outlook.enough is not None and outlook.enough <= purse.spent
        return outlook.chance < 1 - self._goal.confidence

    def _hedge(self, purse: Purse) -> float:
        """Return how sure a plan must be: the fewer rounds are left to mend it, the surer."""
        confidence = self._goal.confidence
        return confidence - (confidence - 0.5) * purse.rounds_left / purse.max_rounds

    @property
    def _unheard(self) -> int:
        """How many more clients must deliver before a target counts as reached."""
        needed = self._goal.min_clients
        if needed is None:
            needed = (self.most_bidding + 1) // 2
        return max(needed - len(self._heard), 0)

    def _hear_more(
        self, target: float, outset: Outset, outlook: MoneyOutlook
    ) -> tuple[Offer, Belief]:
        """Recruit as many as must still be heard, and twice as many each time nobody new is."""
        n = min(self._unheard * 2**self._nothing_new, self._clients)
        heard = f"{len(self._heard)} of {self.most_bidding} clients"
        stage = (
            f"the target of {_per_cent(target)} looks reached; {heard} were heard, and more must"
        )
        share = FINALE_SHARES * outset.purse.left / outset.purse.rounds_left
        return Offer(limit=n, budget=int(share)), Belief(stage, outlook=outlook)

    def _reached(
        self, target: float, kept: KeptModel, outlook: MoneyOutlook
    ) -> tuple[Offer, Belief]:
        """End the run, and say what that was decided on."""
        sure = outlook.sure or 0
        told = "over 99 %" if sure > 0.99 else _per_cent(sure)
        low, high = kept.interval
        measured = f"{_per_cent(kept.measured)} on validation"
        if low < high:
            measured += f", nine times in ten {_per_cent(low)} to {_per_cent(high)} on other data"
        heard = f"{len(self._heard)} of {self.most_bidding} clients heard"
        why = f"the target of {_per_cent(target)} is reached, {told} sure: {measured}; {heard}"
        return _stop(why, outlook)

    def _out_of_reach(
        self, target: float, outset: Outset, outlook: MoneyOutlook
    ) -> tuple[Offer, Belief]:
        purse = outset.purse
        outlook = replace(outlook, out_of_reach=True)
        plan = outset.prospects.frugal(outset.prospects.means, FAR)
        expected = outset.kept.accuracy
        if plan is not None:
            expected = max(plan.accuracy, expected)
        cure = "no budget would reach it by the deadline"
        if outlook.enough is not None:
            enough = tell_money(decimal_money(outlook.enough), purse.currency)
            cure = f"a budget of about {enough} would reach it"
        why = (
            f"the target of {_per_cent(target)} looks out of reach: {_per_cent(expected)} is "
            f"expected, and {cure}"
        )
        acts = purse.round > HALF_WAY * purse.max_rounds
        if (acts and self._goal.otherwise == "stop") or self.approved is False:
            return _stop(why, outlook)
        asks = why if acts and self._goal.otherwise == "ask" and self.approved is None else None
        belief = Belief(why, plan=plan, outlook=outlook)
        return self._play(plan, outset, belief, asks, self._untried(outset))

    def _untried(self, outset: Outset) -> int:
        """Return how many clients to try before believing the curve that more would not help.

        That is as many as an even share of the budget pays, at most twice the recent number; 1
        once so many have been tried.
        """
        share = outset.purse.total / outset.purse.max_rounds
        fair = 0
        for n in range(1, self._clients + 1):
            if outset.prospects.cost(n) <= share:
                fair += 1
        if self._most_n >= fair:
            return 1
        return int(min(2 * self._recent_n, fair))

    def _play(
        self,
        plan: Plan | None,
        outset: Outset,
        belief: Belief,
        asks: str | None = None,
        least: int = 1,
    ) -> tuple[Offer, Belief]:
        """Offer the first step of a plan; without a plan, one client at any price.

        Args:
            plan: The plan; None where the purse can pay for none.
            outset: The facts of the decision.
            belief: Returned with the offer.
            asks: The question that an operator must approve first; None to ask nothing.
            least: The fewest clients to recruit.
        """
        if plan is None:
            return Offer(limit=1, asks=asks), belief
        purse = outset.purse
        planned = plan.main_n if plan.main_rounds else plan.end_n
        growth = (purse.round / (HALF_WAY * purse.max_rounds)) ** GROWTH
        by_now = self._clients * max(1 / FIRST_PART, growth)
        n = round(min(planned * outset.variation, by_now, max(2 * self._recent_n, 1)))
        n = max(n, least, 1)
        expected = DEARER * outset.prospects.cost(n)
        # A leap that fails must not cost the whole run: a round costs no more than one of a finale.
        most = FINALE_SHARES * purse.left / purse.rounds_left
        return Offer(limit=n, budget=int(min(expected, most)), asks=asks), belief


def _could_recruit(awarded: AwardedRound) -> bool:
    """Return True where the offer could pay anybody on the menu.

    Where it could not, no award waited for an operator, and its emptiness is no answer.
    """
    for n, cost in enumerate(awarded.costs.tolist(), 1):
        if cost <= min(awarded.offer.cap(n), awarded.purse.left):
            return True
    return False


def _stop(why: str, outlook: MoneyOutlook) -> tuple[Offer, Belief]:
    return Offer.stop(why), Belief(f"stop: {why}", outlook=outlook)


def _per_cent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"

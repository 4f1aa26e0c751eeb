"""Decisions for a goal: the cheapest way to a target, or as far as the next point of accuracy is worth its cost.

A target counts as reached when it is as sure as was asked that the *kept* model is that accurate on
other samples than those it was measured on (`bara.allocators._kept`). Until then the cheapest plan
is played that brings the curve to the level at which one may be so sure. What the curve will be is
learned on the way, and a plan that falls short can be mended later, at a price; so at first a plan
need only be more likely than not to be enough, and the fewer rounds are left, the surer it must be.
"""

from dataclasses import dataclass, replace

from bara.allocators._kept import KeptModel
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
"""The first rounds recruit one in so many clients: what is remembered of few is the cheapest way up."""

HALF_WAY = 0.5
"""The part of the deadline up to which n may grow to N: what many clients would do is not known before it is tried,
and before that nobody stops, or is asked, because the target looks out of reach."""

GROWTH = 4
"""The power of the time passed with which n may grow to N: early leaps are dear, and later rounds can mend."""

RECENT, FEW_ROUNDS = 5, 20
"""Rounds over which n is averaged, fewer where the deadline is short: one in so many. At most twice as many are
recruited, and what that does is seen before more are."""

SLOW_START = 0.2
"""The part of the deadline in which nobody can tell a slow start from a curve that ends too low."""

DOUBTS = 20
"""The goal is given up when so many rounds in a row saw no way to it: one in so many of the deadline."""

NEAR, FAR = 0.0005, 0.0025
"""How far the cheapest plan may fall short of the best one where none is surely enough, and where none is at all."""

IN_GOOD_TIME = 0.7
"""The part of the rounds left in which a plan must be done: curves flatten sooner than they seem to."""

MOST_SHARES = 4
"""A round may cost so many even shares of what is left: a leap that does not come off must not cost the whole run."""

DEARER = 1.5
"""How much more than expected a round may cost: to let it pass because bids are dear costs time."""


@dataclass(frozen=True)
class Outset:
    """What a decision is made on.

    Attributes:
        purse: What is left.
        prospects: What it may buy.
        kept: The model that would be taken home now.
        variation: Which part of the planned clients to recruit, so that something is learned of the
            effect of n.
    """

    purse: Purse
    prospects: Prospects
    kept: KeptModel
    variation: float


class Aims:
    """Follows one goal.

    Args:
        goal: Which.
        clients: N, the largest number of clients there may be.
    """

    def __init__(self, goal: Goal, clients: int) -> None:
        self._goal = goal
        self._clients = clients
        self._doubts = 0
        self._recent_n = max(clients / FIRST_PART, 1.0)
        self._most_n = 0
        self.approved: bool | None = None  # what an operator answered, where one was asked

    def start(self, accuracy: float) -> None:
        """Refuse a target that the initial model has reached."""
        if self._goal.target is not None and accuracy >= self._goal.target:
            raise ConfigError(
                f"budget.target is {self._goal.target:g}, but the initial model reaches {accuracy:.3g} already: there "
                "is nothing to pay for"
            )

    def tell(self, record: RoundRecord, *, knows_the_answer: bool) -> None:
        """Learn how many took part, and, unless that is known, what an operator answered, where one was asked."""
        if record.n:
            rounds = min(max(record.purse_after.max_rounds / FEW_ROUNDS, 1), RECENT)
            self._recent_n += (record.n - self._recent_n) / rounds
            self._most_n = max(self._most_n, record.n)
        if (
            record.awarded.offer.asks is not None
            and not knows_the_answer
            and _could_recruit(record.awarded)
        ):
            self.approved = record.awarded.award.n > 0

    def believe(self, outlook: MoneyOutlook | None, purse: Purse) -> None:
        """Learn whether the last decision saw no way to the goal."""
        self._doubts = (
            self._doubts + 1 if outlook is not None and self._doubtful(outlook, purse) else 0
        )

    def first(self, purse: Purse, kept: KeptModel) -> tuple[Offer, Belief]:
        """Before anything is known of the curve: few clients, for a few shares of the money at most."""
        if (
            self._goal.target is not None
            and (sure := kept.sure(self._goal.target)) >= self._goal.confidence
        ):
            return self._reached(self._goal.target, MoneyOutlook((), purse.spent, sure, sure))
        share = purse.left // max(purse.rounds_left, 1)
        offer = Offer(limit=max(self._clients // FIRST_PART, 1), budget=MOST_SHARES * share)
        return offer, Belief(
            stage=f"for the {self._goal.name}: few clients while nothing is known of the curve"
        )

    def decide(self, outset: Outset) -> tuple[Offer, Belief]:
        """The next step, and what it is expected to lead to."""
        return (
            self._for_worth(outset)
            if self._goal.target is None
            else self._for_target(self._goal.target, outset)
        )

    def _for_target(self, target: float, outset: Outset) -> tuple[Offer, Belief]:
        purse, prospects, goal = outset.purse, outset.prospects, self._goal
        level = outset.kept.level(target, goal.confidence)
        chances = prospects.chances(level)
        needed = prospects.cheapest(level, goal.confidence)
        outlook = MoneyOutlook(
            prospects.curve(outset.kept.accuracy),
            enough=None if needed is None else purse.spent + needed.spend,
            chance=float(chances[prospects.spend <= purse.left].max(initial=0.0)),
            sure=(sure := outset.kept.sure(target)),
        )
        if sure >= goal.confidence:
            return self._reached(target, outlook)
        if self._gives_up(outlook, purse):
            return self._out_of_reach(target, outset, outlook)
        plan = prospects.cheapest(level, self._hedge(purse), IN_GOOD_TIME)
        if plan is None or plan.spend > purse.left:
            plan = prospects.frugal(prospects.up_to(level), NEAR)
        return self._play(
            plan, outset, Belief("the cheapest way to the target", plan=plan, outlook=outlook)
        )

    def _for_worth(self, outset: Outset) -> tuple[Offer, Belief]:
        purse, prospects, kept = outset.purse, outset.prospects, outset.kept.accuracy
        values = 100 * self._goal.worth * (prospects.means - kept) - prospects.spend
        plan = prospects.frugal(values, 0.0)
        pays = plan is not None and 100 * self._goal.worth * (plan.accuracy - kept) > plan.spend
        outlook = MoneyOutlook(
            prospects.curve(kept), enough=purse.spent + (plan.spend if plan and pays else 0)
        )
        if self._gives_up(outlook, purse):
            worth = purse.show(self._goal.worth)
            return _stop(
                f"one more point of accuracy would cost more than the {worth} it is worth", outlook
            )
        return self._play(
            plan, outset, Belief("what is worth its cost", plan=plan, outlook=outlook)
        )

    def _gives_up(self, outlook: MoneyOutlook, purse: Purse) -> bool:
        return self._doubts + 1 >= max(purse.max_rounds // DOUBTS, 3) and self._doubtful(
            outlook, purse
        )

    def _doubtful(self, outlook: MoneyOutlook, purse: Purse) -> bool:
        if purse.round <= SLOW_START * purse.max_rounds:
            return False
        if outlook.chance is None:
            return outlook.enough is not None and outlook.enough <= purse.spent
        return outlook.chance < 1 - self._goal.confidence

    def _hedge(self, purse: Purse) -> float:
        """How sure a plan must be to be enough: the fewer rounds are left to mend it, the surer."""
        return (
            self._goal.confidence
            - (self._goal.confidence - 0.5) * purse.rounds_left / purse.max_rounds
        )

    def _reached(self, target: float, outlook: MoneyOutlook) -> tuple[Offer, Belief]:
        sure = "over 99 %" if (outlook.sure or 0) > 0.99 else _per_cent(outlook.sure or 0)
        return _stop(f"the target of {_per_cent(target)} is reached, {sure} sure", outlook)

    def _out_of_reach(
        self, target: float, outset: Outset, outlook: MoneyOutlook
    ) -> tuple[Offer, Belief]:
        outlook = replace(outlook, out_of_reach=True)
        plan = outset.prospects.frugal(outset.prospects.means, FAR)
        expected = (
            outset.kept.accuracy if plan is None else max(plan.accuracy, outset.kept.accuracy)
        )
        cure = "no budget would reach it by the deadline"
        if outlook.enough is not None:
            cure = f"a budget of about {tell_money(decimal_money(outlook.enough), outset.purse.currency)} would reach it"
        why = f"the target of {_per_cent(target)} looks out of reach: {_per_cent(expected)} is expected, and {cure}"
        acts = outset.purse.round > HALF_WAY * outset.purse.max_rounds
        if (acts and self._goal.otherwise == "stop") or self.approved is False:
            return _stop(why, outlook)
        asks = why if acts and self._goal.otherwise == "ask" and self.approved is None else None
        return self._play(
            plan, outset, Belief(why, plan=plan, outlook=outlook), asks, self._untried(outset)
        )

    def _untried(self, outset: Outset) -> int:
        """How many to recruit before the curve is believed that nothing helps: as many as an even share would pay."""
        share = outset.purse.total / outset.purse.max_rounds
        fair = sum(outset.prospects.cost(n) <= share for n in range(1, self._clients + 1))
        return int(min(2 * self._recent_n, fair)) if self._most_n < fair else 1

    def _play(
        self,
        plan: Plan | None,
        outset: Outset,
        belief: Belief,
        asks: str | None = None,
        least: int = 1,
    ) -> tuple[Offer, Belief]:
        """The first step of a plan; where the purse cannot pay any, whatever it can."""
        if plan is None:
            return Offer(limit=1, asks=asks), belief
        planned = plan.main_n if plan.main_rounds else plan.end_n
        by_now = self._clients * max(
            1 / FIRST_PART, (outset.purse.round / (HALF_WAY * outset.purse.max_rounds)) ** GROWTH
        )
        n = max(
            round(min(planned * outset.variation, by_now, max(2 * self._recent_n, 1))), least, 1
        )
        most = MOST_SHARES * outset.purse.left / outset.purse.rounds_left
        return Offer(
            limit=n, budget=int(min(DEARER * outset.prospects.cost(n), most)), asks=asks
        ), belief


def _could_recruit(awarded: AwardedRound) -> bool:
    """Whether the offer could pay anybody of the menu; otherwise nobody was asked to approve anything."""
    caps = (min(awarded.offer.cap(n), awarded.purse.left) for n in range(1, len(awarded.costs) + 1))
    return any(cost <= cap for cost, cap in zip(awarded.costs.tolist(), caps, strict=True))


def _stop(why: str, outlook: MoneyOutlook) -> tuple[Offer, Belief]:
    return Offer.stop(why), Belief(f"stop: {why}", outlook=outlook)


def _per_cent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"

"""How much each constant of the planner's rule for targets matters: vary one at a time.

python benchmarks/measure_aims.py [PART]

Targets are played on synthetic federations of 20 clients and 100 rounds in which selecting few
clients costs little, as with a memory. A federation's target is the best accuracy that `even` shows
in the first PART of its rounds (0.75 unless given). Printed for each value: the part of the targets
that the kept model reaches, but for half a point, and the spend as a part of what `even` spends.
"""

import sys

import numpy as np

from bara.allocators import _aims
from bara.allocators.baselines import Even
from bara.allocators.planner import Planner
from bara.clients.bidding import Bidders
from bara.clients.costs import Distribution
from bara.mechanisms import bid_price_first
from bara.records import Goal, Purse, RoundRecord, taken_home
from bara.runs.session import Session
from bara.simulator.synthetic import LearningCurve, SyntheticFederation

FEDERATIONS = 24
NEAR = 0.005
VALUES = {
    "FIRST_PART": (10, 40),
    "HALF_WAY": (0.25, 1.0),
    "GROWTH": (2, 8),
    "RECENT": (2, 10),
    "SPELL": (10, 40),
    "SLOW_START": (0.1, 0.4),
    "MARGIN": (0.0, 0.005),
    "FAR": (0.0, 0.01),
    "IN_GOOD_TIME": (0.5, 1.0),
    "FINALE_SHARES": (2, 8),
    "DEARER": (1.0, 3.0),
}


def federation(number):
    rng = np.random.default_rng(number)
    curve = LearningCurve(
        a_max=rng.uniform(0.5, 0.95),
        s=float(np.exp(rng.uniform(np.log(4), np.log(40)))),
        p=rng.uniform(0.5, 1.2),
        kappa=rng.uniform(1, 8),
        delta=rng.uniform(0.02, 0.1),
        v_1=0.001,
    )
    bidders = Bidders(20, Distribution.parse("uniform(0.5, 1.5)"), number)
    return SyntheticFederation(bidders, curve, number, samples=1000)


def played(allocator, number):
    """The settled rounds."""
    session = Session(allocator, bid_price_first(), federation(number))
    steps = session.rounds(Purse.of(750, 100))
    return [step for step in steps if isinstance(step, RoundRecord)]


def kept_accuracy(records):
    """The accuracy that other samples show of the kept model."""
    evaluations = [one.evaluation for one in records]
    best = max(evaluations, key=lambda one: one.accuracy)
    models = {"final": evaluations[-1], "best": best}
    return models[taken_home(models)].reported_accuracy


def measured(even):
    """The part of the targets reached, and of `even`'s spend."""
    reached, spend = [], []
    for number, (target, spent) in even.items():
        records = played(Planner(20, number, Goal(target=target)), number)
        reached.append(kept_accuracy(records) >= target - NEAR)
        spend.append(records[-1].purse_after.spent / spent)
    return f"{100 * np.mean(reached):.0f} % reached for {100 * np.mean(spend):.0f} %"


def main():
    part = float(sys.argv[1]) if len(sys.argv) > 1 else 0.75
    even = {}
    for number in range(FEDERATIONS):
        records = played(Even(), number)
        early = [one.evaluation.reported_accuracy for one in records[: int(part * len(records))]]
        even[number] = (max(early), records[-1].purse_after.spent)
    print(f"as they are: {measured(even)}", flush=True)
    for name, values in VALUES.items():
        usual = getattr(_aims, name)
        for value in values:
            setattr(_aims, name, value)
            print(f"{name} = {value} instead of {usual}: {measured(even)}", flush=True)
        setattr(_aims, name, usual)


if __name__ == "__main__":
    main()

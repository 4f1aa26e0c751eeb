"""A forecast before spending: the same market over imagined learning curves, drawn from what past runs taught.

Notation: see `bara.surrogates.learning_curve`; y is the log-odds of the accuracy.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from bara.errors import ConfigError
from bara.experiments.comparison import Cell
from bara.experiments.config import Config
from bara.experiments.factory import bidders
from bara.experiments.results import Result, read_result
from bara.experiments.sections import FederationSection
from bara.federations.synthetic import SyntheticFederation
from bara.protocols import Requirements
from bara.randomness import stream
from bara.surrogates import LearningCurveBelief, gap_left, interval

ENGINE = "bara.experiments.forecasts:imagined"
START = 0.1
"""Where an untrained model is assumed to be when nothing is known: chance, among ten classes."""

RUNS_APART = 0.1
"""How far two runs of one task end apart, as a deviation of y: other data in other hands. Measured over the development
suite: 0.02 to 0.17 from setting to setting, root mean square 0.106."""

BUDGETS = tuple(2.0**k for k in range(-3, 4))
"""Multiples of the configured budget among which the inverse question looks for its answer."""


@dataclass(frozen=True)
class ImaginedCurve:
    """One learning curve that may be the task's."""

    start: float
    y_max: float
    gap: float
    delta: float
    s: float
    p: float
    kappa: float
    phi: float
    noise: float
    noise_ratio: float

    def accuracy(self, progress: float, selection: float, apart: float, noise: float) -> float:
        """What a round comes to; see `bara.federations.synthetic.Curve`."""
        y = self.y_max - self.gap * gap_left(progress, self.s, self.p) - self.delta * selection
        return float(expit(y + noise * math.sqrt(self.noise * (1 + self.noise_ratio * apart))))


def imagined(config: Config, requirements: Requirements) -> SyntheticFederation:
    """The engine of a forecast; its options are the curve's."""
    absent = 1 - (1 - config.clients.failure_rate) * (1 - config.clients.late_rate)
    curve = ImaginedCurve(**config.federation.options)
    return SyntheticFederation(bidders(config, requirements), curve, config.seed, absent, "imagined training")


def past_results(places: Iterable[Path]) -> list[Result]:
    """The results of finished runs: of each folder itself, and of the runs in it."""
    found = []
    for place in places:
        files = [path for path in (place / "result.json", *sorted(place.glob("*/result.json"))) if path.is_file()]
        if not files:
            raise ConfigError(f"there is no finished run in {str(place)!r}; required is a run's folder, or one of runs")
        found += [read_result(path) for path in files]
    return found


def curves(config: Config, past: Sequence[Result], count: int) -> list[ImaginedCurve]:
    """So many curves that the task may have, in turn from what each past run taught; from the prior without any.

    The run to come differs from the past ones. In units of `RUNS_APART` squared its variance about the middle of k runs
    is 1 + 1/k; that of draws from each of the k in turn is 1 - 1/k already, so that 2/k are added.
    """
    if count < 2:
        raise ConfigError(f"{count} draws; required is at least 2, or there is no interval")
    beliefs = [_learned(run) for run in past] or [(LearningCurveBelief(config.clients.count, START), START)]
    apart = RUNS_APART * math.sqrt(2 / len(past)) if past else 0.0
    drawn = []
    for i in range(count):
        belief, start = beliefs[i % len(beliefs)]
        shape = belief.draw(stream(config.seed, "imagined curve", i), 1)
        here = float(gap_left(shape.progress, shape.s, shape.p)[0])
        level, gap, delta, selection = (float(x[0]) for x in (shape.level, shape.gap, shape.delta, shape.selection))
        rest = (float(x[0]) for x in (shape.s, shape.p, shape.kappa, shape.phi, shape.noise, shape.noise_ratio))
        level += apart * stream(config.seed, "imagined run", i).standard_normal()
        drawn.append(ImaginedCurve(start, level + gap * here + delta * selection, gap, delta, *rest))
    return drawn


def _learned(run: Result) -> tuple[LearningCurveBelief, float]:
    first, *rounds = run.history
    belief = LearningCurveBelief(run.clients, first["accuracy"])
    for played in rounds:
        if played["n"]:
            belief.tell(played["n"], played["accuracy"])
    return belief, first["accuracy"]


def forecast_cells(
    config: Config, allocators: Sequence[str], budgets: Sequence[float], drawn: Sequence[ImaginedCurve]
) -> list[Cell]:
    """Every allocator with every budget on every curve; the setting is the budget."""
    grid = []
    for budget in budgets:
        if not budget > 0:
            raise ConfigError(f"a budget of {budget}; required is more than zero")
        purse = config.budget.model_copy(update={"total": budget})
        for allocator in allocators:
            for i, curve in enumerate(drawn):
                engine = FederationSection.model_validate({"engine": ENGINE, "workers": 1, **vars(curve)})
                there = config.with_allocator(allocator, config.seed + i)
                grid.append(Cell(there.model_copy(update={"budget": purse, "federation": engine}), f"{budget:g}"))
    return grid


@dataclass(frozen=True)
class Outlook:
    """What one allocator would make of one budget. Intervals hold nine times in ten, if the forecast is right.

    Attributes:
        allocator: Which.
        budget: How much there is.
        accuracy: Low, mean and high of the final accuracy.
        rounds: Likewise of the rounds played.
        spent: Likewise of the money spent.
    """

    allocator: str
    budget: float
    accuracy: tuple[float, float, float]
    rounds: tuple[float, float, float]
    spent: tuple[float, float, float]


def outlooks(results: Sequence[Result]) -> Iterator[Outlook]:
    """The forecasts' runs, added up for each budget and allocator."""
    groups: dict[tuple[float, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.budget, result.allocator), []).append(result)
    for (budget, allocator), runs in groups.items():
        yield Outlook(
            allocator,
            budget,
            _interval([run.accuracy_final for run in runs]),
            _interval([float(run.rounds) for run in runs]),
            _interval([run.spent for run in runs]),
        )


def budget_for(target: float, confidence: float, results: Sequence[Result]) -> float | None:
    """The smallest budget with which the target is reached with that confidence; None beyond all that were tried."""
    budgets = sorted({result.budget for result in results})
    chances = [np.mean([r.accuracy_final >= target for r in results if r.budget == budget]) for budget in budgets]
    sure = np.maximum.accumulate(chances)  # more money does no harm; where it seems to, that is chance
    if sure[-1] < confidence:
        return None
    k = int(np.argmax(sure >= confidence))
    if k == 0:
        return budgets[0]
    part = (confidence - sure[k - 1]) / (sure[k] - sure[k - 1])
    return float(np.exp(np.log(budgets[k - 1]) + part * (np.log(budgets[k]) - np.log(budgets[k - 1]))))


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    low, high = interval(values)
    return low, float(np.mean(values)), high

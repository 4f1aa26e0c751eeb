"""A forecast before spending: the same market over imagined learning curves, drawn from what past runs taught.

Notation: see `bara.surrogates.learning_curve`; y is the log-odds of the accuracy.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import scipy

from bara.allocators.prospects import enough
from bara.errors import ConfigError, LedgerError
from bara.experiments.limits import what_binds
from bara.experiments.stored_results import result_of
from bara.ledger.store import run_names
from bara.protocols import Requirements
from bara.randomness import stream
from bara.records import MoneyOutlook
from bara.reports.hindsight import fitted
from bara.reports.result import Result, read_result
from bara.runs.config import Config
from bara.runs.database import DatabaseRun
from bara.runs.factory import bidders, build_allocator
from bara.runs.folder import RunFolder
from bara.runs.sections import FederationSection
from bara.simulator.synthetic import SyntheticFederation
from bara.studies.grid import Cell
from bara.surrogates import LearningCurveBelief, gap_left, interval

ENGINE = "bara.studies.forecast:imagined"
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
    samples: int | None = None
    """How many samples the run to come is measured on."""

    def accuracy(self, progress: float, selection: float, apart: float, noise: float) -> float:
        """What a round comes to; see `bara.simulator.synthetic.Curve`."""
        y = self.y_max - self.gap * gap_left(progress, self.s, self.p) - self.delta * selection
        return float(
            scipy.special.expit(y + noise * math.sqrt(self.noise * (1 + self.noise_ratio * apart)))
        )


def imagined(config: Config, requirements: Requirements) -> SyntheticFederation:
    """The engine of a forecast; its options are the curve's."""
    absent = 1 - (1 - config.clients.failure_rate) * (1 - config.clients.late_rate)
    curve = ImaginedCurve(**config.federation.options)
    who = bidders(config, requirements)
    return SyntheticFederation(who, curve, config.seed, absent, "imagined training", curve.samples)


def past_results(places: Iterable[Path | str]) -> list[Result]:
    """What runs came to, those that have not ended as far as they are: of folders, of the runs in them, of databases.

    A run of which no round is settled teaches nothing, and is left out.
    """
    found: list[Result] = []
    for place in places:
        before = len(found)
        if "://" in str(place):
            found += [
                result
                for name in run_names(str(place))
                for result in _so_far(DatabaseRun(str(place), name))
            ]
        else:
            below = {
                path.parent
                for name in ("config.toml", "result.json")
                for path in Path(place).glob(f"*/{name}")
            }
            for folder in (Path(place), *sorted(below)):
                if (folder / "result.json").is_file():
                    found.append(read_result(folder / "result.json"))
                elif (folder / "config.toml").is_file():
                    found += _so_far(RunFolder.find(folder))
        if len(found) == before:
            raise ConfigError(
                f"no run with a settled round is in {str(place)!r}; give a run's folder, or one of runs"
            )
    return found


def _so_far(run: RunFolder | DatabaseRun) -> list[Result]:
    with run:
        try:
            books = run.read_books()
        except LedgerError:  # stopped before there were any
            return []
        return [result_of(books)] if books.last_round() > 0 else []


def stated_curves(config: Config, start: float, goal: float, count: int) -> list[ImaginedCurve]:
    """So many curves from a stated start to a stated goal, where nothing is known of the task but these two.

    Args:
        config: The experiment.
        start: How good the initial model is.
        goal: How good it can get with everybody and all the time there is; drawn `RUNS_APART`
            around it.
        count: How many.
    """
    for name, value in (("--start", start), ("--goal", goal)):
        if not 0 < value < 1:
            raise ConfigError(
                f"{name} must be a fraction between 0 and 1, like 0.85; got {value:g}"
            )
    if goal <= start:
        raise ConfigError(f"--goal must be above --start ({start:g}), got {goal:g}")
    first = float(scipy.special.logit(start))
    drawn = []
    for i, curve in enumerate(curves(config, [], count)):
        top = (
            float(scipy.special.logit(goal))
            + RUNS_APART * stream(config.seed, "stated goal", i).standard_normal()
        )
        drawn.append(replace(curve, start=start, y_max=top, gap=max(top - first, 1e-3)))
    return drawn


def curves(config: Config, past: Sequence[Result], count: int) -> list[ImaginedCurve]:
    """So many curves that the task may have, in turn from what each past run taught; from the prior without any.

    The run to come differs from the past ones. In units of `RUNS_APART` squared its variance about
    the middle of k runs is 1 + 1/k; that of draws from each of the k in turn is 1 - 1/k already, so
    that 2/k are added.
    """
    if count < 2:
        raise ConfigError(f"draws must be at least 2, or there is no interval, got {count}")
    beliefs = [_learned(run) for run in past] or [
        (LearningCurveBelief(config.clients.count, START), START)
    ]
    samples = next((run.samples for run in past if run.samples), config.data.evaluation_samples)
    apart = RUNS_APART * math.sqrt(2 / len(past)) if past else 0.0
    drawn = []
    for i in range(count):
        belief, start = beliefs[i % len(beliefs)]
        shape = belief.draw(stream(config.seed, "imagined curve", i), 1)
        here = float(gap_left(shape.progress, shape.s, shape.p)[0])
        level, gap, delta, selection = (
            float(x[0]) for x in (shape.level, shape.gap, shape.delta, shape.selection)
        )
        rest = {
            key: float(getattr(shape, key)[0])
            for key in ("s", "p", "kappa", "phi", "noise", "noise_ratio")
        }
        level += apart * stream(config.seed, "imagined run", i).standard_normal()
        known: dict[str, Any] = {"samples": samples, **rest}
        drawn.append(
            ImaginedCurve(start, level + gap * here + delta * selection, gap, delta, **known)
        )
    return drawn


def _learned(run: Result) -> tuple[LearningCurveBelief, float]:
    first, *rounds = run.history
    belief = LearningCurveBelief(run.clients, first["accuracy"])
    for played in rounds:
        if played["n"]:
            belief.tell(played["n"], played["accuracy"])
    return belief, first["accuracy"]


def forecast_cells(
    config: Config,
    allocators: Sequence[str],
    budgets: Sequence[float],
    drawn: Sequence[ImaginedCurve],
) -> list[Cell]:
    """Every allocator with every budget on every curve; the setting is the budget."""
    grid = []
    for allocator in allocators:
        build_allocator(
            config.with_allocator(allocator, config.seed)
        )  # refused before anything is played
    for budget in budgets:
        if not budget > 0:
            raise ConfigError(f"a forecast's budget must be positive, got {budget}")
        purse = config.with_total(budget).budget
        for allocator in allocators:
            for i, curve in enumerate(drawn):
                engine = FederationSection.model_validate(
                    {"engine": ENGINE, "workers": 1, **_set(vars(curve))}
                )
                there = config.with_allocator(allocator, config.seed + i)
                grid.append(
                    Cell(
                        there.model_copy(update={"budget": purse, "federation": engine}),
                        f"{budget:g}",
                    )
                )
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
        binds: What keeps it from being better, in words: the limit that most of the runs come up
            against.
        reached: How often the target was reached; None without one.
    """

    allocator: str
    budget: float
    accuracy: tuple[float, float, float]
    rounds: tuple[float, float, float]
    spent: tuple[float, float, float]
    binds: str | None = None
    reached: float | None = None


def outlooks(results: Sequence[Result], config: Config | None = None) -> Iterator[Outlook]:
    """The forecasts' runs, added up for each budget and allocator; with the configuration also what binds them."""
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
            None if config is None else what_binds(runs, config),
            None
            if (target := runs[0].target) is None
            else fmean(run.accuracy_kept >= target for run in runs),
        )


def allocators_for(config: Config) -> list[str]:
    """Those that are compared unless others are named: where there is a goal, the one that has goals."""
    return (
        ["even", "even:carry_over=true", "planner"]
        if config.budget.goal.name is None
        else ["planner"]
    )


def past_outlook(config: Config, past: Sequence[Result]) -> MoneyOutlook | None:
    """What the configured budget, half of it and twice as much buy by the curve of the last past run that tells."""
    purse = config.purse()
    for run in reversed(past):
        if (curve := fitted(run)) is not None:
            prospects = curve.prospects(purse, config.seed, fresh=True).curve(
                run.history[0]["accuracy"]
            )
            return MoneyOutlook(prospects, enough(prospects, purse.total))
    return None


def budget_for(target: float, confidence: float, results: Sequence[Result]) -> float | None:
    """The smallest budget with which the target is reached with that confidence; None beyond all that were tried."""
    budgets = sorted({result.budget for result in results})
    chances = [
        np.mean([r.accuracy_final >= target for r in results if r.budget == budget])
        for budget in budgets
    ]
    sure = np.maximum.accumulate(
        chances
    )  # more money does no harm; where it seems to, that is chance
    if sure[-1] < confidence:
        return None
    k = int(np.argmax(sure >= confidence))
    if k == 0:
        return budgets[0]
    part = (confidence - sure[k - 1]) / (sure[k] - sure[k - 1])
    return float(
        np.exp(np.log(budgets[k - 1]) + part * (np.log(budgets[k]) - np.log(budgets[k - 1])))
    )


def _interval(values: Sequence[float]) -> tuple[float, float, float]:
    low, high = interval(values)
    return low, float(np.mean(values)), high


def _set(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}

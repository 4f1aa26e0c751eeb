"""Imagined learning curves that a task may have, drawn from past runs, and a federation on them.

Notation: see `bara.surrogates.learning_curve`; y is the log-odds of the accuracy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy

from bara.datasets import classes
from bara.errors import ConfigError
from bara.protocols import Requirements
from bara.randomness import stream
from bara.reports.result import Result
from bara.runs.config import Config
from bara.runs.data import Holdings
from bara.runs.engines import SYNTHETIC
from bara.runs.factory import bidders
from bara.server.metrics import chance
from bara.simulator.synthetic import LearningCurve, SyntheticFederation
from bara.surrogates import LearningCurveBelief, gap_left

LABELS = 10
"""The number of labels of data that is not known by name."""

LEAST_START = 0.01
"""The least accuracy of an untrained model: log-odds have no zero."""

RUNS_APART = 0.1
"""How far two runs of one task end apart, as a deviation of y: other data in other hands. Measured
over the development suite: 0.02 to 0.17 from setting to setting, root mean square 0.106."""


@dataclass(frozen=True)
class ImaginedCurve:
    """A learning curve that the task may have; `samples` is how many a run is measured on."""

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

    def accuracy(
        self, progress: float, selection: float, apart: float, noise: float, _unheard: float = 0.0
    ) -> float:
        """Return the accuracy after a round; see `bara.simulator.synthetic.Curve`.

        Whom past runs had not heard is part of what they reached, and so of the curve.
        """
        y = self.y_max - self.gap * gap_left(progress, self.s, self.p) - self.delta * selection
        deviation = math.sqrt(self.noise * (1 + self.noise_ratio * apart))
        return float(scipy.special.expit(y + noise * deviation))

    def options(self) -> dict[str, Any]:
        """Return the curve as options of the engine `imagined`."""
        return {key: value for key, value in vars(self).items() if value is not None}


def imagined(config: Config, requirements: Requirements) -> SyntheticFederation:
    """Make the federation of a forecast; the engine's options are the curve and what is held."""
    options = config.federation.options
    held = None
    if "held" in options:
        held = Holdings(**options.pop("held"))
    absent = 1 - (1 - config.clients.failure_rate) * (1 - config.clients.late_rate)
    curve = ImaginedCurve(**options)
    who = bidders(config, requirements, held)
    return SyntheticFederation(who, curve, config.seed, absent, "imagined training", curve.samples)


def stated_curves(config: Config, start: float, goal: float, count: int) -> list[ImaginedCurve]:
    """Sample `count` curves from a stated start to a stated goal, where nothing else is known.

    Args:
        config: The experiment.
        start: The accuracy of the initial model.
        goal: The best accuracy it can reach; drawn `RUNS_APART` around it.
        count: How many curves.
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
        off = RUNS_APART * stream(config.seed, "stated goal", i).standard_normal()
        top = float(scipy.special.logit(goal)) + off
        drawn.append(replace(curve, start=start, y_max=top, gap=max(top - first, 1e-3)))
    return drawn


def curves(config: Config, past: Sequence[Result], count: int) -> list[ImaginedCurve]:
    """Sample `count` plausible curves, cycling over the past runs; from the prior without any.

    The run to come differs from the past ones. In units of `RUNS_APART` squared its variance about
    the middle of k runs is 1 + 1/k; that of draws from each of the k in turn is 1 - 1/k already, so
    that 2/k are added.
    """
    if count < 2:
        raise ConfigError(f"draws must be at least 2, or there is no interval, got {count}")
    beliefs = list(map(_learned, past))
    apart = 0.0
    if past:
        apart = RUNS_APART * math.sqrt(2 / len(past))
    else:
        start = _untrained(config)
        beliefs = [(LearningCurveBelief(config.clients.count, start), start)]
    samples = config.data.evaluation_samples
    for run in reversed(past):
        samples = run.samples or samples
    drawn = []
    for i in range(count):
        belief, start = beliefs[i % len(beliefs)]
        shape = belief.draw(stream(config.seed, "imagined curve", i), 1)
        gap = float(shape.gap[0])
        delta = float(shape.delta[0])
        level = float(shape.level[0])
        level += apart * stream(config.seed, "imagined run", i).standard_normal()
        gap_here = float(gap_left(shape.progress, shape.s, shape.p)[0])
        curve = ImaginedCurve(
            start,
            y_max=level + gap * gap_here + delta * float(shape.selection[0]),
            gap=gap,
            delta=delta,
            s=float(shape.s[0]),
            p=float(shape.p[0]),
            kappa=float(shape.kappa[0]),
            phi=float(shape.phi[0]),
            noise=float(shape.noise[0]),
            noise_ratio=float(shape.noise_ratio[0]),
            samples=samples,
        )
        drawn.append(curve)
    return drawn


def _untrained(config: Config) -> float:
    """Return how good a model is expected to be before anyone trains it: as good as chance."""
    if config.federation.engine == SYNTHETIC:
        return max(LearningCurve(**config.federation.options).start, LEAST_START)
    labels = classes().get(config.data.name, LABELS)
    return max(chance(config.training.metric, labels), LEAST_START)


def _learned(run: Result) -> tuple[LearningCurveBelief, float]:
    """Fit a past run; return the belief and the accuracy of its initial model."""
    first, *rounds = run.history
    belief = LearningCurveBelief(run.clients, first["accuracy"])
    for played in rounds:
        if played["n"]:
            belief.tell(played["n"], played["accuracy"])
    return belief, first["accuracy"]

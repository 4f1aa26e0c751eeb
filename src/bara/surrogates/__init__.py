"""Models of an unknown function from few, noisy values, independent of federated learning."""

from bara.surrogates.interpolation import MeanLine, NewtonPolynomial, PiecewiseLine
from bara.surrogates.learning_curve import (
    LearningCurveBelief,
    Shapes,
    gap_left,
    interval,
    log_odds,
    progress,
    spread,
)
from bara.surrogates.time_varying_gp import KalmanGP, squared_exponential

__all__ = [
    "KalmanGP",
    "LearningCurveBelief",
    "MeanLine",
    "NewtonPolynomial",
    "PiecewiseLine",
    "Shapes",
    "gap_left",
    "interval",
    "log_odds",
    "progress",
    "spread",
    "squared_exponential",
]

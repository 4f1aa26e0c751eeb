"""Metrics of a model's quality, each a fraction in [0, 1] that rises as the model gets better.

Allocators learn from the metric, and all reports show it. A metric that may fall below 0 (R2) is
cut off there, and one that falls as a model gets better is reversed: RMSE becomes "1 - RMSE/SD",
where SD is the target's standard deviation. Tables, axes and pages call a metric by its title.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.errors import ConfigError, TrainingError, UnknownNameError
from bara.plugins import import_path
from bara.text import nearest

Scores = NDArray[np.float32]
"""A row per sample: a score per label, or a single score, above 0 for the second of two labels."""

Measure = Callable[[Scores, NDArray[Any]], float]
"""(scores, targets) -> a fraction in [0, 1], the higher the better."""


@dataclass(frozen=True)
class Metric:
    """A metric of a model's quality.

    Attributes:
        title: The metric's name for people.
        tasks: The kinds of tasks that the metric fits.
        measure: Computes the metric; None for accuracy, which the workers count themselves.
    """

    title: str
    tasks: tuple[str, ...]
    measure: Measure | None


def _balanced(scores: Scores, targets: NDArray[Any]) -> float:
    """Return the mean recall over the labels that occur."""
    found = predicted(scores) == targets
    return float(np.mean([found[targets == label].mean() for label in np.unique(targets)]))


def _auc(scores: Scores, targets: NDArray[Any]) -> float:
    """Return the area under the ROC curve; for several labels, the mean of one against the rest."""
    labels = np.unique(targets)
    if len(labels) < 2:
        raise TrainingError(
            "AUC compares labels, and the held-out part has only one; hold out more"
        )
    if scores.shape[1] == 1:
        return _above(scores[:, 0], targets == labels[1])
    return float(np.mean([_above(scores[:, int(label)], targets == label) for label in labels]))


def _above(scores: NDArray[np.float32], positive: NDArray[np.bool_]) -> float:
    """Return how often a positive scores above a negative, ties as one half (Mann and Whitney)."""
    _, places, equals = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(equals) - (equals - 1) / 2)[places]  # equal scores share their mean rank
    count = int(positive.sum())
    pairs = count * (len(scores) - count)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / pairs)


def _r2(scores: Scores, targets: NDArray[Any]) -> float:
    """Return the share of the targets' variance that is explained; 0 where it is negative."""
    residual = np.sum((scores[:, 0] - targets) ** 2)
    total = np.sum((targets - np.mean(targets)) ** 2)
    return max(1 - float(residual) / max(float(total), 1e-12), 0.0)


def _rmse(scores: Scores, targets: NDArray[Any]) -> float:
    """Return 1 - RMSE/SD; 0 where it is negative."""
    error = float(np.sqrt(np.mean((scores[:, 0] - targets) ** 2)))
    return max(1 - error / max(float(np.std(targets)), 1e-12), 0.0)


_LABELS = ("classes", "binary")
METRICS: dict[str, Metric] = {
    "accuracy": Metric("accuracy", _LABELS, None),
    "balanced-accuracy": Metric("balanced accuracy", _LABELS, _balanced),
    "auc": Metric("AUC", _LABELS, _auc),
    "r2": Metric("R2", ("regression",), _r2),
    "rmse": Metric("1 - RMSE/SD", ("regression",), _rmse),
}
"""The built-in metrics, by the name that a configuration gives."""


def metric_title(name: str) -> str:
    """Return the title of a metric; for a user's own function, its name in words.

    >>> metric_title("auc"), metric_title("my_module:f1_score")
    ('AUC', 'f1 score')
    """
    if name in METRICS:
        return METRICS[name].title
    function = name.rpartition(":")[2]
    return function.replace("_", " ")


def chance(name: str, classes: int) -> float:
    """Return what a metric says of a model that guesses.

    Args:
        name: The metric; one of a user's own counts as accuracy.
        classes: The number of labels; ignored by metrics of numbers.

    >>> chance("accuracy", 10), chance("auc", 10), chance("r2", 1)
    (0.1, 0.5, 0.0)
    """
    if name == "auc":
        return 0.5
    if name in METRICS and METRICS[name].tasks == ("regression",):
        return 0.0
    return 1 / classes


def metric_of_app(options: Mapping[str, Any]) -> str:
    """Return the metric that decisions about a Flower app are based on.

    A metric that is not a fraction is mapped to one that rises as the model gets better.

    Args:
        options: The app's options: `accuracy` names its metric, and `better` says whether `lower`
            or `higher` values are better, for a metric that is not a fraction.

    >>> metric_of_app({}), metric_of_app({"accuracy": "auc"})
    ('accuracy', 'auc')
    >>> metric_of_app({"accuracy": "loss", "better": "lower"})
    '1 / (1 + loss)'
    """
    name = str(options.get("accuracy", "accuracy"))
    better = options.get("better", "")
    if better == "lower":
        return f"1 / (1 + {name})"
    if better == "higher":
        return f"{name} / (1 + {name})"
    return name


def check_name(name: str) -> None:
    """Refuse an unknown name of a metric; an import path is only looked up when it is used."""
    if name not in METRICS and ":" not in name:
        raise UnknownNameError(
            f"no metric is named {name!r}; {nearest(name.lower(), list(METRICS))}"
        )


def check_task(name: str, task: str) -> None:
    """Refuse a built-in metric that does not fit the task."""
    if name in METRICS and task not in METRICS[name].tasks:
        fitting = [one for one, metric in METRICS.items() if task in metric.tasks]
        what = "a number" if task == "regression" else "a label"
        raise ConfigError(
            f"training.metric is {name!r}, but the target is {what}; use {' or '.join(fitting)}"
        )


def find_measure(name: str) -> Measure | None:
    """Return the function that computes a metric; None for accuracy, which workers count."""
    check_name(name)
    if name in METRICS:
        return METRICS[name].measure
    own = import_path(name)
    if not callable(own):
        raise ConfigError(
            f"training.metric is {name!r}, which is {own!r}; "
            "it must be a function of scores and targets"
        )

    def checked(scores: Scores, targets: NDArray[Any]) -> float:
        value = float(own(scores, targets))
        if not 0 <= value <= 1:
            raise TrainingError(
                f"training.metric {name!r} is {value}; it must be a fraction in [0, 1] that rises"
            )
        return value

    return checked


def predicted(scores: Scores) -> NDArray[np.int64]:
    """Return the label that each row of scores predicts."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64)
    labels: NDArray[np.int64] = scores.argmax(axis=1)
    return labels

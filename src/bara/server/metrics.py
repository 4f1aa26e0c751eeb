"""How good a model is, as one fraction in [0, 1] that rises: what allocators learn from and everything reports.

What may fall below 0 is cut there (R2), and what falls as a model gets better is turned round: RMSE
becomes "1 - RMSE/SD", 1 less its ratio to the target's standard deviation. A metric's title is what
tables, axes and pages call it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bara.errors import ConfigError, TrainingError, UnknownNameError
from bara.plugins import import_path, nearest

Scores = NDArray[np.float32]
"""One row per sample: one score per label, or a single one (above 0 for the second of two labels)."""

Measure = Callable[[Scores, NDArray[Any]], float]
"""(scores, targets) -> a fraction in [0, 1] that rises."""


@dataclass(frozen=True)
class Metric:
    """One way to say how good a model is.

    Attributes:
        title: What people read.
        tasks: Which tasks it fits.
        measure: Computes it; None for accuracy, which the workers count.
    """

    title: str
    tasks: tuple[str, ...]
    measure: Measure | None


def _balanced(scores: Scores, targets: NDArray[Any]) -> float:
    """The mean over the labels of the share that is found; a label that does not occur does not count."""
    found = predicted(scores) == targets
    return float(np.mean([found[targets == label].mean() for label in np.unique(targets)]))


def _auc(scores: Scores, targets: NDArray[Any]) -> float:
    """The area under the ROC curve; of several labels, the mean over each against the others."""
    labels = np.unique(targets)
    if len(labels) < 2:
        raise TrainingError(
            "AUC compares labels, and the held-out part has only one; hold out more"
        )
    if scores.shape[1] == 1:
        return _above(scores[:, 0], targets == labels[1])
    return float(np.mean([_above(scores[:, int(label)], targets == label) for label in labels]))


def _above(scores: NDArray[np.float32], positive: NDArray[np.bool_]) -> float:
    """How often one that is scores above one that is not, half of it where they score alike (Mann and Whitney)."""
    _, places, equals = np.unique(scores, return_inverse=True, return_counts=True)
    ranks, count = (np.cumsum(equals) - (equals - 1) / 2)[places], int(positive.sum())
    pairs = count * (len(scores) - count)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / pairs)


def _r2(scores: Scores, targets: NDArray[Any]) -> float:
    left, whole = np.sum((scores[:, 0] - targets) ** 2), np.sum((targets - np.mean(targets)) ** 2)
    return max(1 - float(left) / max(float(whole), 1e-12), 0.0)


def _rmse(scores: Scores, targets: NDArray[Any]) -> float:
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


def metric_title(name: str) -> str:
    """What people read of a metric; of a function of a user's own, its name.

    >>> metric_title("auc"), metric_title("my_module:f1_score")
    ('AUC', 'f1 score')
    """
    return METRICS[name].title if name in METRICS else name.rpartition(":")[2].replace("_", " ")


def metric_of_app(options: Mapping[str, Any]) -> str:
    """What a Flower app's decisions are made on; a metric of any size is mapped to a fraction that rises.

    >>> metric_of_app({}), metric_of_app({"accuracy": "auc"}), metric_of_app({"accuracy": "loss", "better": "lower"})
    ('accuracy', 'auc', '1 / (1 + loss)')
    """
    name = str(options.get("accuracy", "accuracy"))
    return {"lower": f"1 / (1 + {name})", "higher": f"{name} / (1 + {name})"}.get(
        options.get("better", ""), name
    )


def check_name(name: str) -> None:
    """Refuse a name that is no metric's; an import path is looked up when it is used."""
    if name not in METRICS and ":" not in name:
        raise UnknownNameError(
            f"no metric is named {name!r}; {nearest(name.lower(), list(METRICS))}"
        )


def check_task(name: str, task: str) -> None:
    """Refuse a metric that says nothing about such a task."""
    if name in METRICS and task not in METRICS[name].tasks:
        fitting = [one for one, metric in METRICS.items() if task in metric.tasks]
        what = "a number" if task == "regression" else "a label"
        raise ConfigError(
            f"training.metric is {name!r}, but the target is {what}; use {' or '.join(fitting)}"
        )


def measure_of(name: str) -> Measure | None:
    """What computes it; None for accuracy."""
    check_name(name)
    if name in METRICS:
        return METRICS[name].measure
    own = import_path(name)
    if not callable(own):
        raise ConfigError(
            f"training.metric is {name!r}, which is {own!r}; it must be a function of scores and targets"
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
    """The label that each row of scores stands for."""
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)

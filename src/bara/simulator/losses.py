"""What training makes small: the loss of a task, or a user's own by import path.

A loss knows its sum over a batch, and the gradient of that sum by the scores, from which the
kernels go on. Scores have one row per sample: one score per class, or a single one (the logit of
the second label, or the number itself).
"""

from collections.abc import Callable
from typing import Protocol, final

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from bara.errors import ConfigError
from bara.plugins import import_path


class Loss(Protocol):
    """What training makes small."""

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """The sum over a batch."""

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """The gradient of the sum by the scores; in memory that is used again for the next batch."""

    def right(self, scores: Tensor, y: Tensor) -> int:
        """How many answers are right; 0 where there is no right and wrong."""


@final
class CrossEntropy:
    """Softmax and cross-entropy: one of several labels."""

    def __init__(self) -> None:
        self._classes = self._odds = torch.eye(0)

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """In float32, whatever a module makes."""
        return cross_entropy(scores.float(), y, reduction="sum")

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """Do p - onehot."""
        if self._odds.shape != scores.shape:
            self._odds = torch.empty_like(scores)
        if len(self._classes) != scores.shape[1]:
            self._classes = torch.eye(scores.shape[1])
        return torch.softmax(scores, 1, out=self._odds).sub_(self._classes.index_select(0, y))

    def right(self, scores: Tensor, y: Tensor) -> int:
        """Where the highest score is the label's."""
        return int((scores.argmax(1) == y).sum())


@final
class Logistic:
    """The logistic loss of one logit: one of two labels, given as 0.0 and 1.0."""

    def __init__(self) -> None:
        self._odds = torch.empty(0)

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """In float32, whatever a module makes."""
        return binary_cross_entropy_with_logits(scores[:, 0].float(), y, reduction="sum")

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """Do p - y."""
        if self._odds.shape != scores.shape:
            self._odds = torch.empty_like(scores)
        return torch.sigmoid(scores, out=self._odds).sub_(y[:, None])

    def right(self, scores: Tensor, y: Tensor) -> int:
        """Where the logit is on the label's side of 0."""
        return int(((scores[:, 0] > 0) == (y > 0)).sum())


@final
class Squared:
    """Half of the squared difference: a number."""

    def __init__(self) -> None:
        self._off = torch.empty(0)

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """In float32, whatever a module makes."""
        return (scores[:, 0].float() - y).square().sum() / 2

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """Do the difference itself."""
        if self._off.shape != scores.shape:
            self._off = torch.empty_like(scores)
        return torch.sub(scores, y[:, None], out=self._off)

    def right(self, scores: Tensor, y: Tensor) -> int:  # noqa: ARG002 - the losses' common shape
        """Nothing is right or wrong."""
        return 0


@final
class Own:
    """A user's function of (scores, targets): one loss per sample, or their mean."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], task: Loss) -> None:
        """The task's own loss tells what is right."""
        self._function = function
        self._task = task

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """A mean is multiplied by how many it is of."""
        values = self._function(scores, y)
        return values.sum() if values.ndim else values * len(y)

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """By autograd, through the loss alone."""
        with torch.inference_mode(mode=False), torch.enable_grad():
            leaf = scores.clone().requires_grad_()
            (found,) = torch.autograd.grad(self.total(leaf, y.clone()), leaf)
        return found

    def right(self, scores: Tensor, y: Tensor) -> int:
        """As the task has it."""
        return self._task.right(scores, y)


_TASKS: dict[str, type[CrossEntropy] | type[Logistic] | type[Squared]] = {
    "classes": CrossEntropy,
    "binary": Logistic,
    "regression": Squared,
}


def loss_of(task: str, own: str | None = None) -> Loss:
    """The loss of a task, or the one that an import path names."""
    plain = _TASKS[task]()
    if own is None:
        return plain
    function = import_path(own)
    if not callable(function):
        raise ConfigError(
            f"training.loss is {own!r}, which is {function!r}; it must be a function of scores and targets"
        )
    return Own(function, plain)

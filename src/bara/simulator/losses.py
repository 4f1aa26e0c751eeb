"""The losses that training minimises: one for each task, or a user's own by import path.

A loss gives its sum over a batch, and the gradient of that sum by the scores, from which the
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
    """A function of scores and labels that training minimises."""

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the sum of the loss over a batch."""

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the gradient of the sum by the scores, in memory that the next batch reuses."""

    def right(self, scores: Tensor, y: Tensor) -> int:
        """Return the number of right answers; 0 where there is no right and wrong."""


@final
class CrossEntropy:
    """The cross-entropy of softmax scores, for one of several labels."""

    def __init__(self) -> None:
        self._classes = self._odds = torch.eye(0)

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the sum over a batch, in float32 whatever the type of the scores."""
        return cross_entropy(scores.float(), y, reduction="sum")

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return softmax(scores) - onehot(y)."""
        if self._odds.shape != scores.shape:
            self._odds = torch.empty_like(scores)
        if len(self._classes) != scores.shape[1]:
            self._classes = torch.eye(scores.shape[1])
        return torch.softmax(scores, 1, out=self._odds).sub_(self._classes.index_select(0, y))

    def right(self, scores: Tensor, y: Tensor) -> int:
        """Count the samples whose highest score is the label's."""
        return int((scores.argmax(1) == y).sum())


@final
class Logistic:
    """The logistic loss of one logit, for one of two labels, given as 0.0 and 1.0."""

    def __init__(self) -> None:
        self._odds = torch.empty(0)

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the sum over a batch, in float32 whatever the type of the scores."""
        return binary_cross_entropy_with_logits(scores[:, 0].float(), y, reduction="sum")

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return sigmoid(scores) - y."""
        if self._odds.shape != scores.shape:
            self._odds = torch.empty_like(scores)
        return torch.sigmoid(scores, out=self._odds).sub_(y[:, None])

    def right(self, scores: Tensor, y: Tensor) -> int:
        """Count the samples whose logit is on the label's side of 0."""
        return int(((scores[:, 0] > 0) == (y > 0)).sum())


@final
class Squared:
    """Half of the squared error, for a number."""

    def __init__(self) -> None:
        self._errors = torch.empty(0)

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the sum over a batch, in float32 whatever the type of the scores."""
        return (scores[:, 0].float() - y).square().sum() / 2

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return scores - y."""
        if self._errors.shape != scores.shape:
            self._errors = torch.empty_like(scores)
        return torch.sub(scores, y[:, None], out=self._errors)

    def right(self, scores: Tensor, y: Tensor) -> int:  # noqa: ARG002 - the signature of `Loss`
        """Return 0: no number is right or wrong."""
        return 0


@final
class Own:
    """A user's own loss: a function of (scores, targets) to one loss per sample, or their mean."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], task: Loss) -> None:
        """Minimise the function; `task` is the task's usual loss, which counts right answers."""
        self._function = function
        self._task = task

    def total(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the sum over a batch; a mean is multiplied by the size of the batch."""
        values = self._function(scores, y)
        return values.sum() if values.ndim else values * len(y)

    def gradient(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the gradient by autograd, through the loss alone."""
        with torch.inference_mode(mode=False), torch.enable_grad():
            leaf = scores.clone().requires_grad_()
            (found,) = torch.autograd.grad(self.total(leaf, y.clone()), leaf)
        return found

    def right(self, scores: Tensor, y: Tensor) -> int:
        """Return the number of right answers by the task's usual loss."""
        return self._task.right(scores, y)


_TASKS: dict[str, type[CrossEntropy] | type[Logistic] | type[Squared]] = {
    "classes": CrossEntropy,
    "binary": Logistic,
    "regression": Squared,
}


def loss_of(task: str, own: str | None = None) -> Loss:
    """Return the loss of a task, or the user's own loss at the import path `own`."""
    plain = _TASKS[task]()
    if own is None:
        return plain
    function = import_path(own)
    if not callable(function):
        raise ConfigError(
            f"training.loss is {own!r}, which is {function!r}; "
            "it must be a function of scores and targets"
        )
    return Own(function, plain)

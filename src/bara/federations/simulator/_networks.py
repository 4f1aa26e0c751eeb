"""A model as local training sees it, whichever way it computes."""

from contextlib import AbstractContextManager
from typing import Any, Protocol

from torch import Tensor

from bara.federations.simulator._layout import Layout


class Network(Protocol):
    """A model over one flat vector.

    Attributes:
        layout: what is where in the vector.
        state: the vector the model computes with: written before training, moved by it.
        chunk: how much of a full batch to take at once; None where it cannot be divided, because the samples of a
            batch may influence each other (batch norm; of a user's own module nothing is known).
    """

    layout: Layout
    state: Tensor
    chunk: int | None

    def context(self) -> AbstractContextManager[Any]:
        """What everything below is done in: entered once a client, because entering costs as much as a layer."""

    def aim(self, target: Tensor) -> None:
        """Let `accumulate` write to this flat vector of parameters; it may be the state's own."""

    def accumulate(self, x: Tensor, y: Tensor, beta: float, alpha: float) -> Tensor:
        """Do target = beta * target + alpha * gradient of the batch's summed loss; return the scores."""

    def scores(self, x: Tensor) -> Tensor:
        """The scores as evaluation sees them: nothing is remembered, nothing moves."""

"""The updates that the clients of one round sent back."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

State = NDArray[np.float32]
"""A model in one flat vector."""


@final
@dataclass(frozen=True, eq=False)
class Updates:
    """What the clients of one round sent back, in the order in which they were asked.

    Attributes:
        round: The round.
        clients: The clients that trained, by number.
        states: Each client's whole flat state after training, a row each; valid until the next
            `train`, copy to keep.
        samples: How many samples each client trained on.
        loss_before: Each client's mean loss on its own samples before training: with FedSGD always
            (the loss whose gradient was taken, so batch norm uses the batch's statistics), with
            FedAvg when evidence was asked for.
        loss_after: The same after training, when evidence was asked for.
    """

    round: int
    clients: tuple[int, ...]
    states: State
    samples: tuple[int, ...]
    loss_before: tuple[float | None, ...]
    loss_after: tuple[float | None, ...]

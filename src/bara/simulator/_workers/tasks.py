"""What parent and workers say to each other: small frozen records."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from bara.simulator._workers.shared_memory import MemoryLayout
from bara.simulator.training import Training


@final
@dataclass(frozen=True)
class Setup:
    """Everything a trainer is built from; small enough to send."""

    model: str
    shape: tuple[int, ...]
    outputs: int
    task: str
    training: Training
    seed: int
    memory: MemoryLayout


@final
@dataclass(frozen=True)
class Train:
    """Train one client from the shared state into a row of the shared updates."""

    round: int
    client: int
    row: int
    evidence: bool


@final
@dataclass(frozen=True)
class Trained:
    """What is known of a trained client beside its update."""

    row: int
    loss_before: float | None
    loss_after: float | None


@final
@dataclass(frozen=True)
class Evaluate:
    """Evaluate the shared state on a stretch of a held-out part, and hand over the scores where they are wanted."""

    part: str
    start: int
    stop: int
    scores: bool


@final
@dataclass(frozen=True)
class Tally:
    """Right answers, summed loss and scores over some samples; tallies of chunks add up in the chunks' order."""

    right: int = 0
    loss: float = 0.0
    samples: int = 0
    scores: tuple[NDArray[np.float32], ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        """Both together."""
        counts = self.right + other.right, self.loss + other.loss, self.samples + other.samples
        return Tally(*counts, self.scores + other.scores)


@final
@dataclass(frozen=True)
class TaskFailure:
    """An answer that is none: what went wrong in a line, and as the worker saw it."""

    reason: str
    traceback: str


Task = Train | Evaluate
TaskResult = Trained | Tally

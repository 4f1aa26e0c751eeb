"""The messages between the parent process and its workers: small frozen records."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from bara.simulator._workers.shared_memory import MemoryLayout
from bara.simulator.training import Training


@final
@dataclass(frozen=True)
class Setup:
    """The plan from which a worker builds its trainer."""

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
    """A task: train one client from the shared state into a row of the shared updates."""

    round: int
    client: int
    row: int
    evidence: bool


@final
@dataclass(frozen=True)
class Trained:
    """The result of a training task, besides the update in shared memory."""

    row: int
    loss_before: float | None
    loss_after: float | None


@final
@dataclass(frozen=True)
class Evaluate:
    """A task: evaluate the shared state on a stretch of a held-out set, with or without scores."""

    part: str
    start: int
    stop: int
    scores: bool


@final
@dataclass(frozen=True)
class Tally:
    """The right answers, summed loss and scores over some samples."""

    right: int = 0
    loss: float = 0.0
    samples: int = 0
    scores: tuple[NDArray[np.float32], ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        """Return the tally over both sets of samples."""
        return Tally(
            right=self.right + other.right,
            loss=self.loss + other.loss,
            samples=self.samples + other.samples,
            scores=self.scores + other.scores,
        )


@final
@dataclass(frozen=True)
class TaskFailure:
    """A failed task: a one-line reason and the traceback."""

    reason: str
    traceback: str


Task = Train | Evaluate
TaskResult = Trained | Tally

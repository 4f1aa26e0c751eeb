"""What parent and workers say to each other: small frozen records."""

from dataclasses import dataclass
from typing import final

from bara.federations.simulator._evaluation import Tally
from bara.federations.simulator._workers.shared_memory import Plan
from bara.federations.simulator.training import Training


@final
@dataclass(frozen=True)
class Setup:
    """Everything a bench is built from; small enough to send."""

    model: str
    shape: tuple[int, ...]
    classes: int
    training: Training
    seed: int
    plan: Plan


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
    finite: bool


@final
@dataclass(frozen=True)
class Evaluate:
    """Evaluate the shared state on a stretch of a held-out part."""

    part: str
    start: int
    stop: int


@final
@dataclass(frozen=True)
class Ready:
    """A worker's first answer: the bench stands."""


@final
@dataclass(frozen=True)
class Failure:
    """An answer that is none: what went wrong, as the worker saw it."""

    reason: str


Task = Train | Evaluate
Result = Trained | Tally

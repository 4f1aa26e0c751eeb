"""The trainer, which trains and evaluates a model on one thread, and the tasks it is given.

Every worker process has one trainer; without worker processes, the parent process has one. The
tasks and their results are small frozen records, sent from process to process.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bara.simulator._batches import CHUNK, Indices, Samples, Turn
from bara.simulator._networks import FusedSequential, Network, network_of
from bara.simulator._shared_memory import Arrays, MemoryLayout
from bara.simulator.losses import Loss, loss_of
from bara.simulator.models import build
from bara.simulator.privacy import PrivateGradient
from bara.simulator.training import Local, Training


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


@final
class Trainer:
    """A model over the shared arrays, and the tasks that can be done with it."""

    def __init__(self, setup: Setup, arrays: Arrays) -> None:
        """Build the model over the shared arrays."""
        shared = {name: torch.from_numpy(array) for name, array in arrays.items()}
        self._seed = setup.seed
        self._arrays: dict[str, Tensor] = shared
        self._loss = loss_of(setup.task, setup.training.loss)
        build_module = partial(build, setup.model, setup.shape, setup.outputs, setup.seed)
        self._network = network_of(build_module(), self._loss)
        self._train = Samples(shared["x_train"], shared["y_train"])
        self._held = Samples(shared["x_held"], shared["y_held"])
        private = None
        if setup.training.privacy is not None:
            private = PrivateGradient(build_module(), setup.training.privacy, self._loss)
        self._local = Local(self._network, setup.training, self._train, self._loss, private)

    def do(self, task: Task) -> TaskResult:
        """Do a task and return its result."""
        if isinstance(task, Train):
            return self._trained(task)
        return self._evaluated(task)

    def _trained(self, task: Train) -> Trained:
        indices = self._indices(task.client)
        state = self._arrays["state"]
        result = self._arrays["updates"][task.row]
        turn = Turn(self._seed, task.round, task.client)
        measured_before = measured_after = None
        if task.evidence:
            measured_before = self._mean_loss(state, indices)
        randomness: AbstractContextManager[None] = nullcontext()
        if not isinstance(self._network, FusedSequential):  # fused layers draw no random numbers
            randomness = _own_randomness(turn)
        with randomness:
            loss_before = self._local.train(state, indices, turn, result)
        if loss_before is None:
            loss_before = measured_before
        if task.evidence:
            measured_after = self._mean_loss(result, indices)
        return Trained(task.row, loss_before, measured_after)

    def _evaluated(self, task: Evaluate) -> Tally:
        self._network.state.copy_(self._arrays["state"])
        stretch = self._arrays[f"held/{task.part}"][task.start : task.stop]
        return tally(self._network, self._loss, self._held, stretch, scores=task.scores)

    def _indices(self, client: int) -> range:
        """Return the rows of the training samples that belong to a client."""
        start, stop = self._arrays["bounds"][client : client + 2].tolist()
        return range(start, stop)

    def _mean_loss(self, state: Tensor, indices: range) -> float:
        self._network.state.copy_(state)
        counted = tally(self._network, self._loss, self._train, indices)
        return counted.loss / counted.samples


def tally(
    network: Network, loss: Loss, samples: Samples, indices: Indices, *, scores: bool = False
) -> Tally:
    """Evaluate a network on the samples at these indices.

    Chunks have a fixed size, so that the floating-point sum is the same in every process.

    Args:
        network: The network, with the state to evaluate.
        loss: The loss to sum, which also counts right answers.
        samples: The stored samples.
        indices: The samples to evaluate.
        scores: Whether the tally includes a copy of the scores.
    """
    total = Tally()
    with network.context():
        for x, y in samples.batches(indices, CHUNK):
            found = network.scores(x)
            copies = (found.float().numpy().copy(),) if scores else ()
            total += Tally(loss.right(found, y), float(loss.total(found, y)), len(y), copies)
    return total


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread, as in the workers, so that sums have the same bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _own_randomness(turn: Turn) -> Iterator[None]:
    """Seed torch from the turn alone, for modules that draw random numbers (such as dropout)."""
    with torch.random.fork_rng(devices=[]):
        # torch.manual_seed would also store a stack trace for every kind of accelerator.
        seed = np.random.SeedSequence(turn).generate_state(1)[0]
        torch.default_generator.manual_seed(int(seed))
        yield

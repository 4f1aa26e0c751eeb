"""What does a worker's tasks: a model over the shared arrays, trained and evaluated on one thread.

There is one in every worker process, and one in this process where it is the only worker.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import final

import numpy as np
import torch
from torch import Tensor

from bara.simulator._batches import CHUNK, Indices, Samples, Turn
from bara.simulator._fused.sequential import FusedSequential
from bara.simulator._networks import Network, network_of
from bara.simulator._workers.shared_memory import Arrays
from bara.simulator._workers.tasks import Evaluate, Setup, Tally, Task, TaskResult, Train, Trained
from bara.simulator.losses import Loss, loss_of
from bara.simulator.models import build
from bara.simulator.privacy import PrivateGradient
from bara.simulator.training import Local


@final
class Trainer:
    """Does tasks, one at a time, on one thread."""

    def __init__(self, setup: Setup, arrays: Arrays) -> None:
        """Build the model over the shared arrays."""
        held: dict[str, Tensor] = {name: torch.from_numpy(array) for name, array in arrays.items()}
        self._seed = setup.seed
        self._arrays = held
        self._loss = loss_of(setup.task, setup.training.loss)
        self._network = network_of(
            build(setup.model, setup.shape, setup.outputs, setup.seed), self._loss
        )
        self._train = Samples(held["x_train"], held["y_train"])
        self._held = Samples(held["x_held"], held["y_held"])
        privacy = setup.training.privacy
        private = privacy and PrivateGradient(
            build(setup.model, setup.shape, setup.outputs, setup.seed), privacy, self._loss
        )
        self._local = Local(self._network, setup.training, self._train, self._loss, private)

    def do(self, task: Task) -> TaskResult:
        """Do what the task says."""
        return self._trained(task) if isinstance(task, Train) else self._evaluated(task)

    def _trained(self, task: Train) -> Trained:
        part = self._part(task.client)
        state, result = self._arrays["state"], self._arrays["updates"][task.row]
        before = self._mean_loss(state, part) if task.evidence else None
        turn = Turn(self._seed, task.round, task.client)
        with nullcontext() if isinstance(self._network, FusedSequential) else _own_randomness(turn):
            free = self._local.train(state, part, turn, result)
        after = self._mean_loss(result, part) if task.evidence else None
        return Trained(task.row, before if free is None else free, after)

    def _evaluated(self, task: Evaluate) -> Tally:
        self._network.state.copy_(self._arrays["state"])
        stretch = self._arrays[f"held/{task.part}"][task.start : task.stop]
        return tally(self._network, self._loss, self._held, stretch, scores=task.scores)

    def _part(self, client: int) -> range:
        return range(*self._arrays["bounds"][client : client + 2].tolist())

    def _mean_loss(self, state: Tensor, part: range) -> float:
        self._network.state.copy_(state)
        counted = tally(self._network, self._loss, self._train, part)
        return counted.loss / counted.samples


def tally(
    network: Network, loss: Loss, samples: Samples, indices: Indices, *, scores: bool = False
) -> Tally:
    """Count in chunks of a fixed size: the sum is the same whoever computes which part."""
    total = Tally()
    with network.context():
        for x, y in samples.batches(indices, CHUNK):
            found = network.scores(x)
            kept = (found.float().numpy().copy(),) if scores else ()
            total += Tally(loss.right(found, y), float(loss.total(found, y)), len(y), kept)
    return total


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, as the workers do: sums then come out the same, and nobody competes for a core."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _own_randomness(turn: Turn) -> Iterator[None]:
    """Let a module that draws numbers (dropout, say) draw the same ones whoever trains this client."""
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed: it would also keep a stack trace for every kind of accelerator that
        # might come yet.
        seed = np.random.SeedSequence(turn).generate_state(1)[0]
        torch.default_generator.manual_seed(int(seed))
        yield

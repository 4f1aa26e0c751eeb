"""The engine: local training of many clients, with the same bits on any number of processes.

Three rules make the results independent of the number of worker processes: a client's update
depends on (seed, round, client) and the state alone, evaluation is counted in stretches of a fixed
size, and every sum is taken in the order of the clients or stretches.
"""

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, final

import numpy as np
from numpy.typing import NDArray

from bara.clients.conduct import State, Updates
from bara.errors import ConfigError, DatasetError, TrainingError
from bara.server.metrics import check_task, find_measure
from bara.simulator._layout import Layout
from bara.simulator._pool import InProcess, Processes, WorkerPool
from bara.simulator._shared_memory import Arrays, MemoryLayout, unnamed_file
from bara.simulator._trainer import Evaluate, Setup, Tally, Train, Trained
from bara.simulator.models import build
from bara.simulator.training import Training

Array = NDArray[Any]
STRETCH = 1000
"""The number of held-out samples that a worker evaluates in one task."""


@final
@dataclass(frozen=True, eq=False)
class Data:
    """The clients' training samples and the server's held-out samples.

    Nothing is checked here; a `bara.datasets.Dataset` and its partition have been checked already.

    Attributes:
        x_train: The training samples, one per row: pictures as (n, height, width) or
            (n, height, width, channels), tables as (n, features). Bytes (uint8) are divided by 255
            when a batch is made, and stored in a quarter of the memory; floating-point numbers are
            used as they are.
        y_train: The label of each training sample: an int64 from 0 to classes - 1, or any number in
            a regression.
        x_held: The server's held-out samples.
        y_held: The labels of the held-out samples.
        classes: The number of classes.
        held: The named subsets of the held-out samples, such as `validation` and `test`, by index.
        parts: Each client's samples, by index into the training samples.
        task: What is learned: `classes`, `binary` (by a single score) or `regression`.
    """

    x_train: Array
    y_train: Array
    x_held: Array
    y_held: Array
    classes: int
    held: Mapping[str, Array]
    parts: Sequence[Array]
    task: str = "classes"

    @property
    def outputs(self) -> int:
        """The number of scores that a model gives each sample."""
        return self.classes if self.task == "classes" else 1

    @property
    def shape(self) -> tuple[int, ...]:
        """One sample's shape as torch sees it: (channels, height, width), or (features,)."""
        match self.x_train.shape[1:]:
            case (features,):
                return (features,)
            case (height, width):
                return (1, height, width)
            case (height, width, channels):
                return (channels, height, width)
            case shape:
                raise DatasetError(
                    "samples must have shape (features) or (height, width[, channels]), "
                    f"got {shape}"
                )


class Score(NamedTuple):
    """The quality of a state on held-out samples: the engine's metric and the mean loss."""

    accuracy: float
    loss: float
    samples: int


@final
class Engine(AbstractContextManager["Engine"]):
    """An engine that trains clients and evaluates states; leaving its context ends its workers."""

    def __init__(
        self,
        model: str,
        training: Training,
        data: Data,
        *,
        seed: int,
        workers: int,
        metric: str = "accuracy",
    ) -> None:
        """Copy the data into shared memory and start the workers.

        Args:
            model: A name from `models.MODELS`, or `package.module:Name`.
            training: The local training of every client.
            data: The clients' training samples and the server's held-out samples.
            seed: The seed of the initial state, of the order of batches, and of all random numbers
                that a module draws.
            workers: The number of worker processes; 1 trains in this process.
            metric: The metric of evaluations: a name from `bara.server.metrics`, or
                `package.module:name`.
        """
        check_task(metric, data.task)
        self._measure = find_measure(metric)
        self._targets = data.y_held
        module = build(model, data.shape, data.outputs, seed)
        self.layout = Layout.of(module)
        self._start: State = self.layout.read(module).numpy()
        self._samples = list(map(len, data.parts))
        self._held = {name: np.asarray(indices) for name, indices in data.held.items()}
        content = _content(data)
        memory = _memory(content, self.layout.size, len(data.parts))
        setup = Setup(model, data.shape, data.outputs, data.task, training, seed, memory)
        self._arrays, self._pool = _start_pool(setup, content, workers)

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        self.close()

    def close(self) -> None:
        """End the workers, which frees the shared memory."""
        self._pool.close()

    def start(self) -> State:
        """Return the initial state: all that the model learns, as a flat vector (see `layout`)."""
        return self._start.copy()

    def train(
        self, state: State, round: int, clients: Sequence[int], *, evidence: bool = False
    ) -> Updates:
        """Train these clients from this state, each on its own samples.

        Args:
            state: The state that every client starts from.
            round: The number of the round, on which the order of batches depends.
            clients: The clients' numbers, each at most once; the updates have the same order.
            evidence: Whether to measure each client's loss before and after training.
        """
        self._check_clients(clients)
        self._share(state, f"before round {round}")
        tasks = [Train(round, client, row, evidence) for row, client in enumerate(clients)]
        # The longest tasks come first, so that no worker is left with a long one at the end.
        tasks.sort(key=lambda task: -self._samples[task.client])
        results = cast("list[Trained]", self._pool.run(tasks))
        results.sort(key=lambda result: result.row)
        return Updates(
            round=round,
            clients=tuple(clients),
            states=self._arrays["updates"][: len(clients)],
            samples=tuple(self._samples[client] for client in clients),
            loss_before=tuple(result.loss_before for result in results),
            loss_after=tuple(result.loss_after for result in results),
        )

    def evaluate(self, state: State, part: str = "test") -> Score:
        """Return the metric and the mean loss of a state on a named set of held-out samples."""
        if part not in self._held:
            raise ConfigError(
                f"there is no held-out part {part!r}; there are {', '.join(self._held)}"
            )
        self._share(state, f"before evaluation on {part!r}")
        length = len(self._held[part])
        with_scores = self._measure is not None
        tasks = []
        for start in range(0, length, STRETCH):
            stop = min(start + STRETCH, length)
            tasks.append(Evaluate(part, start, stop, with_scores))
        tallies = cast("list[Tally]", self._pool.run(tasks))
        total = sum(tallies, Tally())
        if not math.isfinite(total.loss):
            raise TrainingError(
                f"the loss on {part!r} is {total.loss}; a smaller learning rate may help"
            )
        if self._measure is None:
            accuracy = total.right / total.samples
        else:
            accuracy = self._measure(np.concatenate(total.scores), self._targets[self._held[part]])
        return Score(accuracy, total.loss / total.samples, total.samples)

    def _share(self, state: State, when: str) -> None:
        """Copy a state to where the workers read it; refuse one that does not fit the model."""
        given = np.asarray(state)
        if given.shape != (self.layout.size,):
            raise ConfigError(
                f"this model's state must have shape ({self.layout.size},), got {given.shape}"
            )
        if not np.isfinite(given).all():
            raise TrainingError(
                f"the model holds numbers that are not finite {when}; use a smaller learning rate"
            )
        self._arrays["state"][:] = given

    def _check_clients(self, clients: Sequence[int]) -> None:
        known = len(self._samples)
        repeated = len(set(clients)) != len(clients)
        if not clients or repeated or min(clients) < 0 or max(clients) >= known:
            raise ConfigError(
                f"clients must be at least one of 0 to {known - 1}, each once, got {list(clients)}"
            )


def _content(data: Data) -> Arrays:
    """Return the arrays to share, with each client's samples in consecutive rows.

    A worker then reads a client's samples without gathering them; a sample that two clients have is
    stored twice.
    """
    order = np.concatenate(data.parts)
    sizes = list(map(len, data.parts))
    label_type = np.int64 if data.task == "classes" else np.float32
    content = {
        "x_train": _stored(data.x_train[order]),
        "x_held": _stored(data.x_held),
        "y_train": data.y_train[order].astype(label_type),
        "y_held": data.y_held.astype(label_type),
    }
    for name, indices in data.held.items():
        content[f"held/{name}"] = indices
    content["bounds"] = np.cumsum([0, *sizes])
    return content


def _stored(x: Array) -> Array:
    """Return samples as they are stored: pictures with channels last; uint8 or float32."""
    if x.ndim == 3:
        x = x[..., None]
    if x.dtype == np.uint8:
        return x
    return x.astype(np.float32, copy=False)


def _memory(content: Arrays, size: int, clients: int) -> MemoryLayout:
    """Plan the shared memory: the content, a state of this size, and an update for each client."""
    kinds: dict[str, tuple[tuple[int, ...], Any]] = {}
    for name, array in content.items():
        kinds[name] = (array.shape, array.dtype)
    kinds["state"] = ((size,), np.float32)
    kinds["updates"] = ((clients, size), np.float32)
    return MemoryLayout.of(kinds)


def _start_pool(setup: Setup, content: Arrays, workers: int) -> tuple[Arrays, WorkerPool]:
    """Fill the shared memory with the content and start the workers on it."""
    file = unnamed_file(setup.memory.size)
    try:
        arrays = setup.memory.attach(file)
        for name, array in content.items():
            arrays[name][...] = array
        if workers == 1:
            return arrays, InProcess(setup, arrays)
        return arrays, Processes(setup, file, workers)
    finally:
        os.close(file)

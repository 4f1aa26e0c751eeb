"""The engine: many clients' local training, spread over worker processes, the same bit for bit on any number of them.

What makes it the same: a client's update depends on (seed, round, client) and the state alone,
evaluation is counted in stretches of a fixed size, and every sum is taken in the clients' or
stretches' order.
"""

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bara.clients.updates import State, Updates
from bara.errors import ConfigError, DatasetError, TrainingError
from bara.server.metrics import check_task, measure_of
from bara.simulator._layout import Layout
from bara.simulator._workers.pool import InProcess, Processes, WorkerPool
from bara.simulator._workers.shared_memory import Arrays, MemoryLayout, unnamed_file
from bara.simulator._workers.tasks import Evaluate, Setup, Tally, Train, Trained
from bara.simulator.models import build
from bara.simulator.training import Training

Array = NDArray[Any]
STRETCH = 1000
"""Held-out samples that one worker evaluates at a time."""


@final
@dataclass(frozen=True, eq=False)
class Data:
    """Samples to train on, samples the server keeps, and which of those decide and which are reported.

    Nothing is checked here: a `bara.datasets.Dataset` and its partition are.

    Attributes:
        x_train: samples first; pictures as (n, height, width) or (n, height, width, channels),
            tables as (n, features). Whole numbers of type uint8 are divided by 255 when a batch is
            made (they are stored as they are, a quarter of the memory); floating-point numbers are
            taken as they are.
        y_train: a whole number from 0 to classes - 1 for each, int64; any number in a regression.
        x_held: the server's held-out samples.
        y_held: their labels.
        classes: how many classes there are.
        held: the named parts of the held-out set by index, `validation` and `test` say.
        parts: each client's samples by index into the training data.
        task: what is learned: `classes`, `binary` (by a single score) or `regression`.
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
        """How many scores a sample gets."""
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
                    f"samples must have shape (features) or (height, width[, channels]), got {shape}"
                )


class Score(NamedTuple):
    """How good a state is on a held-out part: by the engine's metric, and by the loss."""

    accuracy: float
    loss: float
    samples: int


@final
class Engine(AbstractContextManager["Engine"]):
    """Trains clients and evaluates states; a context manager, because it holds processes."""

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
        """Store the data once, start the workers.

        Args:
            model: a name from `models.MODELS`, or `package.module:Name`.
            training: how every client trains.
            data: what on, and what the server keeps to evaluate on.
            seed: of the initial state, the order of batches, and whatever a module draws.
            workers: processes to train in; 1 trains in this one.
            metric: what evaluation tells: a name from `bara.server.metrics`, or
                `package.module:name`.
        """
        check_task(metric, data.task)
        self._measure = measure_of(metric)
        self._targets = data.y_held
        module = build(model, data.shape, data.outputs, seed)
        self.layout = Layout.of(module)
        self._start: State = self.layout.read(module).numpy()
        self._samples = [len(part) for part in data.parts]
        self._held = {name: np.asarray(part) for name, part in data.held.items()}
        content = _content(data)
        memory = _memory(content, self.layout.size, len(data.parts))
        setup = Setup(model, data.shape, data.outputs, data.task, training, seed, memory)
        self._arrays, self._pool = _start_pool(setup, content, workers)

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End the workers; the shared memory goes with them."""
        self._pool.close()

    def start(self) -> State:
        """The initial state: everything the model learns, in one flat vector (see `layout`)."""
        return self._start.copy()

    def train(
        self, state: State, round: int, clients: Sequence[int], *, evidence: bool = False
    ) -> Updates:
        """Train these clients from this state, each on its own samples."""
        self._check_clients(clients)
        self._share(state, f"before round {round}")
        tasks = [Train(round, client, row, evidence) for row, client in enumerate(clients)]
        tasks.sort(
            key=lambda task: -self._samples[task.client]
        )  # the longest first: nobody waits for it at the end
        told = [one for one in self._pool.run(tasks) if isinstance(one, Trained)]
        return self._updates(round, tuple(clients), sorted(told, key=lambda one: one.row))

    def evaluate(self, state: State, part: str = "test") -> Score:
        """The metric and the mean loss on a held-out part."""
        if part not in self._held:
            raise ConfigError(
                f"there is no held-out part {part!r}; there are {', '.join(self._held)}"
            )
        self._share(state, f"before evaluation on {part!r}")
        length, wanted = len(self._held[part]), self._measure is not None
        tasks = [
            Evaluate(part, start, min(start + STRETCH, length), wanted)
            for start in range(0, length, STRETCH)
        ]
        total = sum((one for one in self._pool.run(tasks) if isinstance(one, Tally)), Tally())
        if not math.isfinite(total.loss):
            raise TrainingError(
                f"the loss on {part!r} is {total.loss}; a smaller learning rate may help"
            )
        accuracy = total.right / total.samples
        if self._measure is not None:
            accuracy = self._measure(np.concatenate(total.scores), self._targets[self._held[part]])
        return Score(accuracy, total.loss / total.samples, total.samples)

    def _share(self, state: State, when: str) -> None:
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
        strange = [client for client in clients if not 0 <= client < known]
        if strange or not clients or len(set(clients)) != len(clients):
            raise ConfigError(
                f"clients must be at least one of 0 to {known - 1}, each once, got {list(clients)}"
            )

    def _updates(self, round: int, clients: tuple[int, ...], told: list[Trained]) -> Updates:
        return Updates(
            round=round,
            clients=clients,
            states=self._arrays["updates"][: len(clients)],
            samples=tuple(self._samples[client] for client in clients),
            loss_before=tuple(one.loss_before for one in told),
            loss_after=tuple(one.loss_after for one in told),
        )


def _content(data: Data) -> Arrays:
    """What is stored: each client's samples in a row, so that nobody gathers them; a sample of two is stored twice."""
    order = np.concatenate(data.parts)
    bounds = np.cumsum([0, *(len(part) for part in data.parts)])
    held = {f"held/{name}": part for name, part in data.held.items()}
    pictures = {"x_train": _stored(data.x_train[order]), "x_held": _stored(data.x_held)}
    kind = np.int64 if data.task == "classes" else np.float32
    labels = {"y_train": data.y_train[order].astype(kind), "y_held": data.y_held.astype(kind)}
    return {**pictures, **labels, **held, "bounds": bounds}


def _stored(x: Array) -> Array:
    with_channels = x[..., None] if x.ndim == 3 else x
    return with_channels if x.dtype == np.uint8 else with_channels.astype(np.float32, copy=False)


def _memory(content: Arrays, size: int, clients: int) -> MemoryLayout:
    kinds: dict[str, tuple[tuple[int, ...], Any]] = {
        name: (a.shape, a.dtype) for name, a in content.items()
    }
    return MemoryLayout.of(
        {**kinds, "state": ((size,), np.float32), "updates": ((clients, size), np.float32)}
    )


def _start_pool(setup: Setup, content: Arrays, workers: int) -> tuple[Arrays, WorkerPool]:
    file = unnamed_file(setup.memory.size)
    try:
        arrays = setup.memory.attach(file)
        for name, array in content.items():
            arrays[name][...] = array
        pool: WorkerPool = (
            InProcess(setup, arrays) if workers == 1 else Processes(setup, file, workers)
        )
    finally:
        os.close(file)
    return arrays, pool

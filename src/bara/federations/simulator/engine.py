"""The engine: many clients' local training, spread over worker processes, the same bit for bit on any number of them.

What makes it the same: a client's update depends on (seed, round, client) and the state alone, evaluation is counted
in stretches of a fixed size, and every sum is taken in the clients' or stretches' order.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from bara.errors import ConfigError, TrainingError
from bara.federations.simulator._evaluation import Tally
from bara.federations.simulator._layout import Layout
from bara.federations.simulator._workers.pool import Alone, Crew, Processes
from bara.federations.simulator._workers.shared_memory import Arrays, Plan, unnamed_file
from bara.federations.simulator._workers.tasks import Evaluate, Setup, Train, Trained
from bara.federations.simulator.data import Array, Data, check_parts
from bara.federations.simulator.models import build
from bara.federations.simulator.training import Training

State = NDArray[np.float32]
STRETCH = 1000
"""Held-out samples that one worker evaluates at a time."""


class Score(NamedTuple):
    """How good a state is on a held-out part."""

    accuracy: float
    loss: float
    samples: int


@final
@dataclass(frozen=True, eq=False)
class Updates:
    """What the clients of one round sent back.

    Attributes:
        round: which round it was.
        clients: who trained, in the order asked for; everything below is in that order.
        states: each one's whole flat state after training, a row each; valid until the next `train`, copy to keep.
        samples: how many each one trained on.
        loss_before: each one's mean loss on its own samples before training: with FedSGD always (the loss whose
            gradient was taken, so batch norm uses the batch's statistics), with FedAvg when evidence was asked for.
        loss_after: the same after training, when evidence was asked for.
        finite: whether all of its numbers are finite; one that is not must not be aggregated.
    """

    round: int
    clients: tuple[int, ...]
    states: State
    samples: tuple[int, ...]
    loss_before: tuple[float | None, ...]
    loss_after: tuple[float | None, ...]
    finite: tuple[bool, ...]


@final
class Engine:
    """Trains clients and evaluates states; a context manager, because it holds processes."""

    def __init__(
        self,
        model: str,
        training: Training,
        data: Data,
        parts: Sequence[Array],
        *,
        seed: int,
        workers: int = 1,
    ) -> None:
        """Store the data once, start the workers.

        Args:
            model: a name from `models.MODELS`, or `package.module:Name`.
            training: how every client trains.
            data: what on, and what the server keeps to evaluate on.
            parts: each client's samples by index into the training data.
            seed: of the initial state, the order of batches, and whatever a module draws.
            workers: processes to train in; 1 trains in this one.
        """
        _check_count("workers", workers)
        indices = check_parts(parts, len(data.y_train))
        module = build(model, data.shape, data.classes, seed)
        self.layout = Layout.of(module)
        self._start: State = self.layout.read(module).numpy()
        self._samples = [len(part) for part in indices]
        self._held = {name: len(part) for name, part in data.held.items()}
        content = _content(data, indices)
        plan = _plan(content, self.layout.size, len(indices))
        setup = Setup(model, data.shape, data.classes, training, seed, plan)
        self._arrays, self._crew = _staff(setup, content, workers)

    def __enter__(self) -> Self:
        """The engine itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End the workers; the shared memory goes with them."""
        self._crew.close()

    def start(self) -> State:
        """The initial state: everything the model learns, in one flat vector (see `layout`)."""
        return self._start.copy()

    def train(self, state: State, round: int, clients: Sequence[int], *, evidence: bool = False) -> Updates:  # noqa: A002
        """Train these clients from this state, each on its own samples.

        Raises:
            TrainingError: when the state is not finite, a worker dies, or a module raises.
        """
        self._check_clients(clients)
        self._share(state, f"before round {round}")
        tasks = [Train(round, client, row, evidence) for row, client in enumerate(clients)]
        tasks.sort(key=lambda task: -self._samples[task.client])  # the longest first: nobody waits for it at the end
        told = sorted(self._crew.run(tasks), key=_row)
        return self._updates(round, tuple(clients), [one for one in told if isinstance(one, Trained)])

    def evaluate(self, state: State, part: str = "test") -> Score:
        """Accuracy and mean loss on a held-out part.

        Raises:
            TrainingError: when the state or the loss is not finite.
        """
        if part not in self._held:
            raise ConfigError(f"there is no held-out part {part!r}; there are {', '.join(self._held)}")
        self._share(state, f"before evaluation on {part!r}")
        length = self._held[part]
        tasks = [Evaluate(part, start, min(start + STRETCH, length)) for start in range(0, length, STRETCH)]
        total = sum((one for one in self._crew.run(tasks) if isinstance(one, Tally)), Tally())
        if not math.isfinite(total.loss):
            raise TrainingError(f"the loss on {part!r} is {total.loss}; a smaller learning rate may help")
        return Score(total.right / total.samples, total.loss / total.samples, total.samples)

    def _share(self, state: State, when: str) -> None:
        given = np.asarray(state)
        if given.shape != (self.layout.size,):
            raise ConfigError(f"a state of shape {given.shape} was given; this model's is ({self.layout.size},)")
        if not np.isfinite(given).all():
            raise TrainingError(f"the model holds numbers that are not finite {when}; use a smaller learning rate")
        self._arrays["state"][:] = given

    def _check_clients(self, clients: Sequence[int]) -> None:
        known = len(self._samples)
        strange = [client for client in clients if not 0 <= client < known]
        if strange or not clients or len(set(clients)) != len(clients):
            raise ConfigError(f"clients {list(clients)}: at least one, each once, from 0 to {known - 1}, are required")

    def _updates(self, round: int, clients: tuple[int, ...], told: list[Trained]) -> Updates:  # noqa: A002
        return Updates(
            round=round,
            clients=clients,
            states=self._arrays["updates"][: len(clients)],
            samples=tuple(self._samples[client] for client in clients),
            loss_before=tuple(one.loss_before for one in told),
            loss_after=tuple(one.loss_after for one in told),
            finite=tuple(one.finite for one in told),
        )


def _row(told: object) -> int:
    return told.row if isinstance(told, Trained) else -1


def _content(data: Data, indices: list[Array]) -> Arrays:
    """What is stored: each client's samples in a row, so that nobody gathers them; what two hold is there twice."""
    order = np.concatenate(indices)
    bounds = np.cumsum([0, *(len(part) for part in indices)])
    held = {f"held/{name}": part for name, part in data.held.items()}
    pictures = {"x_train": _stored(data.x_train[order]), "x_held": _stored(data.x_held)}
    labels = {"y_train": data.y_train[order].astype(np.int64), "y_held": data.y_held.astype(np.int64)}
    return {**pictures, **labels, **held, "bounds": bounds}


def _stored(x: Array) -> Array:
    with_channels = x[..., None] if x.ndim == 3 else x
    return with_channels if x.dtype == np.uint8 else with_channels.astype(np.float32, copy=False)


def _plan(content: Arrays, size: int, clients: int) -> Plan:
    kinds: dict[str, tuple[tuple[int, ...], Any]] = {name: (a.shape, a.dtype) for name, a in content.items()}
    return Plan.of({**kinds, "state": ((size,), np.float32), "updates": ((clients, size), np.float32)})


def _staff(setup: Setup, content: Arrays, workers: int) -> tuple[Arrays, Crew]:
    file = unnamed_file(setup.plan.size)
    try:
        arrays = setup.plan.attach(file)
        for name, array in content.items():
            arrays[name][...] = array
        crew: Crew = Alone(setup, arrays) if workers == 1 else Processes(setup, file, workers)
    finally:
        os.close(file)
    return arrays, crew


def _check_count(name: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise ConfigError(f"{name} is {value!r}; it must be a whole number of at least 1")

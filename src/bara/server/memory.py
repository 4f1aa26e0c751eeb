"""The memory of each client's last accepted update, and the step that all of them make together.

Without a memory, only the winners of a round shape its model. With one, every client that was ever
paid does (MIFA, Gu et al. 2021):

    w' = w + s d,     d = sum_i p_i m_i

Notation:
    w       the model's parameters
    m_i     the fresh update of a winner, the remembered update of any other client
    p_i     weights that sum to 1: data sizes, or the mechanism's
    s       the size of the step; 1 for `plain` memory
    c       how far the spread of the updates is trusted, learned from losses after earlier steps

Clients with different data pull in different directions. Their mean d is short compared with the
individual updates, and a step of size 1 along it is timid. `extrapolated` memory takes

    s = c (sum_i p_i |m_i|^2) / (2 |d|^2),   the fraction at least 1

which with c = 1 is FedExP's step (Jhunjhunwala et al. 2023), here over all clients instead of the
winners alone. A round after which the validation loss fell raises c by a fifth; one after which it
rose halves c. A step is at most a fifth larger than the one before. A step that makes the loss more
than a fifth worse is taken back: the model stays as it was, but the updates stay remembered.
"""

import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from bara.plugins import Registry
from bara.server.checkpoints import Arrays, Checkpoint

Vector = NDArray[np.float32]

RISE = 1.2
"""The factor for c after the loss fell; also the limit to a step's growth and to a worse loss."""

FALL = 0.5
"""The factor for c after the loss rose."""

LEAST = 1 / 16
"""The smallest c: a model that no longer improves goes on with small steps."""

TURNS = 10
"""How often clients may have had a turn, on average, before an update is too old to count.

If clients are recruited at random, one update in 20,000 gets that old. A client whose update does
is being passed over, and the update belongs to a model of long ago.
"""

SHARE_OF_RAM = 0.25
"""The share of the machine's RAM for remembered updates; further ones go to unnamed files."""

PREFIX = "updates-"
"""The start of the name of a checkpoint's piece that holds the remembered updates of a round."""


class Fresh(NamedTuple):
    """An accepted update.

    Attributes:
        update: The difference that training made to the model's parameters.
        weight: The weight of the update, relative to the weights of other updates.
        note: Anything else to remember with the update.
    """

    update: Vector
    weight: float
    note: str = ""


class Memory(Protocol):
    """A memory of updates, and the step that they make together.

    A round is told to a shallow copy, which takes the place of the memory once its step is taken:
    `tell` must replace what it changes, not change it in place.
    """

    @property
    def clients(self) -> Collection[str]:
        """The clients of which an update is remembered."""

    @property
    def size(self) -> float:
        """The size of the last step, in parts of the mean update."""

    def tell(self, round: int, fresh: Mapping[str, Fresh]) -> Vector:
        """Take in the accepted updates of a round; return the step that the model takes."""

    def step_of(self, clients: Collection[str]) -> Vector:
        """Return the step that the last `tell` would have made of these clients' updates alone."""

    def judge(self, loss: float) -> bool:
        """Learn from the loss after a step; return False if the step must be taken back."""

    def remembered(self, round: int) -> Iterator[tuple[str, Fresh]]:
        """Yield the clients without a fresh update in a round, each with its last update."""

    def ages(self, round: int) -> dict[int, int]:
        """Return the number of remembered updates by age in rounds."""

    def forget(self, client: str, round: int) -> None:
        """Drop what a client taught up to and including a round."""

    def forget_outdated(
        self, round: int, absent: Collection[str] | None, after: int
    ) -> tuple[str, ...]:
        """Drop stale updates and those of absent clients; return the clients' names."""

    def pieces(self) -> dict[str, Callable[[], Arrays]]:
        """Return a checkpoint's pieces: by name, a function that returns arrays."""

    def state(self) -> dict[str, Any]:
        """Return what else to save in a checkpoint, as values that JSON can hold."""

    def restore(self, extra: Mapping[str, Any], pieces: Mapping[str, Checkpoint]) -> None:
        """Restore a memory from `state` and the pieces of a checkpoint."""


MEMORIES: Registry[Memory] = Registry(
    "memory",
    {"plain": "bara.server.memory:plain", "extrapolated": "bara.server.memory:extrapolated"},
)
"""Our own memories by name; others by import path, with options (`package.module:Name:rate=2`)."""


@final
@dataclass(eq=False)
class _Row:
    """A remembered update.

    Attributes:
        update: The difference that training made.
        weight: Its relative weight.
        note: Anything else to remember with the update.
        round: The round in which the update was accepted.
        accepted: The number of updates, of all clients, accepted up to and including that round.
        square: The squared norm of the update; 0 for `plain` memory, which does not need it.
    """

    update: Vector
    weight: float
    note: str
    round: int
    accepted: int
    square: float


@final
class UpdateMemory:
    """The last accepted update of every client that has delivered one.

    Args:
        extrapolated: Whether to learn how far to go along the mean update; otherwise a step is the
            mean update.
        folder: The folder for updates that do not fit in RAM; None for the system's temporary one.

    Attributes:
        size: s, the size of the last step.

    >>> north, south = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    >>> memory = UpdateMemory(extrapolated=False)
    >>> memory.tell(1, {"north": Fresh(north, weight=1)}).tolist()
    [1.0, 0.0]
    >>> memory.tell(2, {"south": Fresh(south, weight=3)}).tolist()  # north's update still counts
    [0.25, 0.75]
    >>> memory.ages(2)
    {1: 1}
    """

    def __init__(self, *, extrapolated: bool, folder: Path | None = None) -> None:
        self._extrapolated = extrapolated
        self._folder = folder
        self._rows: dict[str, _Row] = {}
        self._trust = 1.0
        self._loss: float | None = None
        self._accepted = 0  # updates of all clients so far
        self._away: dict[str, int] = {}  # by client, the round since which it has not bid
        self._forgotten: dict[str, int] = {}  # by client, the last round that is forgotten
        self.size = 1.0

    @property
    def clients(self) -> Collection[str]:
        """The clients of which an update is remembered."""
        return self._rows.keys()

    def tell(self, round: int, fresh: Mapping[str, Fresh]) -> Vector:
        """Remember new updates in place of their clients' earlier ones, and compute the step.

        Args:
            round: The round in which the updates were accepted.
            fresh: The accepted updates by client.

        Returns:
            The step that the model takes, s d.
        """
        self._rows = dict(self._rows)  # a shallow copy of this memory keeps its own rows
        self._accepted += len(fresh)
        for client, one in fresh.items():
            self._put(round, self._accepted, client, one)
        rows = [self._rows[client] for client in sorted(self._rows)]
        total = math.fsum(row.weight for row in rows)
        step = np.zeros_like(rows[0].update)
        scaled = np.empty_like(step)
        for row in rows:
            step += np.multiply(row.update, np.float32(row.weight / total), out=scaled)
        if not self._extrapolated:
            return step
        square = _square(step)
        if square:
            mean_square = math.fsum(row.weight * row.square for row in rows) / total
            wanted = self._trust * max(mean_square / (2 * square), 1.0)
            self.size = min(wanted, RISE * self.size)
            step *= np.float32(self.size)
        return step

    def step_of(self, clients: Collection[str]) -> Vector:
        """Return the step that the last `tell` would have made of these clients' updates alone.

        Args:
            clients: Some of the clients of which an update is remembered.
        """
        total = math.fsum(self._rows[client].weight for client in clients)
        step = np.zeros_like(next(iter(self._rows.values())).update)
        for client in sorted(clients):
            row = self._rows[client]
            if total > 0:
                step += row.update * np.float32(row.weight / total * self.size)
        return step

    def judge(self, loss: float) -> bool:
        """Learn from the loss after a step; return False if the step must be taken back."""
        if not self._extrapolated:
            return True
        before = self._loss
        if before is None:  # the first step is taken in any case
            self._loss = loss
            return True
        # NaN compares as False, so that a loss of NaN counts as worse.
        factor = RISE if loss <= before else FALL
        self._trust = max(self._trust * factor, LEAST)
        is_acceptable = loss <= before + (RISE - 1) * abs(before)
        if not is_acceptable:
            self.size *= FALL
            return False
        self._loss = loss
        return True

    def remembered(self, round: int) -> Iterator[tuple[str, Fresh]]:
        """Yield the clients without a fresh update in a round, each with its last update."""
        for client in sorted(self._rows):
            row = self._rows[client]
            if row.round != round:
                yield client, Fresh(row.update, row.weight, row.note)

    def ages(self, round: int) -> dict[int, int]:
        """Return the number of remembered updates by age in rounds; fresh updates do not count."""
        ages = Counter(round - row.round for row in self._rows.values())
        return {age: ages[age] for age in sorted(ages) if age}

    # --- forgetting ------------------------------------------------------------------------------

    def forget(self, client: str, round: int) -> None:
        """Drop what a client taught up to and including a round."""
        if self._rows.pop(client, None) is not None:
            self._forgotten[client] = round

    def forget_outdated(
        self, round: int, absent: Collection[str] | None, after: int
    ) -> tuple[str, ...]:
        """Drop stale updates and those of absent clients; return the clients' names.

        Args:
            round: The round that begins.
            absent: The clients that do not bid in the round; None if that is not known.
            after: The number of rounds without a bid after which a client's update is dropped.
        """
        oldest = self._accepted - TURNS * len(self._rows)
        gone = {client for client, row in self._rows.items() if row.accepted < oldest}
        if absent is not None:
            away: dict[str, int] = {}
            for client in absent:
                if client in self._rows:
                    away[client] = self._away.get(client, round)
            self._away = away
            gone |= {client for client, since in away.items() if round - since >= after}
        for client in gone:
            self.forget(client, round - 1)
        return tuple(sorted(gone))

    # --- checkpoints -----------------------------------------------------------------------------

    def pieces(self) -> dict[str, Callable[[], Arrays]]:
        """Return a checkpoint's pieces: by name, a function that returns one round's updates."""
        rounds = {row.round for row in self._rows.values()}
        return {f"{PREFIX}{number}": partial(self._piece, number) for number in sorted(rounds)}

    def state(self) -> dict[str, Any]:
        """Return what else to save in a checkpoint, as values that JSON can hold."""
        accepted = {str(row.round): row.accepted for row in self._rows.values()}
        accepted["all"] = self._accepted
        return {
            "size": self.size,
            "trust": self._trust,
            "loss": self._loss,
            "accepted": accepted,
            "away": self._away,
            "forgotten": self._forgotten,
        }

    def restore(self, extra: Mapping[str, Any], pieces: Mapping[str, Checkpoint]) -> None:
        """Restore a memory from a checkpoint.

        Args:
            extra: What `state` returned.
            pieces: The checkpoint's pieces by name; those that are not updates are ignored.
        """
        self.size = extra["size"]
        self._trust = extra["trust"]
        self._loss = extra["loss"]
        self._away = dict(extra["away"])
        self._forgotten = dict(extra["forgotten"])
        accepted = extra.get("accepted", {})  # a checkpoint of bara 0.2.0 lacks it
        self._accepted = accepted.get("all", 0)
        updates: dict[int, Arrays] = {}
        for name, piece in pieces.items():
            if name.startswith(PREFIX):
                updates[int(name.removeprefix(PREFIX))] = piece.arrays
        for number, arrays in sorted(updates.items()):
            clients = arrays["clients"].tolist()
            weights = arrays["weights"].tolist()
            notes = arrays["notes"].tolist()
            columns = zip(clients, arrays["updates"], weights, notes, strict=True)
            for client, update, weight, note in columns:
                if number > self._forgotten.get(client, -1):
                    one = Fresh(update, weight, note)
                    self._put(number, accepted.get(str(number), 0), client, one)

    def _piece(self, number: int) -> Arrays:
        """Return the updates that are remembered of one round, in columns."""
        rows = {client: row for client, row in sorted(self._rows.items()) if row.round == number}
        return {
            "clients": np.array(list(rows)),
            "updates": np.array([row.update for row in rows.values()]),
            "weights": np.array([row.weight for row in rows.values()]),
            "notes": np.array([row.note for row in rows.values()]),
        }

    # --- inside ----------------------------------------------------------------------------------

    def _put(self, round: int, accepted: int, client: str, one: Fresh) -> None:
        """Remember one update in place of the client's earlier one."""
        self._rows.pop(client, None)
        update = self._vector(len(one.update))
        np.copyto(update, one.update)
        square = _square(update) if self._extrapolated else 0.0
        self._rows[client] = _Row(update, one.weight, one.note, round, accepted, square)

    def _vector(self, size: int) -> Vector:
        """Allocate one more update: in RAM or, beyond the share of RAM, in an unnamed file."""
        needed = 4 * size * (len(self._rows) + 1)
        if needed <= SHARE_OF_RAM * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
            return np.empty(size, np.float32)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            file.truncate(4 * size)
            return np.memmap(file, np.float32, "r+", shape=(size,))


def plain(folder: Path | None = None) -> UpdateMemory:
    """Return a memory whose step is the mean of all remembered updates."""
    return UpdateMemory(extrapolated=False, folder=folder)


def extrapolated(folder: Path | None = None) -> UpdateMemory:
    """Return a memory that learns how far to go along the mean of all remembered updates."""
    return UpdateMemory(extrapolated=True, folder=folder)


def _square(vector: Vector) -> float:
    """Return the squared norm, but not by BLAS, whose result depends on the number of threads."""
    return float(np.sum(np.square(vector, dtype=np.float64)))

"""What was paid for keeps working: each client's last accepted update, and the step that the model takes by them all.

Without a memory a round's model is made of this round's winners alone. With one, everybody who was
ever paid counts (MIFA, Gu et al. 2021):

    w' = w + s d,     d = sum_i p_i m_i

Notation:
    w       the model's parameters
    m_i     the fresh update of a winner, the remembered one of everybody else
    p_i     weights that sum to 1: data sizes, or the mechanism's
    s       the size of the step: 1 where memory is `plain`
    c       how far the spread of the updates is trusted, learned from the losses that earlier steps led to

Clients that hold different data pull in different directions. What they agree on is short beside
what each of them has moved, and a step of size 1 along it is timid: `extrapolated` memory takes

    s = c (sum_i p_i |m_i|^2) / (2 |d|^2),   the fraction at least 1

which with c = 1 is FedExP's step (Jhunjhunwala et al. 2023), here over everybody and not over the
winners alone. A round whose loss on validation data fell raises c by a fifth, one whose loss rose
halves it. A step grows by a fifth per round at most, and one that makes the loss more than a fifth
worse is taken back: the model stays as it was, and what was paid for stays remembered.
"""

import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bara.server.checkpoints import Arrays, Checkpoint

Vector = NDArray[np.float32]
Variant = Literal["off", "plain", "extrapolated"]
"""`plain` memory takes the mean of all updates, `extrapolated` memory learns how far to go along it."""

RISE, FALL = 1.2, 0.5
"""What c is multiplied by when the loss fell, and when it rose; a step grows, and may worsen the loss, by RISE."""

LEAST = 1 / 16
"""The smallest c: a model that no longer improves goes on with small steps."""

TURNS = 10
"""How often everybody else may have had a turn, on average, before an update is too old to count. Where chance decides
who is recruited, one in 20,000 gets that old; who does is passed over, and its update is of a model
long gone."""

SHARE_OF_RAM = 0.25
"""Of the machine's memory: what is remembered beyond it lies in unnamed files."""

PREFIX = "updates-"


class Fresh(NamedTuple):
    """An update that was accepted: the difference that training made, its weight, and what else to know of it."""

    update: Vector
    weight: float
    note: str = ""


@final
@dataclass(eq=False)
class _Row:
    """A client's last update, its round, how many were accepted up to then, and the square of its length."""

    update: Vector
    weight: float
    note: str
    round: int
    accepted: int
    square: float


@final
class UpdateMemory:
    """The last accepted update of every client that has one.

    Args:
        extrapolated: Whether it learns how far to go along the mean; otherwise a step is the mean.
        folder: Where what does not fit in RAM goes; None for the system's temporary one.

    Attributes:
        size: s, of the last step.

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
        self._accepted = 0  # updates so far, of everybody
        self._away: dict[str, int] = {}  # since which round a client has not bid
        self._forgotten: dict[str, int] = {}  # after which round
        self.size = 1.0

    @property
    def clients(self) -> Collection[str]:
        """Of whom something is remembered."""
        return self._rows.keys()

    def tell(self, round: int, fresh: Mapping[str, Fresh]) -> Vector:
        """Remember these updates in place of what was known of their clients; a copy made before stays as it was.

        Returns:
            The step that the model takes, s d.
        """
        self._rows = dict(self._rows)
        self._accepted += len(fresh)
        for client, one in fresh.items():
            self._put(round, self._accepted, client, one)
        rows = [self._rows[client] for client in sorted(self._rows)]
        total = math.fsum(row.weight for row in rows)
        step = np.zeros_like(rows[0].update)
        scaled = np.empty_like(step)
        for row in rows:
            step += np.multiply(row.update, np.float32(row.weight / total), out=scaled)
        if self._extrapolated and (square := _square(step)):
            mean_square = math.fsum(row.weight * row.square for row in rows) / total
            self.size = min(self._trust * max(mean_square / (2 * square), 1.0), RISE * self.size)
            step *= np.float32(self.size)
        return step

    def steps_without(self) -> Iterator[tuple[str, Vector]]:
        """For each client, the step that the last `tell` would have come to without it; none for a lone one."""
        total = math.fsum(row.weight for row in self._rows.values())
        for left_out in sorted(self._rows) if len(self._rows) > 1 else ():
            rest = total - self._rows[left_out].weight
            step = np.zeros_like(self._rows[left_out].update)
            for client in sorted(self._rows):
                if client != left_out and rest > 0:
                    row = self._rows[client]
                    step += row.update * np.float32(row.weight / rest * self.size)
            yield left_out, step

    def judge(self, loss: float) -> bool:
        """Learn from the loss that the step led to; says whether to take it, or to stay where the model was."""
        if not self._extrapolated:
            return True
        before = self._loss
        if before is None:  # a first step is taken, whatever it leads to
            self._loss = loss
            return True
        self._trust = max(self._trust * (RISE if loss <= before else FALL), LEAST)
        if not loss <= before + (RISE - 1) * abs(before):
            self.size *= FALL
            return False
        self._loss = loss
        return True

    def remembered(self, round: int) -> Iterator[tuple[str, Fresh]]:
        """Clients without a fresh update this round, each with its last one."""
        for client in sorted(self._rows):
            row = self._rows[client]
            if row.round != round:
                yield client, Fresh(row.update, row.weight, row.note)

    def ages(self, round: int) -> dict[int, int]:
        """How many updates are how many rounds old, the fresh ones not among them."""
        ages = Counter(round - row.round for row in self._rows.values())
        return {age: ages[age] for age in sorted(ages) if age}

    # --- forgetting ------------------------------------------------------------------------------

    def forget(self, client: str, round: int) -> None:
        """Let go of what that client taught up to that round."""
        if self._rows.pop(client, None) is not None:
            self._forgotten[client] = round

    def forget_outdated(
        self, round: int, absent: Collection[str] | None, after: int
    ) -> tuple[str, ...]:
        """Let go of updates that are too old, and of those who have not bid for so many rounds; whose they were.

        Args:
            round: The one that begins.
            absent: Who does not bid in it; None where that is not known.
            after: How many rounds.
        """
        oldest = self._accepted - TURNS * len(self._rows)
        gone = {client for client, row in self._rows.items() if row.accepted < oldest}
        if absent is not None:
            self._away = {
                client: self._away.get(client, round) for client in absent if client in self._rows
            }
            gone |= {client for client, since in self._away.items() if round - since >= after}
        for client in gone:
            self.forget(client, round - 1)
        return tuple(sorted(gone))

    # --- checkpoints -----------------------------------------------------------------------------

    def pieces(self) -> dict[str, Callable[[], Arrays]]:
        """What a checkpoint needs, by name: the updates of each round that is still remembered."""
        rounds = {row.round for row in self._rows.values()}
        return {f"{PREFIX}{number}": partial(self._piece, number) for number in sorted(rounds)}

    def state(self) -> dict[str, Any]:
        """What else there is to save, as JSON can say it."""
        learned = {"size": self.size, "trust": self._trust, "loss": self._loss}
        accepted = {str(row.round): row.accepted for row in self._rows.values()} | {
            "all": self._accepted
        }
        return {**learned, "accepted": accepted, "away": self._away, "forgotten": self._forgotten}

    def restore(self, extra: Mapping[str, Any], pieces: Mapping[str, Checkpoint]) -> None:
        """Know again what was saved."""
        self.size, self._trust, self._loss = (extra[name] for name in ("size", "trust", "loss"))
        self._away, self._forgotten = dict(extra["away"]), dict(extra["forgotten"])
        accepted = extra.get("accepted", {})  # a checkpoint of 0.2.0 does not say
        self._accepted = accepted.get("all", 0)
        updates = {
            int(name.removeprefix(PREFIX)): one
            for name, one in pieces.items()
            if name.startswith(PREFIX)
        }
        for number, piece in sorted(updates.items()):
            columns = (
                piece.arrays["updates"],
                piece.arrays["weights"].tolist(),
                piece.arrays["notes"].tolist(),
            )
            for client, *one in zip(piece.arrays["clients"].tolist(), *columns, strict=True):
                if number > self._forgotten.get(client, -1):
                    self._put(number, accepted.get(str(number), 0), client, Fresh(*one))

    def _piece(self, number: int) -> Arrays:
        rows = {client: row for client, row in sorted(self._rows.items()) if row.round == number}
        columns = {
            f"{name}s": [getattr(row, name) for row in rows.values()] for name in Fresh._fields
        }
        return {name: np.array(values) for name, values in {"clients": [*rows], **columns}.items()}

    # --- inside ----------------------------------------------------------------------------------

    def _put(self, round: int, accepted: int, client: str, one: Fresh) -> None:
        self._rows.pop(client, None)
        update = self._vector(len(one.update))
        np.copyto(update, one.update)
        square = _square(update) if self._extrapolated else 0.0
        self._rows[client] = _Row(update, one.weight, one.note, round, accepted, square)

    def _vector(self, size: int) -> Vector:
        """Room for one more update: in RAM, or, beyond its share, in an unnamed file."""
        if 4 * size * (len(self._rows) + 1) <= SHARE_OF_RAM * os.sysconf(
            "SC_PAGE_SIZE"
        ) * os.sysconf("SC_PHYS_PAGES"):
            return np.empty(size, np.float32)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            file.truncate(4 * size)
            return np.memmap(file, np.float32, "r+", shape=(size,))


def _square(vector: Vector) -> float:
    """Its squared norm; not by BLAS, whose sum depends on how many threads there are."""
    return float(np.sum(np.square(vector, dtype=np.float64)))

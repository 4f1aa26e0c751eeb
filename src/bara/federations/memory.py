"""What was paid for keeps working: each client's last accepted update, and what it says about the next model.

Without a memory a round's model is made of this round's winners alone. With one, everybody who was ever paid counts
(MIFA, Gu et al. 2021):

    w' = w + sum_i p_i m_i / sum_i p_i,     m_i: the fresh update of a winner, the remembered one of everybody else

Notation:
    w       the model's parameters
    p       weights: data sizes, or the mechanism's
    delta   fresh less remembered, of a client that came back
    lam     which part of the others' mean delta a client's own delta is, by regression through zero

What is remembered grows old: the model has moved on, and the updates of all have changed with it. Those who come back
show how. `corrected` adds lam times their mean delta to what is remembered of the others. Where clients change alike,
as early in training, lam is near 1 and the memory keeps up (FedVARP's correction, Jhunjhunwala et al. 2022); where each
changes in its own way, lam is near 0 and the mean of a few is not taken for a trend. Nothing is set by hand but how
long that regression looks back.
"""

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

from bara.federations.checkpoints import Arrays, Checkpoint

Vector = NDArray[np.float32]
Variant = Literal["off", "plain", "corrected"]
"""`plain` remembers updates as they came, `corrected` as those who came back say they have changed."""

LOOK_BACK = 0.9
"""By what part a round's evidence about lam fades each round."""

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
    """A client's last update, less the correction at the time, so that one sum corrects all."""

    update: Vector
    weight: float
    note: str
    round: int


@final
class UpdateMemory:
    """The last accepted update of every client that has one.

    Args:
        corrected: Whether what is remembered is corrected by those who come back.
        folder: Where what does not fit in RAM goes; None for the system's temporary one.
    """

    def __init__(self, *, corrected: bool, folder: Path | None = None) -> None:
        self._corrected = corrected
        self._folder = folder
        self._rows: dict[str, _Row] = {}
        self._correction: Vector | None = None
        self._evidence = (0.0, 0.0)  # of lam: the regression's numerator and denominator
        self._away: dict[str, int] = {}  # since which round a client has not bid
        self._forgotten: dict[str, int] = {}  # after which round

    @property
    def clients(self) -> Collection[str]:
        """Of whom something is remembered."""
        return self._rows.keys()

    def tell(self, round: int, fresh: Mapping[str, Fresh]) -> None:  # noqa: A002 - a round is a round
        """Remember these updates in place of what was known of their clients; a copy made before stays as it was."""
        if self._corrected:
            self._correct({client: one.update for client, one in fresh.items() if client in self._rows})
        self._rows = dict(self._rows)
        for client, one in fresh.items():
            self._put(round, client, one)
            if self._correction is not None:
                self._rows[client].update -= self._correction

    def mean(self) -> Vector:
        """The mean of everything that is remembered, by weight; summed in the order of the clients' names."""
        rows = [self._rows[client] for client in sorted(self._rows)]
        total = sum(row.weight for row in rows)
        mean = np.zeros_like(rows[0].update) if self._correction is None else self._correction.copy()
        scaled = np.empty_like(mean)
        for row in rows:
            mean += np.multiply(row.update, np.float32(row.weight / total), out=scaled)
        return mean

    def remembered(self, round: int) -> Iterator[tuple[str, Fresh]]:  # noqa: A002
        """Clients without a fresh update this round, each with the update it is taken to have now."""
        for client in sorted(self._rows):
            row = self._rows[client]
            if row.round != round:
                update = row.update if self._correction is None else row.update + self._correction
                yield client, Fresh(update, row.weight, row.note)

    def ages(self, round: int) -> dict[int, int]:  # noqa: A002
        """How many updates are how many rounds old, the fresh ones not among them."""
        ages = Counter(round - row.round for row in self._rows.values())
        return {age: ages[age] for age in sorted(ages) if age}

    # --- forgetting ------------------------------------------------------------------------------

    def forget(self, client: str, round: int) -> None:  # noqa: A002
        """Let go of what that client taught up to that round."""
        if self._rows.pop(client, None) is not None:
            self._forgotten[client] = round

    def forget_absent(self, round: int, absent: Collection[str], after: int) -> tuple[str, ...]:  # noqa: A002
        """Let go of those who have not bid for so many rounds; who it was."""
        self._away = {client: self._away.get(client, round) for client in absent if client in self._rows}
        gone = tuple(sorted(client for client, since in self._away.items() if round - since >= after))
        for client in gone:
            self.forget(client, round - 1)
        return gone

    # --- checkpoints -----------------------------------------------------------------------------

    def pieces(self) -> dict[str, Callable[[], Arrays]]:
        """What a checkpoint needs, by name: the updates of each round that is still remembered."""
        rounds = {row.round for row in self._rows.values()}
        return {f"{PREFIX}{number}": partial(self._piece, number) for number in sorted(rounds)}

    def state(self) -> tuple[Arrays, dict[str, Any]]:
        """What else there is to save: arrays, and what JSON can say."""
        correction = {} if self._correction is None else {"correction": self._correction}
        return correction, {"evidence": self._evidence, "away": self._away, "forgotten": self._forgotten}

    def restore(self, arrays: Arrays, extra: Mapping[str, Any], pieces: Mapping[str, Checkpoint]) -> None:
        """Know again what was saved."""
        self._correction = np.array(arrays["correction"]) if "correction" in arrays else None
        self._evidence = (float(extra["evidence"][0]), float(extra["evidence"][1]))
        self._away, self._forgotten = dict(extra["away"]), dict(extra["forgotten"])
        updates = {int(name.removeprefix(PREFIX)): one for name, one in pieces.items() if name.startswith(PREFIX)}
        for number, piece in sorted(updates.items()):
            columns = (piece.arrays["updates"], piece.arrays["weights"].tolist(), piece.arrays["notes"].tolist())
            for client, *one in zip(piece.arrays["clients"].tolist(), *columns, strict=True):
                if number > self._forgotten.get(client, -1):
                    self._put(number, client, Fresh(*one))

    def _piece(self, number: int) -> Arrays:
        rows = {client: row for client, row in sorted(self._rows.items()) if row.round == number}
        columns = {f"{name}s": [getattr(row, name) for row in rows.values()] for name in Fresh._fields}
        return {name: np.array(values) for name, values in {"clients": [*rows], **columns}.items()}

    # --- inside ----------------------------------------------------------------------------------

    def _put(self, round: int, client: str, one: Fresh) -> None:  # noqa: A002
        self._rows.pop(client, None)
        update = self._vector(len(one.update))
        np.copyto(update, one.update)
        self._rows[client] = _Row(update, one.weight, one.note, round)

    def _correct(self, back: Mapping[str, Vector]) -> None:
        """Learn from those who are back how far what is remembered of the others is off."""
        if not back:
            return
        size = len(next(iter(back.values())))
        before = np.zeros(size, np.float32) if self._correction is None else self._correction
        total = np.zeros(size, np.float32)
        own = 0.0  # the sum of ||delta_i||^2
        for client in sorted(back):
            delta = back[client] - self._rows[client].update - before
            total += delta
            own += _square(delta)
        k = len(back)
        if k > 1:
            # sum_i <delta_i, mean of the others> and sum_i ||mean of the others||^2, from the two sums alone
            square = _square(total)
            across = (square - own) / (k - 1)
            others = ((k - 2) * square + own) / (k - 1) ** 2
            self._evidence = (LOOK_BACK * self._evidence[0] + across, LOOK_BACK * self._evidence[1] + others)
        numerator, denominator = self._evidence
        lam = min(max(numerator / denominator, 0.0), 1.0) if denominator > 0 else 0.0
        self._correction = before + total * np.float32(lam / k)

    def _vector(self, size: int) -> Vector:
        """Room for one more update: in RAM, or, beyond its share, in an unnamed file."""
        if 4 * size * (len(self._rows) + 1) <= SHARE_OF_RAM * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
            return np.empty(size, np.float32)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            file.truncate(4 * size)
            return np.memmap(file, np.float32, "r+", shape=(size,))


def _square(vector: Vector) -> float:
    """Its squared norm; not by BLAS, whose sum depends on how many threads there are."""
    return float(np.sum(np.square(vector), dtype=np.float64))

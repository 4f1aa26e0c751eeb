"""Models on disk, from which a run goes on bit for bit: one flat state (the simulator's) or arrays by name (Flower's).

In the simulator momentum starts at zero in every round and the order of batches derives from (seed, round, client), so
the flat state and the round's number are everything there is to save: no optimiser state, no generator state.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from bara.errors import TrainingError
from bara.files import make_folder, replacing

Arrays = Mapping[str, NDArray[Any]]

FORMAT = 1


@final
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What was saved: the arrays after a round, and what else the caller wanted kept (anything JSON can say)."""

    arrays: Arrays
    round: int
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> NDArray[np.float32]:
        """The one array, where a single one was saved."""
        return self.arrays["state"]


def save(
    path: Path,
    state: NDArray[Any] | Arrays,
    round: int,  # noqa: A002 - a round is a round
    extra: Mapping[str, Any] | None = None,
    *,
    durable: bool = True,
) -> None:
    """Write a checkpoint so that at any moment there is the old one or the new one, never half of one.

    Args:
        path: Where to.
        state: The model, in one flat vector, or as arrays by name.
        round: After which round.
        extra: What else to keep.
        durable: Wait until the disk has it. One that can be made again need not: a power cut may damage it, which is
            noticed when it is read.
    """
    arrays: Arrays = {"state": state} if isinstance(state, np.ndarray) else state
    words = json.dumps({"format": FORMAT, "round": round, "extra": dict(extra or {}), "sum": _sum(arrays)})
    with replacing(path, durable=durable) as file:
        np.savez(file, about=np.array(words), **arrays)  # type: ignore[arg-type] # a name is no option here


def load(path: Path) -> Checkpoint:
    """Read a checkpoint back.

    Raises:
        TrainingError: when there is none, or it is cut short or damaged.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:  # a damaged one is closed too
            about = json.loads(str(file["about"]))
            arrays = {name: file[name] for name in file.files if name != "about"}
    except FileNotFoundError as error:
        raise TrainingError(f"there is no checkpoint at {path}") from error
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise TrainingError(f"checkpoint {path} is cut short or damaged: {error}") from error
    if about.get("format") != FORMAT or about.get("sum") != _sum(arrays):
        raise TrainingError(f"checkpoint {path} is damaged, or of a format other than {FORMAT}: its sum is wrong")
    return Checkpoint(arrays, about["round"], about["extra"])


@final
class CheckpointStore:
    """The checkpoints of one run, one file per round; those no longer needed are removed.

    A checkpoint is saved before its round is settled. If the run is killed between the two, the round is trained again
    from the checkpoint before it, which is therefore kept until the next one is there.

    Args:
        folder: The run's own; None to keep nothing.
        durable: See `save`.
    """

    def __init__(self, folder: Path | None, *, durable: bool) -> None:
        self._folder = None if folder is None else folder / "checkpoints"
        self._durable = durable
        self._whole: set[int] = set()
        self._before: set[int] = set()

    def put(self, round: int, models: Mapping[int, Arrays]) -> None:  # noqa: A002
        """Save what going on after a round needs: its own model last, with the rounds of the others it needs."""
        if self._folder is None:
            return
        make_folder(self._folder)
        for other in models.keys() - self._whole - {round}:
            save(self._path(other), models[other], other, durable=self._durable)
        save(self._path(round), models[round], round, {"needs": sorted(models)}, durable=self._durable)
        self._whole = self._before | models.keys()
        for old in self._rounds() - self._whole:
            self._path(old).unlink()
        self._before = set(models)

    def newest(self, last: int) -> dict[int, Checkpoint]:
        """The newest round, not after `last`, whose checkpoint is whole, and all that it needs; empty for none."""
        if not self._durable:  # what can be made again: a later one may be of rounds that a restored ledger has not
            for later in (number for number in self._rounds() if number > last):
                self._path(later).unlink()
        for number in sorted((number for number in self._rounds() if number <= last), reverse=True):
            with suppress(TrainingError):
                own = load(self._path(number))
                # Flower's earlier checkpoints do not say what they need: nothing but themselves
                needs = own.extra.get("needs", [] if "state" in own.arrays else [number])
                found = {needed: load(self._path(needed)) for needed in needs}
                if found:
                    self._whole = self._before = set(found)
                    return found
        return {}

    def _rounds(self) -> set[int]:
        files = () if self._folder is None else self._folder.glob("round-*.npz")
        return {int(path.stem.partition("-")[2]) for path in files}

    def _path(self, round: int) -> Path:  # noqa: A002
        assert self._folder is not None  # noqa: S101 - for the type checker
        return self._folder / f"round-{round}.npz"


def _sum(arrays: Arrays) -> int:
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), total)
    return total

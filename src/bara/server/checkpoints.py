"""Models on disk, from which a run goes on bit for bit: one flat state (the simulator's) or arrays by name (Flower's).

In the simulator momentum starts at zero in every round and the order of batches derives from (seed,
round, client), so the flat state and the round's number are everything there is to save: no
optimiser state, no generator state.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from bara.errors import TrainingError
from bara.files import make_folder, replacing

Arrays = Mapping[str, NDArray[Any]]

FORMAT = 2
_ROUND = "round-"

_READ = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    ValueError,
    KeyError,
    EOFError,
    NotImplementedError,
)
"""What numpy raises for a file that is not what it was."""


@final
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What was saved: the arrays after a round, and what else the caller wanted kept (anything JSON can say).

    Attributes:
        arrays: By name.
        round: After which round.
        extra: What else was kept.
        digest: A SHA-256 of all of it; None in files of format 1, which had none.
    """

    arrays: Arrays
    round: int
    extra: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None

    @property
    def state(self) -> NDArray[np.float32]:
        """The one array, where a single one was saved."""
        return self.arrays["state"]


def save(
    path: Path,
    state: NDArray[Any] | Arrays,
    round: int,
    extra: Mapping[str, Any] | None = None,
    *,
    durable: bool = True,
) -> str:
    """Write a checkpoint so that at any moment there is the old one or the new one, never half of one.

    Args:
        path: Where to.
        state: The model, in one flat vector, or as arrays by name.
        round: After which round.
        extra: What else to keep.
        durable: Wait until the disk has it. One that can be made again need not: a power cut may
            damage it, which is noticed when it is read.

    Returns:
        Its digest.
    """
    arrays: Arrays = {"state": state} if isinstance(state, np.ndarray) else state
    about = {"format": FORMAT, "round": round, "extra": dict(extra or {})}
    digest = _digest(about, arrays)
    with replacing(path, durable=durable) as file:
        np.savez(file, about=np.array(json.dumps({**about, "sum": digest})), **arrays)  # type: ignore[arg-type]
    return digest


def load(path: Path) -> Checkpoint:
    """Read a checkpoint back; one that is cut short or damaged is a `TrainingError`."""
    try:
        with (
            path.open("rb") as raw,
            np.load(raw, allow_pickle=False) as file,
        ):  # a damaged one is closed too
            about = json.loads(str(file["about"]))
            arrays = {name: file[name] for name in file.files if name != "about"}
    except FileNotFoundError as error:
        raise TrainingError(f"there is no checkpoint at {path}") from error
    except _READ as error:
        raise TrainingError(f"checkpoint {path} is cut short or damaged: {error}") from error
    told = about.pop("sum", None)
    if told != (_sum(arrays) if about.get("format") == 1 else _digest(about, arrays)):
        raise TrainingError(
            f"checkpoint {path} is damaged, or in a format later than {FORMAT}: its checksum is wrong"
        )
    return Checkpoint(
        arrays, about["round"], about["extra"], told if isinstance(told, str) else None
    )


Restored = tuple[Checkpoint, Mapping[str, Checkpoint]]


@final
class CheckpointStore:
    """The checkpoints of one run: a file a round, a file for each piece that several of them need.

    A piece is written once. A checkpoint is saved before its round is settled. If the run is killed
    between the two, the round is trained again from the checkpoint before it, which is therefore
    kept until the next one is there.

    Args:
        folder: The run's own; None to keep nothing.
        durable: See `save`.
    """

    def __init__(self, folder: Path | None, *, durable: bool) -> None:
        self._folder = None if folder is None else folder / "checkpoints"
        self._durable = durable
        self._digests: dict[str, str | None] = {}
        self._before: set[str] = set()

    def put(
        self,
        round: int,
        own: Arrays,
        pieces: Mapping[str, Callable[[], Arrays]] = MappingProxyType({}),
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Save what going on after a round needs: new pieces first, its own last, with the digests of all."""
        if self._folder is None:
            return
        make_folder(self._folder)
        for name in pieces.keys() - self._digests.keys():
            self._digests[name] = save(
                self._path(name), pieces[name](), round, durable=self._durable
            )
        needs = {name: self._digests[name] for name in sorted(pieces)}
        name = round_name(round)
        self._digests[name] = save(
            self._path(name), own, round, {**extra, "needs": needs}, durable=self._durable
        )
        kept = {name, *pieces}
        for old in self._names() - kept - self._before:
            self._path(old).unlink()
            self._digests.pop(old, None)
        self._before = kept

    def digest(self, round: int) -> str | None:
        """What the ledger commits to: the digest of a round's checkpoint; None where it has none."""
        return self._digests.get(round_name(round))

    def newest(
        self, last: int, committed: Callable[[int], str | None] | None = None
    ) -> Restored | None:
        """The newest whole checkpoint that is not later than round `last`, and the pieces it needs, by name.

        Args:
            last: The round.
            committed: The digest that the ledger holds of a round's checkpoint; one with another is
                none, and so is one with a digest of which the ledger holds none: of a round that
                was taken back, or planted.
        """
        rounds = {
            int(name.removeprefix(_ROUND)): name
            for name in self._names()
            if name.startswith(_ROUND)
        }
        if (
            not self._durable
        ):  # what can be made again: a later one may be of rounds that a restored ledger has not
            for later in rounds.keys() - range(last + 1):
                self._path(rounds.pop(later)).unlink()
        for number in sorted(rounds.keys() & range(last + 1), reverse=True):
            with suppress(TrainingError):
                own, pieces = self._restored(rounds[number])
                if committed is not None and committed(number) != own.digest:
                    continue
                self._digests = {
                    name: one.digest for name, one in {**pieces, rounds[number]: own}.items()
                }
                self._before = set(self._digests)
                return own, pieces
        return None

    def _restored(self, name: str) -> Restored:
        own = load(self._path(name))
        needs = own.extra.get("needs", None if "state" in own.arrays else {})
        if needs is None:
            raise TrainingError(f"{name} is only a piece of other checkpoints")
        if isinstance(needs, list):  # format 1 says the rounds, its own among them
            needs = dict.fromkeys(map(round_name, {*needs} - {own.round}))
        pieces = {needed: load(self._path(needed)) for needed in needs}
        if any(needs[needed] != piece.digest for needed, piece in pieces.items()):
            raise TrainingError(f"{name} needs pieces that differ from those it was saved with")
        return own, pieces

    def _names(self) -> set[str]:
        return set() if self._folder is None else {path.stem for path in self._folder.glob("*.npz")}

    def _path(self, name: str) -> Path:
        assert self._folder is not None  # noqa: S101 - for the type checker
        return self._folder / f"{name}.npz"


def by_round(own: Checkpoint, pieces: Mapping[str, Checkpoint]) -> dict[int, Checkpoint]:
    """The checkpoints of rounds among what was restored, its own included."""
    others = {
        int(name[len(_ROUND) :]): piece for name, piece in pieces.items() if name.startswith(_ROUND)
    }
    return {**others, own.round: own}


def round_name(round: int) -> str:
    """What a round's checkpoint is called, which later ones may need as a piece."""
    return f"{_ROUND}{round}"


def _digest(about: Mapping[str, Any], arrays: Arrays) -> str:
    kinds = {name: [array.dtype.str, array.shape] for name, array in sorted(arrays.items())}
    found = hashlib.sha256(json.dumps([about, kinds], sort_keys=True).encode())
    for name in kinds:
        found.update(np.ascontiguousarray(arrays[name]).data)
    return found.hexdigest()


def _sum(arrays: Arrays) -> int:
    """The sum of format 1."""
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), total)
    return total

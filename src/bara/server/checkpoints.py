"""Checkpoints: models on disk from which a run goes on with exactly the same results.

A model is one flat state in the simulator, and arrays by name in Flower. In the simulator, momentum
starts at zero in every round and the order of batches derives from (seed, round, client). So the
flat state and the number of the round are all there is to save: no state of an optimiser or of a
random generator.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
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
"""Arrays by name."""

FORMAT = 2
"""The version of the file format."""

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
"""The errors that numpy raises when it reads a damaged file."""


@final
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint as read from disk.

    Attributes:
        arrays: The saved arrays by name.
        round: The round after which they were saved.
        extra: Whatever else the caller saved, as values that JSON can hold.
        digest: A SHA-256 of all of this; None for files of format 1, which had none.
    """

    arrays: Arrays
    round: int
    extra: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None

    @property
    def state(self) -> NDArray[np.float32]:
        """The flat state, if a single array was saved."""
        return self.arrays["state"]


def save(
    path: Path,
    state: NDArray[Any] | Arrays,
    round: int,
    extra: Mapping[str, Any] | None = None,
    *,
    durable: bool = True,
) -> str:
    """Write a checkpoint so that at any moment there is the old file or the new one.

    Args:
        path: The file to make or replace.
        state: The model, as one flat vector or as arrays by name.
        round: The round after which the model is saved.
        extra: Whatever else to save, as values that JSON can hold.
        durable: Whether to wait until the file is on the disk. This is not needed for a checkpoint
            that can be made again: if a power cut damages it, that is noticed on reading.

    Returns:
        The digest of the checkpoint.
    """
    arrays: Arrays = {"state": state} if isinstance(state, np.ndarray) else state
    about = {"format": FORMAT, "round": round, "extra": dict(extra or {})}
    digest = _digest(about, arrays)
    with replacing(path, durable=durable) as file:
        header = np.array(json.dumps({**about, "sum": digest}))
        named: dict[str, Any] = dict(arrays)
        np.savez(file, about=header, **named)
    return digest


def load(path: Path) -> Checkpoint:
    """Read a checkpoint; raise a `TrainingError` if it is missing, cut short or damaged."""
    try:
        # numpy alone would leave a damaged file open.
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            arrays = {name: file[name] for name in file.files if name != "about"}
    except FileNotFoundError as error:
        raise TrainingError(f"there is no checkpoint at {path}") from error
    except _READ as error:
        raise TrainingError(f"checkpoint {path} is cut short or damaged: {error}") from error
    stored = about.pop("sum", None)
    is_first_format = about.get("format") == 1
    computed = _sum(arrays) if is_first_format else _digest(about, arrays)
    if stored != computed:
        raise TrainingError(
            f"checkpoint {path} is damaged, or in a format later than {FORMAT}: "
            "its checksum is wrong"
        )
    digest = stored if isinstance(stored, str) else None
    return Checkpoint(arrays, about["round"], about["extra"], digest)


Restored = tuple[Checkpoint, Mapping[str, Checkpoint]]
"""A checkpoint and the pieces that it needs, by name."""


@final
class CheckpointStore:
    """The checkpoints of one run: a file per round, and one per piece that several of them share.

    A piece is written once. A checkpoint is saved before its round is settled. If the run is killed
    between the two, the round is trained again from the checkpoint before it, which is therefore
    deleted only after the next one is saved.

    Args:
        folder: The run's folder; None to save nothing.
        durable: Whether to wait until files are on the disk, as in `save`.
    """

    def __init__(self, folder: Path | None, *, durable: bool) -> None:
        self._folder = None if folder is None else folder / "checkpoints"
        self._durable = durable
        self._digests: dict[str, str | None] = {}  # of every file, by name
        self._before: set[str] = set()  # the files of the checkpoint before

    def put(
        self,
        round: int,
        own: Arrays,
        pieces: Mapping[str, Callable[[], Arrays]] = MappingProxyType({}),
        extra: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Save a checkpoint, and delete files that neither it nor the one before needs.

        New pieces are written first; the round's own file, with the digests of all pieces, is last.

        Args:
            round: The round after which the run could go on from here.
            own: The arrays of the round's own file.
            pieces: The pieces that the checkpoint needs: by name, a function that returns the
                arrays, which is called only if the piece is new.
            extra: Whatever else to save, as values that JSON can hold.
        """
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
        needed = {name, *pieces}
        for old in self._names() - needed - self._before:
            self._path(old).unlink()
            self._digests.pop(old, None)
        self._before = needed

    def digest(self, round: int) -> str | None:
        """Return the digest of a round's checkpoint, which the ledger stores; None without one."""
        return self._digests.get(round_name(round))

    def newest(
        self, last: int, committed: Callable[[int], str | None] | None = None
    ) -> Restored | None:
        """Return the newest intact checkpoint of round `last` or earlier; None if there is none.

        Args:
            last: The last round to consider.
            committed: Returns the digest of a round's checkpoint that the ledger holds. A
                checkpoint with a different digest is ignored, and so is one with a digest where the
                ledger holds none: its round was taken back, or somebody planted it. None to accept
                any.
        """
        names = _by_number(self._names())
        if not self._durable:
            # Later rounds may be unknown to a ledger that was restored from a backup; they can be
            # trained again.
            for later in names.keys() - range(last + 1):
                self._path(names.pop(later)).unlink()
        for number in sorted(names.keys() & range(last + 1), reverse=True):
            with suppress(TrainingError):
                own, pieces = self._restored(names[number])
                if committed is not None and committed(number) != own.digest:
                    continue
                self._digests = {name: piece.digest for name, piece in pieces.items()}
                self._digests[names[number]] = own.digest
                self._before = set(self._digests)
                return own, pieces
        return None

    def _restored(self, name: str) -> Restored:
        """Read a round's file and its pieces; raise a `TrainingError` unless all are intact."""
        own = load(self._path(name))
        needs = own.extra.get("needs", None if "state" in own.arrays else {})
        if needs is None:
            raise TrainingError(f"{name} is only a piece of other checkpoints")
        if isinstance(needs, list):  # format 1 lists rounds, the checkpoint's own among them
            others = {*needs} - {own.round}
            needs = dict.fromkeys(map(round_name, others))
        pieces = {needed: load(self._path(needed)) for needed in needs}
        if any(needs[needed] != piece.digest for needed, piece in pieces.items()):
            raise TrainingError(f"{name} needs pieces that differ from those it was saved with")
        return own, pieces

    def _names(self) -> set[str]:
        """Return the names of all files."""
        if self._folder is None:
            return set()
        return {path.stem for path in self._folder.glob("*.npz")}

    def _path(self, name: str) -> Path:
        assert self._folder is not None  # noqa: S101 - for the type checker
        return self._folder / f"{name}.npz"


def by_round(own: Checkpoint, pieces: Mapping[str, Checkpoint]) -> dict[int, Checkpoint]:
    """Return the restored checkpoints of rounds by number: the checkpoint and some of its pieces.

    Args:
        own: The checkpoint.
        pieces: The pieces that it needs, by name; those that are not of rounds are left out.
    """
    found = {number: pieces[name] for number, name in _by_number(pieces).items()}
    found[own.round] = own
    return found


def round_name(round: int) -> str:
    """Return the name of a round's checkpoint, under which later ones may need it as a piece."""
    return f"{_ROUND}{round}"


def _by_number(names: Iterable[str]) -> dict[int, str]:
    """Return the names that belong to rounds, by the number of the round."""
    return {int(name.removeprefix(_ROUND)): name for name in names if name.startswith(_ROUND)}


def _digest(about: Mapping[str, Any], arrays: Arrays) -> str:
    """Return the SHA-256 of a checkpoint's header and arrays."""
    kinds = {name: [array.dtype.str, array.shape] for name, array in sorted(arrays.items())}
    found = hashlib.sha256(json.dumps([about, kinds], sort_keys=True).encode())
    for name in kinds:
        found.update(np.ascontiguousarray(arrays[name]).data)
    return found.hexdigest()


def _sum(arrays: Arrays) -> int:
    """Return the checksum of format 1."""
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).tobytes(), total)
    return total

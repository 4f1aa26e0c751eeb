"""A state on disk, from which a run goes on bit for bit.

Momentum starts at zero in every round and the order of batches derives from (seed, round, client), so the flat state
and the round's number are everything there is to save: no optimiser state, no generator state.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from bara.errors import TrainingError
from bara.federations.simulator.engine import State

FORMAT = 1


@final
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What was saved: the state after a round, and what else the caller wanted kept (anything JSON can say)."""

    state: State
    round: int
    extra: Mapping[str, Any] = field(default_factory=dict)


def save(
    path: Path,
    state: State,
    round: int,  # noqa: A002 - a round is a round
    extra: Mapping[str, Any] | None = None,
    *,
    durable: bool = True,
) -> None:
    """Write a checkpoint so that at any moment there is the old one or the new one, never half of one.

    Args:
        path: Where to.
        state: The model, in one flat vector.
        round: After which round.
        extra: What else to keep.
        durable: Wait until the disk has it. One that can be made again need not: a power cut may damage it, which is
            noticed when it is read.
    """
    words = json.dumps({"format": FORMAT, "round": round, "extra": dict(extra or {}), "sum": _sum(state)})
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            np.savez(file, state=state, about=np.array(words))
            if durable:
                file.flush()
                os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    if durable:
        _sync_folder(path.parent)


def load(path: Path) -> Checkpoint:
    """Read a checkpoint back.

    Raises:
        TrainingError: when there is none, or it is cut short or damaged.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:  # a damaged one is closed too
            state, about = file["state"], json.loads(str(file["about"]))
    except FileNotFoundError as error:
        raise TrainingError(f"there is no checkpoint at {path}") from error
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise TrainingError(f"checkpoint {path} is cut short or damaged: {error}") from error
    if about.get("format") != FORMAT or about.get("sum") != _sum(state):
        raise TrainingError(f"checkpoint {path} is damaged, or of a format other than {FORMAT}: its sum is wrong")
    return Checkpoint(state, about["round"], about["extra"])


def _sum(state: State) -> int:
    return zlib.crc32(np.ascontiguousarray(state, np.float32).tobytes())


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where folders can be synced."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)

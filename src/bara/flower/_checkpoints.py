"""Models on disk from which a run on Flower goes on: the last two, because the last may not be settled yet."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from numpy.typing import NDArray

from bara.errors import TrainingError
from bara.federations.checkpoints import Checkpoint, load, save

Arrays = Mapping[str, NDArray[Any]]
_MODEL, _STRATEGY = "model/", "strategy/"


@final
class Shelf:
    """The checkpoints of one run; each holds the model and what the strategy has learned.

    Args:
        folder: Where they are; None to keep none.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder / "checkpoints"

    def put(self, round: int, model: Arrays, memory: Arrays) -> None:  # noqa: A002 - a round is a round
        """Save a round's, durably: what silos have trained cannot be made again."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        save(self._path(round), _named(_MODEL, model) | _named(_STRATEGY, memory), round)
        for old in sorted(number for number in self._rounds() if number < round)[:-1]:
            self._path(old).unlink()

    def newest(self, last: int) -> tuple[int, Arrays, Arrays] | None:
        """The newest whole one that is not after round `last`: its round, model and memory; None for none."""
        for number in sorted((n for n in self._rounds() if n <= last), reverse=True):
            try:
                found = load(self._path(number))
            except TrainingError:
                continue
            return number, _of(_MODEL, found), _of(_STRATEGY, found)
        return None

    def _rounds(self) -> list[int]:
        if self._folder is None:
            return []
        return [int(path.stem.partition("-")[2]) for path in self._folder.glob("round-*.npz")]

    def _path(self, round: int) -> Path:  # noqa: A002
        assert self._folder is not None  # noqa: S101 - for the type checker
        return self._folder / f"round-{round}.npz"


def _named(prefix: str, arrays: Arrays) -> dict[str, NDArray[Any]]:
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def _of(prefix: str, checkpoint: Checkpoint) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in checkpoint.arrays.items() if name.startswith(prefix)}

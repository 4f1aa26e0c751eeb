"""The models on disk from which an interrupted run goes on, one file a round; those no longer needed are removed.

A checkpoint is saved before its round is settled. If the run is killed between the two, the round is trained again
from the checkpoint before it, which is therefore kept until the next one is there.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import final

from bara.errors import TrainingError
from bara.federations.checkpoints import load, save
from bara.federations.simulator.engine import State


@final
class Shelf:
    """The checkpoints of one run.

    Args:
        folder: Where they are; made when the first is saved.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before: set[int] = set()

    def put(self, round: int, states: Mapping[int, State]) -> None:  # noqa: A002 - a round is a round
        """Save the checkpoint of a round: its own state last, with the names of the others it needs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for other in states.keys() - self._rounds() - {round}:
            save(self._path(other), states[other], other, durable=False)
        save(self._path(round), states[round], round, {"needs": sorted(states)}, durable=False)
        for old in self._rounds() - states.keys() - self._before:
            self._path(old).unlink()
        self._before = set(states)

    def newest(self, last: int) -> tuple[int, dict[int, State]]:
        """The newest round, not after `last`, whose checkpoint is whole, and all its states; (0, {}) for none.

        What is damaged, or of a round that is not settled, is removed: it will be made again.
        """
        whole: dict[int, State] = {}
        needs: dict[int, list[int]] = {}
        for number in sorted(self._rounds()):
            try:
                found = load(self._path(number))
            except TrainingError:
                found = None
            if found is None or number > last:
                self._path(number).unlink()
                continue
            whole[number] = found.state
            needs[number] = found.extra.get("needs", [])
        for number in sorted(needs, reverse=True):
            if needs[number] and whole.keys() >= set(needs[number]):
                self._before = set(needs[number])
                return number, {round_number: whole[round_number] for round_number in needs[number]}
        return 0, {}

    def _rounds(self) -> set[int]:
        return {int(path.stem.partition("-")[2]) for path in self._folder.glob("round-*.npz")}

    def _path(self, round: int) -> Path:  # noqa: A002
        return self._folder / f"round-{round}.npz"

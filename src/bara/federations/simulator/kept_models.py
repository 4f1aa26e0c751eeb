"""Which states of a run are kept beside the last one."""

from collections import deque
from typing import final

import numpy as np

from bara.federations.simulator.engine import State


@final
class KeptModels:
    """Keeps the state that was best on validation, and the last few for their average; told once a round.

    Args:
        last: How many are averaged.

    Attributes:
        best: The state with the highest validation accuracy.
        best_round: Which round it came from; -1 before the first.
    """

    def __init__(self, last: int) -> None:
        self._recent: deque[tuple[int, State]] = deque(maxlen=last)
        self._best_accuracy = -1.0
        self.best: State = np.empty(0, np.float32)
        self.best_round = -1

    def tell(self, round: int, state: State, accuracy: float) -> None:  # noqa: A002
        """Consider a round's state; of equally good ones the first stays the best."""
        self._recent.append((round, state.copy()))
        if accuracy > self._best_accuracy:
            self.best, self._best_accuracy, self.best_round = self._recent[-1][1], accuracy, round

    @property
    def states(self) -> dict[int, State]:
        """Everything that is kept, by round; telling these to a fresh `KeptModels` makes it the same."""
        best = {} if self.best_round < 0 else {self.best_round: self.best}
        return best | dict(self._recent)

    @property
    def average(self) -> State:
        """The mean of the last states (of all of them while there are fewer), batch-norm statistics included."""
        mean: State = np.stack([state for _, state in self._recent]).mean(axis=0, dtype=np.float64).astype(np.float32)
        return mean

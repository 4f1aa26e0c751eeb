"""Which states of a run are kept beside the last one."""

from collections import deque
from typing import final

import numpy as np

from bara.errors import ConfigError
from bara.federations.simulator.engine import State


@final
class KeptModels:
    """Keeps the state that was best on validation, and the last few for their average; told once a round."""

    def __init__(self, last: int) -> None:
        """Average the `last` states."""
        self._recent: deque[tuple[int, State]] = deque(maxlen=last)
        self._best: State | None = None
        self._best_accuracy = -1.0
        self._best_round = -1

    def tell(self, round: int, state: State, accuracy: float) -> None:  # noqa: A002
        """Consider a round's state; of equally good ones the first stays the best."""
        self._recent.append((round, state.copy()))
        if accuracy > self._best_accuracy:
            self._best, self._best_accuracy, self._best_round = self._recent[-1][1], accuracy, round

    @property
    def states(self) -> dict[int, State]:
        """Everything that is kept, by round; telling these to a fresh `KeptModels` makes it the same."""
        best = {} if self._best is None else {self._best_round: self._best}
        return best | dict(self._recent)

    @property
    def best(self) -> State:
        """The state with the highest validation accuracy."""
        if self._best is None:
            raise ConfigError("no state was kept yet; tell it at least one round")
        return self._best.copy()

    @property
    def best_round(self) -> int:
        """Which round it came from; -1 before the first."""
        return self._best_round

    @property
    def average(self) -> State:
        """The mean of the last states (of all of them while there are fewer), batch-norm statistics included."""
        if not self._recent:
            raise ConfigError("no state was kept yet; tell it at least one round")
        mean: State = np.stack([state for _, state in self._recent]).mean(axis=0, dtype=np.float64).astype(np.float32)
        return mean

"""Which models of a run are kept beside the last one, and which of them is taken home."""

from collections import deque
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from bara.server.checkpoints import Arrays


@final
class KeptModels:
    """Keeps the model that was best on validation, and the last few for their average; told once per round.

    Args:
        last: How many are averaged.

    Attributes:
        best_round: Which round the best came from; -1 before the first.
    """

    def __init__(self, last: int) -> None:
        self._recent: deque[tuple[int, Arrays]] = deque(maxlen=last)
        self._best: Arrays = {}
        self._best_accuracy = -1.0
        self.best_round = -1

    def tell(self, round: int, model: Arrays, accuracy: float) -> None:
        """Consider a round's model; of equally good ones the first stays the best."""
        self._recent.append((round, {name: array.copy() for name, array in model.items()}))
        if accuracy > self._best_accuracy:
            self._best, self._best_accuracy, self.best_round = self._recent[-1][1], accuracy, round

    @property
    def by_round(self) -> dict[int, Arrays]:
        """Everything that is kept; telling these to a fresh `KeptModels` makes it the same."""
        best = {} if self.best_round < 0 else {self.best_round: self._best}
        return best | dict(self._recent)

    @property
    def by_name(self) -> dict[str, Arrays]:
        """What may be taken home: `final`, the last; `average`, the mean of the last; `best`. None before a round.

        The average is over the statistics of batch norm, too; whole numbers are the last model's.
        """
        if self.best_round < 0:
            return {}
        final = self._recent[-1][1]
        average = {
            name: self._mean(name) if array.dtype.kind == "f" else array
            for name, array in final.items()
        }
        return {"final": final, "average": average, "best": self._best}

    def _mean(self, name: str) -> NDArray[Any]:
        arrays = [model[name] for _, model in self._recent]
        mean: NDArray[Any] = (
            np.stack(arrays).mean(axis=0, dtype=np.float64).astype(arrays[-1].dtype)
        )
        return mean

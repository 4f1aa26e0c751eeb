"""The models of a run that may be kept in the end: the final one, an average, and the best."""

from collections import deque
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from bara.server.checkpoints import Arrays


@final
class KeptModels:
    """The model that was best on validation data, and the last few models, for their average.

    Args:
        last: The number of models to average.

    Attributes:
        best_round: The round of the best model; -1 before the first round.
    """

    def __init__(self, last: int) -> None:
        self._recent: deque[tuple[int, Arrays]] = deque(maxlen=last)
        self._best: Arrays = {}
        self._best_accuracy = -1.0
        self.best_round = -1

    def tell(self, round: int, model: Arrays, accuracy: float) -> None:
        """Take in the model of a round; of equally good models, the first stays the best."""
        copied = {name: array.copy() for name, array in model.items()}
        self._recent.append((round, copied))
        if accuracy > self._best_accuracy:
            self._best = copied
            self._best_accuracy = accuracy
            self.best_round = round

    @property
    def by_round(self) -> dict[int, Arrays]:
        """All models held, by round; told to a new `KeptModels`, they restore this one."""
        models = {}
        if self.best_round >= 0:
            models[self.best_round] = self._best
        models.update(self._recent)
        return models

    @property
    def by_name(self) -> dict[str, Arrays]:
        """The models that may be kept: `final`, `average` and `best`; empty before the first round.

        The average includes the statistics of batch normalisation; arrays of whole numbers are
        taken from the final model.
        """
        if self.best_round < 0:
            return {}
        final = self._recent[-1][1]
        average = dict(final)
        for name, array in final.items():
            if array.dtype.kind == "f":
                average[name] = self._mean(name)
        return {"final": final, "average": average, "best": self._best}

    def _mean(self, name: str) -> NDArray[Any]:
        """Return the mean of one array over the recent models."""
        arrays = [model[name] for _, model in self._recent]
        mean: NDArray[Any] = np.stack(arrays).mean(axis=0, dtype=np.float64)
        return mean.astype(arrays[-1].dtype)

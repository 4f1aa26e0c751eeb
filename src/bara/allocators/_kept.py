"""How good the model is that would be taken home now, and how surely.

Notation:
    v       the kept model's accuracy as it was measured on the server's samples
    e       what the curve expected of that round
    V       how many samples there are; where nobody says, so many that they measure exactly

Every model of a run is measured on the same samples, and what is peculiar to them is in every v
alike: rounds do not average it out. It is as large as the binomial error, of variance v (1 - v) /
V. A round's own deviation from the curve, v - e, is the model's by the part V / (V + 250), and luck
on these samples by the rest: the slope of test on validation accuracy from round to round was about
0.8 with 1,000 samples and 0.4 with 200 (development suite). The best of many rounds is where that
luck is largest.
"""

import math

import scipy

from bara.records import Evaluation, taken_home

HALF_LUCK = 250
"""Samples with which half of a round's deviation from the curve is luck."""


class KeptModel:
    """Follows which model would be taken home: the last one, or the most accurate."""

    def __init__(self) -> None:
        self._final: tuple[Evaluation, float] | None = None
        self._best: tuple[Evaluation, float] | None = None

    def tell(self, evaluation: Evaluation, expected: float | None) -> None:
        """A round's model, and what the curve expected of it; None where it expected nothing."""
        self._final = evaluation, evaluation.accuracy if expected is None else expected
        if self._best is None or evaluation.accuracy > self._best[0].accuracy:
            self._best = self._final

    @property
    def accuracy(self) -> float:
        """What other samples are expected to show of it; 0 before the first round."""
        if self._final is None or self._best is None:
            return 0.0
        models = {"final": self._final, "best": self._best}
        evaluation, expected = models[taken_home({name: one for name, (one, _) in models.items()})]
        return expected + self.real * (evaluation.accuracy - expected)

    @property
    def real(self) -> float:
        """The part of a round's deviation from the curve that other samples would show, too."""
        return 1.0 if self._samples is None else self._samples / (self._samples + HALF_LUCK)

    @property
    def _samples(self) -> int | None:
        return None if self._final is None else self._final[0].samples

    def error(self, accuracy: float) -> float:
        """The standard deviation of what these samples say of a model that is so accurate."""
        return (
            0.0 if self._samples is None else math.sqrt(accuracy * (1 - accuracy) / self._samples)
        )

    def sure(self, target: float) -> float:
        """How likely the kept model is that accurate, on other samples."""
        off, error = self.accuracy - target, self.error(target)
        return float(scipy.special.ndtr(off / error)) if error else float(off >= 0)

    def level(self, target: float, confidence: float) -> float:
        """What must be expected of a model to be so sure that it is that accurate."""
        return float(min(target + scipy.special.ndtri(confidence) * self.error(target), 0.995))

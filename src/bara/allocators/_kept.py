"""The accuracy of the model that a run would keep if it ended now, and how sure that is.

Notation:
    v       the kept model's accuracy as measured on the server's samples
    e       the accuracy that the curve expected of that round
    V       the number of samples; where it is unknown, the measurement counts as exact

Every model of a run is measured on the same samples, so whatever is peculiar to them is in every v
alike, and rounds do not average it out. It is as large as the binomial error, of variance
v (1 - v) / V. Of a round's own deviation from the curve, v - e, the part V / (V + 250) is real, and
the rest is luck on these samples: the slope of test on validation accuracy from round to round was
about 0.8 with 1,000 samples and 0.4 with 200 (development suite). The best of many rounds is where
that luck is largest.
"""

import math

import scipy

from bara.records import Evaluation, taken_home

HALF_LUCK = 250
"""The number of samples with which half of a round's deviation from the curve is luck."""

NINE_IN_TEN = 1.645
"""Nine normal deviates in ten are at most this many standard deviations from their mean."""


class KeptModel:
    """The model that the run would keep if it ended now: the last one, or the most accurate.

    The average of the last models, which may be kept, too, is evaluated only at the end of a run.
    """

    def __init__(self) -> None:
        self._final: tuple[Evaluation, float] | None = None
        self._best: tuple[Evaluation, float] | None = None

    def tell(self, evaluation: Evaluation, expected: float | None) -> None:
        """Learn of a round's model.

        Args:
            evaluation: The model's evaluation.
            expected: The accuracy that the curve expected; None before there is a curve.
        """
        if expected is None:
            expected = evaluation.accuracy
        self._final = (evaluation, expected)
        if self._best is None or evaluation.accuracy > self._best[0].accuracy:
            self._best = self._final

    @property
    def accuracy(self) -> float:
        """The accuracy expected of the kept model on other samples; 0 before the first round."""
        measured, expected = self._kept
        return expected + self.real * (measured - expected)

    @property
    def measured(self) -> float:
        """The accuracy of the kept model on the server's samples; 0 before the first round."""
        return self._kept[0]

    @property
    def interval(self) -> tuple[float, float]:
        """Between what the accuracy of the kept model on other samples lies, nine times in ten."""
        reach = NINE_IN_TEN * self.error(self.accuracy)
        return max(self.accuracy - reach, 0.0), min(self.accuracy + reach, 1.0)

    @property
    def _kept(self) -> tuple[float, float]:
        """The kept model's accuracy as measured, and as the curve expected it."""
        if self._final is None or self._best is None:
            return 0.0, 0.0
        kept = taken_home({"final": self._final[0], "best": self._best[0]})
        evaluation, expected = self._final if kept == "final" else self._best
        return evaluation.accuracy, expected

    @property
    def real(self) -> float:
        """The part of a round's deviation from the curve that other samples would show as well."""
        if self._samples is None:
            return 1.0
        return self._samples / (self._samples + HALF_LUCK)

    @property
    def _samples(self) -> int | None:
        return None if self._final is None else self._final[0].samples

    def error(self, accuracy: float) -> float:
        """Return the standard deviation of the accuracy that these samples measure."""
        if self._samples is None:
            return 0.0
        return math.sqrt(accuracy * (1 - accuracy) / self._samples)

    def sure(self, target: float) -> float:
        """Return the probability that the kept model reaches the target on other samples."""
        lead = self.accuracy - target
        error = self.error(target)
        if not error:
            return float(lead >= 0)
        return float(scipy.special.ndtr(lead / error))

    def level(self, target: float, confidence: float) -> float:
        """Return the accuracy to expect of a model for that confidence in the target."""
        return float(min(target + scipy.special.ndtri(confidence) * self.error(target), 0.995))

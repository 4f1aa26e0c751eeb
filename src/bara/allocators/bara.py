"""BARA: time-varying GP-UCB over estimates of the final accuracy (Yang et al. 2023, Algorithm 1).

Notation:
    n           number of clients, the arm; N - 1 arms
    T(n)        rounds the budget lasts with n clients each: B_total / (mean cost of n)
    a_hat(n)    estimated final accuracy with n clients in every round
    mu, sigma   the Gaussian process's mean and deviation of a_hat for each n
    beta_t      sqrt(beta_t) = 0.8 log(0.4 t) weighs exploration
    T_0         rounds t < T_0 draw n at random (stage 1)
"""

import math
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from bara.allocators._arms import arms_of, check_clients, explored, positions
from bara.allocators.estimators import ESTIMATORS, Estimator
from bara.errors import ConfigError
from bara.options import Within, check_fields, check_options
from bara.records import Belief, FloatArray, Offer, Purse, RoundRecord, Shortfall
from bara.surrogates import KalmanGP, squared_exponential
from bara.text import nearest


@dataclass(frozen=True)
class Reading:
    """A reading of the open points of the paper's text; the defaults are ours.

    `PRESETS["paper"]` is the text to the letter.

    Attributes:
        exploration_rounds: T_0; rounds t < T_0 explore.
        exploration_share: Stage 1 also ends once this part of the budget is spent (the text asks
            that it leave money for stage 2 and gives no rule).
        normalise: The kernel sees n on [0, 1]; on whole numbers l = 0.2 lets neighbours share
            nothing.
        length_scale: l of the squared exponential.
        forgetting: lambda of the Ornstein-Uhlenbeck factor.
        noise: sigma^2 of an observation.
        beta_scale: The 0.8 in sqrt(beta_t) = 0.8 log(0.4 t), which counts as 0 where it is
            negative.
        beta_rate: The 0.4.
        ahead: Predictions are for round t + ahead (the text's commented-out definition has t + 1).
        reestimate: Past observations are estimated anew every round; otherwise they stay as they
            were made.
        cap_horizon: T(n) is at most T_max, which Algorithm 1 loops to.
        horizon: What an estimate assumes: n in every round of a whole budget (`total`, the text),
            or n in every round from now on, with the money and the rounds left (`left`).
        clip: Estimates are clipped to [0, 1]; otherwise they stay as computed, and one too large
            for a float counts as no observation.
        vector: What Eqs. 11 and 12 condition on. `chosen`: each round's estimate for the n it
            chose, a_hat_tau(n_tau), as Eq. 10 observes it. `column`: for the mean of each n that
            n's own estimates in every round, a_hat_tau(n), as the text has it after Eq. 12; a
            column without an increment stands at a_0.
        unit: The value of an accuracy of 100 per cent in the Gaussian process, whose prior
            variance is 1 and whose noise is sigma^2: 1 for fractions, 100 for per cent. Beliefs are
            in fractions.
        prior_mean: mu_0, the final accuracy that the Gaussian process expects before it sees any;
            a fraction. Algorithm 1 has it among its inputs, without a value.
        amplitude: sigma_0, the deviation of the prior, in the unit; also an input without a value.
        standardise: The Gaussian process sees estimates minus their mean, in parts of their
            deviation, anew every round, as is usual in Bayesian optimisation.
        predicts: The prediction that the regret of a round is measured with: `estimate`,
            a_hat_t(n_t) as the formula has it, or `mean`, mu_t(n_t), "predicted by our model" as
            the words have it. Decisions do not depend on it.
        cost_average: The mean cost of n over the rounds where n was recruited (`chosen`, the text)
            or over the menus of all rounds (`menus`).
        shortfall: When n cannot be paid: `stop` (Algorithm 1) or `shrink`.
    """

    exploration_rounds: Annotated[int, Within(at_least=0)] = 40
    exploration_share: Annotated[float, Within(at_least=0, at_most=1)] = 0.5
    normalise: bool = True
    length_scale: Annotated[float, Within(above=0)] = 0.2
    forgetting: Annotated[float, Within(at_least=0, below=1)] = 0.001
    noise: Annotated[float, Within(above=0)] = 0.01
    beta_scale: Annotated[float, Within(at_least=0)] = 0.8
    beta_rate: Annotated[float, Within(above=0)] = 0.4
    ahead: Annotated[int, Within(at_least=0)] = 1
    reestimate: bool = False
    cap_horizon: bool = True
    horizon: Literal["total", "left"] = "total"
    clip: bool = True
    vector: Literal["chosen", "column"] = "chosen"
    unit: Annotated[float, Within(above=0)] = 1.0
    prior_mean: Annotated[float, Within(at_least=0, at_most=1)] = 0.0
    amplitude: Annotated[float, Within(above=0)] = 1.0
    standardise: bool = False
    predicts: Literal["estimate", "mean"] = "estimate"
    cost_average: Literal["chosen", "menus"] = "chosen"
    shortfall: Shortfall = "stop"

    def __post_init__(self) -> None:
        """Refuse a parameter out of its range, and readings that exclude each other."""
        check_fields("allocator 'bara'", self)
        if self.standardise and (self.vector == "column" or self.reestimate):
            raise ConfigError(
                "allocator 'bara' with standardise = true must have vector = 'chosen' and "
                "reestimate = false"
            )


_LETTER = Reading(exploration_share=1.0, normalise=False, cap_horizon=False, clip=False)
_INTENDED = replace(_LETTER, normalise=True, clip=True, unit=100.0, predicts="mean")
PRESETS = {"default": Reading(), "paper": _LETTER, "intended": _INTENDED}
"""The named readings; under `intended`, n settles as in the paper's Figure 2."""

Estimates = float | list[float | None] | None
"""The final accuracy that a round suggests: one number, one for each arm, or none."""


class Bara:
    """The paper's own allocator: Algorithm 1, both stages.

    Args:
        clients: N, the largest number of clients there may be.
        seed: The seed of stage 1's draws; a round's draw depends only on (seed, round).
        preset: The reading to start from: `default`, `paper` or `intended`.
        estimator: The estimator of the final accuracy of a constant n: a name, an import path, or
            the object itself.
        **options: Fields of `Reading` to change.

    >>> from bara.records import Evaluation
    >>> allocator, purse = Bara(clients=20, preset="paper"), Purse.of(total=1500, max_rounds=200)
    >>> allocator.tell(RoundRecord.initial(purse, Evaluation(accuracy=0.1)))
    >>> allocator.ask(purse).limit, allocator.belief().stage  # stage 1: a random n
    (7, 'explore')
    """

    more_options: ClassVar = Reading
    """The record of what `**options` may hold."""

    def __init__(
        self,
        clients: int,
        seed: int = 0,
        preset: str = "default",
        estimator: Estimator | str = "newton",
        **options: Any,
    ) -> None:
        check_clients("bara", clients)
        self.reading = _reading(preset, options)
        self._seed = seed
        self._arms = arms_of(clients)
        points = self._arms.astype(float)
        if self.reading.normalise:
            points = positions(self._arms, clients)
        shape = squared_exponential(points, self.reading.length_scale)
        self._covariance = self.reading.amplitude**2 * shape
        self._gp = self._prior()
        # The process sees an accuracy less the centre, times the scale.
        self._centre = self.reading.prior_mean
        self._scale = self.reading.unit
        if isinstance(estimator, str):
            estimator = ESTIMATORS.build(estimator, clients=clients)
        if not isinstance(estimator, Estimator):
            raise ConfigError(
                f"allocator 'bara' has estimator = {estimator!r}; it must have the methods tell "
                "and estimate"
            )
        self._estimator = estimator
        self._costs: dict[int, list[int]] = defaultdict(lambda: [0, 0])  # n -> [sum, count]
        self._rounds: list[int] = []  # the n of each round told
        self._estimates: list[Estimates] = []  # the estimate made after each round told
        self._known: list[Estimates] = []  # the estimates restored from memory
        self._initial = 0.0
        self._exploring = True

    def ask(self, purse: Purse) -> Offer:
        """Recruit a random n in stage 1, the n of the largest upper confidence bound in stage 2.

        That bound is Eq. 13; a tie goes to the smaller n.
        """
        if self._explores(purse):
            n = explored(self._arms, self._seed, purse.round)
        else:
            mean, deviation = self._gp.predict(self.reading.ahead)
            bounds = mean + self._root_beta(purse.round) * deviation
            n = int(self._arms[np.argmax(bounds)])
        return Offer.recruit(n, shortfall=self.reading.shortfall)

    def tell(self, record: RoundRecord) -> None:
        """Estimate the final accuracy of the round's n and update the posterior (line 22)."""
        self._estimator.tell(record)
        self._exploring = self._explores(record.purse_after)
        if record.round == 0:
            self._initial = record.evaluation.accuracy
            return
        self._rounds.append(record.n)
        if record.round <= len(self._known):
            seen = self._known[record.round - 1]
        else:
            self._learn_costs(record)
            seen = self._estimated(record.n, record.purse_after)
        self._estimates.append(seen)
        if self.reading.reestimate:
            self._gp = self._prior()
            anew = {n: self._estimated(n, record.purse_after) for n in set(self._rounds)}
            for n in self._rounds:
                self._observe(n, anew[n])
        elif self.reading.standardise:
            self._gp = self._prior()
            self._centre, self._scale = _standard(self._estimates)
            for n, estimate in zip(self._rounds, self._estimates, strict=True):
                self._observe(n, estimate)
        else:
            self._observe(record.n, seen)

    def memory(self) -> dict[str, Any]:
        """Return what the menus taught: the costs, and the estimates made with them."""
        return {
            "costs": {str(n): pair for n, pair in self._costs.items()},
            "estimates": self._estimates,
        }

    def restore(self, memory: dict[str, Any]) -> None:
        """Restore costs and estimates; the rounds are replayed afterwards without their menus."""
        self._costs.update({int(n): list(pair) for n, pair in memory["costs"].items()})
        self._known = list(memory["estimates"])

    def belief(self) -> Belief:
        """Return the posterior over n, and the estimate that the last round gave."""
        mean, deviation = self._gp.predict(self.reading.ahead)
        mean = self._centre + mean / self._scale
        deviation = deviation / self._scale
        return Belief(
            stage="explore" if self._exploring else "exploit",
            arms=tuple(self._arms.tolist()),
            mean=tuple(mean.tolist()),
            deviation=tuple(deviation.tolist()),
            estimate=self._prediction(mean),
        )

    def _prediction(self, mean: FloatArray) -> float | None:
        """Return the final accuracy predicted for the last round's n; None without an estimate."""
        if not self._estimates:
            return None
        last = self._estimates[-1]
        if last is None:
            return None
        arm = self._arm(self._rounds[-1])
        if self.reading.predicts == "mean":
            return float(mean[arm])
        return last[arm] if isinstance(last, list) else last

    def _explores(self, purse: Purse) -> bool:
        within = purse.spent < self.reading.exploration_share * purse.total
        return purse.round < self.reading.exploration_rounds and within

    def _root_beta(self, t: int) -> float:
        return max(self.reading.beta_scale * math.log(self.reading.beta_rate * t), 0.0)

    def _prior(self) -> KalmanGP:
        columns = self.reading.vector == "column"
        return KalmanGP(
            self._covariance, self.reading.forgetting, self.reading.noise, columns=columns
        )

    def _arm(self, n: int) -> int:
        return int(np.argmin(np.abs(self._arms - n)))

    def _observe(self, n: int, seen: Estimates) -> None:
        if seen is None:
            self._gp.pass_round()
            return
        values = np.array(seen, dtype=float)  # in a column None becomes NaN
        self._gp.observe(self._arm(n), (values - self._centre) * self._scale)

    def _estimated(self, n: int, purse: Purse) -> Estimates:
        """Return what a round with n clients shows: the estimate for n, or for every arm."""
        if self.reading.vector == "chosen":
            return self._bounded(self._final_accuracy(n, purse))
        column = []
        for arm in self._arms.tolist():
            value = self._final_accuracy(arm, purse)
            if value is None:
                value = self._initial
            column.append(self._bounded(value))
        return column

    def _learn_costs(self, record: RoundRecord) -> None:
        seen = {}
        if self.reading.cost_average == "menus":
            costs = record.awarded.costs
            seen = {int(n): int(costs[n - 1]) for n in self._arms if n <= len(costs)}
        elif record.n:
            seen = {record.n: record.paid}
        for n, cost in seen.items():
            self._costs[n][0] += cost
            self._costs[n][1] += 1

    def _final_accuracy(self, n: int, purse: Purse) -> float | None:
        """Return a_hat(n) after T(n) rounds (Eq. 6); None where no round had n clients.

        T(n) is rounded down, but at least 1.
        """
        total, count = self._costs.get(n, (0, 0))
        if not total:
            return None
        if self.reading.horizon == "left":
            done = purse.round - 1
            to_come = min(purse.left * count // total, purse.rounds_left)
            return self._estimator.estimate(n, done + to_come, done=done)
        rounds = max(purse.total * count // total, 1)
        if self.reading.cap_horizon:
            rounds = min(rounds, purse.max_rounds)
        return self._estimator.estimate(n, rounds)

    def _bounded(self, estimate: float | None) -> float | None:
        """Return the estimate as the Gaussian process observes it; None where it cannot."""
        if estimate is None or math.isnan(estimate):
            return None
        if self.reading.clip:
            return min(max(estimate, 0.0), 1.0)
        return estimate if math.isfinite(estimate) else None


def _standard(estimates: list[Estimates]) -> tuple[float, float]:
    """Return the mean of the estimates, and one over their deviation; 1 where that is 0."""
    known = [estimate for estimate in estimates if isinstance(estimate, float)]
    if not known:
        return 0.0, 1.0
    return float(np.mean(known)), 1 / (float(np.std(known)) or 1.0)


def _reading(preset: str, options: dict[str, Any]) -> Reading:
    if preset not in PRESETS:
        raise ConfigError(
            f"allocator 'bara' has no preset {preset!r}; {nearest(preset, list(PRESETS))}"
        )
    types = {field.name: field.type for field in fields(Reading)}
    check_options("allocator 'bara'", options, types, known=["preset", "estimator", *types])
    return replace(PRESETS[preset], **options)

"""The privacy that each client has spent over a run, computed by Google's dp-accounting."""

from collections import Counter, defaultdict
from importlib.util import find_spec

from bara.records import RoundRecord

DELTA = 1e-5
"""The probability with which the tighter of the two privacy guarantees may fail."""

_STEPS = 500
"""The number of steps that divide the largest privacy loss of a round; losses are rounded up."""


class PrivacyAccount:
    """A running count of each client's private releases, which needs no past rounds in memory."""

    def __init__(self) -> None:
        self._released: defaultdict[str, Counter[float]] = defaultdict(Counter)

    def tell(self, record: RoundRecord) -> None:
        """Count the deliveries of a settled round."""
        budgets = record.awarded.privacy or {}
        for client in record.delivery.delivered:
            self._released[client][budgets[client]] += 1

    def spent(self) -> dict[str, dict[str, float]]:
        """Return each delivering client's rounds, sum of epsilons, and epsilon at `DELTA`.

        One round is eps-differentially private (Laplace noise). Over k rounds the sum k eps holds
        with certainty; the numerical composition of eps-private rounds (privacy loss distributions)
        is tighter at a small delta. Without the extra `sim` there is no accountant: epsilon is then
        the sum, and delta is 0.
        """
        return {client: _composed(epsilons) for client, epsilons in sorted(self._released.items())}


def _composed(epsilons: Counter[float]) -> dict[str, float]:
    """Compose the releases of one client; `epsilons` counts the releases at each epsilon."""
    rounds = epsilons.total()
    total = sum(epsilon * times for epsilon, times in sorted(epsilons.items()))
    if find_spec("dp_accounting") is None:
        return {"rounds": rounds, "epsilon_sum": total, "epsilon": total, "delta": 0.0}
    from dp_accounting.pld import (  # noqa: PLC0415 - only the extra `sim` brings it
        common,
        privacy_loss_distribution,
    )

    step = max(epsilons) / _STEPS
    composed = []
    for epsilon, times in sorted(epsilons.items()):
        release = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, 0.0), value_discretization_interval=step
        )
        composed.append(release.self_compose(times))
    losses = composed[0]
    for other in composed[1:]:
        losses = losses.compose(other)
    tighter = float(losses.get_epsilon_for_delta(DELTA))
    return {"rounds": rounds, "epsilon_sum": total, "epsilon": min(tighter, total), "delta": DELTA}

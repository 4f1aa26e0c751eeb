"""The privacy each client has spent over the rounds it won, by a maintained accountant (Google's dp-accounting)."""

from collections import Counter, defaultdict
from importlib.util import find_spec

from bara.records import RoundRecord

DELTA = 1e-5
"""The probability with which the tighter statement may fail."""

_STEPS = 500
"""Into how many steps one round's privacy loss is divided; the accountant rounds up."""


class PrivacyAccount:
    """Adds up what clients release, round by round, so that none of the rounds need be kept."""

    def __init__(self) -> None:
        self._released: defaultdict[str, Counter[float]] = defaultdict(Counter)

    def tell(self, record: RoundRecord) -> None:
        """Count a settled round's deliveries."""
        budgets = record.awarded.privacy or {}
        for client in record.delivery.delivered:
            self._released[client][budgets[client]] += 1

    def spent(self) -> dict[str, dict[str, float]]:
        """For each client that delivered: its rounds, the sum of their epsilons, and epsilon at `DELTA`.

        One round is eps-differentially private (Laplace noise). Over k rounds the sum k eps holds
        with certainty; the numerical composition of eps-private rounds (privacy loss distributions)
        is tighter at a small delta. Without the extra `sim` there is no accountant, and the sum is
        all that is told.
        """
        return {client: _composed(epsilons) for client, epsilons in sorted(self._released.items())}


def _composed(epsilons: Counter[float]) -> dict[str, float]:
    """Several releases of one client together; `epsilons` says how often there was each."""
    rounds, total = (
        epsilons.total(),
        sum(epsilon * times for epsilon, times in sorted(epsilons.items())),
    )
    if find_spec("dp_accounting") is None:
        return {"rounds": rounds, "epsilon_sum": total, "epsilon": total, "delta": 0.0}
    from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415 - the extra `sim` brings it

    step = max(epsilons) / _STEPS
    losses = None
    for epsilon, times in sorted(epsilons.items()):
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, 0.0), value_discretization_interval=step
        ).self_compose(times)
        losses = one if losses is None else losses.compose(one)
    tighter = total if losses is None else float(losses.get_epsilon_for_delta(DELTA))
    return {"rounds": rounds, "epsilon_sum": total, "epsilon": min(tighter, total), "delta": DELTA}

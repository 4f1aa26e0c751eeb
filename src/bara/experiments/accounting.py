"""The privacy each client has spent over the rounds it won, by a maintained accountant (Google's dp-accounting)."""

from collections import defaultdict
from collections.abc import Iterable
from importlib.util import find_spec

from bara.records import RoundRecord

DELTA = 1e-5
"""The probability with which the tighter statement may fail."""

_STEPS = 500
"""Into how many steps one round's privacy loss is divided; the accountant rounds up."""


def privacy_spent(records: Iterable[RoundRecord]) -> dict[str, dict[str, float]]:
    """For each client that delivered: its rounds, the sum of their epsilons, and epsilon at `DELTA`.

    One round is eps-differentially private (Laplace noise). Over k rounds the sum k eps holds with certainty; the
    numerical composition of eps-private rounds (privacy loss distributions) is tighter at a small delta. Without the
    extra `sim` there is no accountant, and the sum is all that is told.
    """
    released: dict[str, list[float]] = defaultdict(list)
    for record in records:
        bids = record.awarded.bids
        budgets = dict(zip(bids.clients, bids.columns.get("epsilon", ()), strict=False))
        for client in record.delivery.delivered:
            released[client].append(float(budgets[client]))
    return {client: _composed(epsilons) for client, epsilons in sorted(released.items())}


def _composed(epsilons: list[float]) -> dict[str, float]:
    total = sum(epsilons)
    if find_spec("dp_accounting") is None:
        return {"rounds": len(epsilons), "epsilon_sum": total, "epsilon": total, "delta": 0.0}
    from dp_accounting.pld import common, privacy_loss_distribution  # noqa: PLC0415 - the extra `sim` brings it

    step = max(epsilons) / _STEPS
    losses = None
    for epsilon in sorted(set(epsilons)):
        one = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, 0.0), value_discretization_interval=step
        ).self_compose(epsilons.count(epsilon))
        losses = one if losses is None else losses.compose(one)
    tighter = total if losses is None else float(losses.get_epsilon_for_delta(DELTA))
    return {"rounds": len(epsilons), "epsilon_sum": total, "epsilon": min(tighter, total), "delta": DELTA}

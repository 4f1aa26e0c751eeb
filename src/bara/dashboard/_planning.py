"""The purse as an allocator's plan would burn it down."""

from collections.abc import Sequence
from statistics import fmean

from bara.ledger.progress import ClosedRound, RoundDetails
from bara.records import decimal_money


def path_ahead(details: RoundDetails, rounds: Sequence[ClosedRound]) -> dict[str, list[float]] | None:
    """Rounds, and what would be left after each, in the corners of a two-phase plan; None where there is no plan."""
    plan = (details.belief or {}).get("plan")
    if plan is None:
        return None
    total, max_rounds, spent = details.purse
    start, left = details.round - 1, total - spent
    phases = [(plan["main_n"], plan["main_rounds"]), (plan["end_n"], plan["end_rounds"])]
    past = [one for one in rounds if one.round < details.round]
    weights = [length * _cost(n, past) for n, length in phases]
    scale = plan["spend"] / sum(weights) if sum(weights) else 0.0
    corners = [(float(start), float(left))]
    for (_, length), weight in zip(phases, weights, strict=True):
        at, money = corners[-1]
        corners.append((min(at + length, float(max_rounds)), max(money - scale * weight, 0.0)))
    return {"round": [at for at, _ in corners], "left": [decimal_money(int(money)) for _, money in corners]}


def _cost(n: int, past: Sequence[ClosedRound]) -> float:
    """What n clients cost of late, or, where n was never recruited, as much a client as the nearest number did."""
    played = [one for one in past if one.delivered][-100:]
    if not played:
        return float(n * n)  # the critical price grows about as the number of clients
    nearest = min(abs(len(one.delivered) - n) for one in played)
    some = [one for one in played if abs(len(one.delivered) - n) == nearest]
    return fmean(one.paid / len(one.delivered) for one in some) * n

"""One round as its page shows it: menu, offer and choice, the belief and its plan, who won and what became of it."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from bara.dashboard._presentation import shown, thin
from bara.ledger.progress import ClosedRound, RoundDetails
from bara.records import MAX_MONEY, Offer, decimal_money, json_money

Json = dict[str, Any]

BIDS = 200
"""Bids that are listed."""

LONGEST = 2000
"""Characters of a sentence that are shown."""

MENU = 120
"""Points of a menu that are drawn."""


def round_json(
    details: RoundDetails, rounds: Sequence[ClosedRound], words: Sequence[str] = ()
) -> Json:
    """All that the page shows, with the round explained in words."""
    return {
        "words": [shown(sentence, LONGEST) for sentence in words],
        "round": details.round,
        "settled": details.settled,
        "n": len(details.winners),
        **json_money(
            cost=sum(line.promised for line in details.winners),
            left=details.purse[0] - details.purse[2],
        ),
        "menu": None if details.menu is None else _menu(details, details.menu),
        "belief": None if details.belief is None else _belief(details.belief),
        "path": _path_ahead(details, rounds),
        "bids": _bids(details),
    }


def _menu(details: RoundDetails, costs: Sequence[int]) -> Json:
    caps = Offer(**details.offer).vector(len(costs)).tolist()
    kept = thin(costs, MENU)
    return {
        "n": [int(i) + 1 for i in kept],
        **json_money(
            cost=[costs[i] for i in kept],
            cap=[None if caps[i] >= MAX_MONEY else caps[i] for i in kept],
        ),
    }


def _belief(belief: Mapping[str, Any]) -> Json:
    plan = belief.get("plan")
    return {
        "stage": shown(str(belief["stage"])),
        "arms": belief.get("arms", []),
        "mean": belief.get("mean", []),
        "deviation": belief.get("deviation", []),
        "estimate": belief.get("estimate"),
        "plan": None if plan is None else {**plan, **json_money(spend=plan["spend"])},
    }


def _path_ahead(
    details: RoundDetails, rounds: Sequence[ClosedRound]
) -> dict[str, list[float]] | None:
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
    return {
        "round": [at for at, _ in corners],
        "left": [decimal_money(int(money)) for _, money in corners],
    }


def _cost(n: int, past: Sequence[ClosedRound]) -> float:
    """What n clients cost of late, or, where n was never recruited, as much a client as the nearest number did."""
    played = [one for one in past if one.delivered][-100:]
    if not played:
        return float(n * n)  # the critical price grows about as the number of clients
    nearest = min(abs(len(one.delivered) - n) for one in played)
    some = [one for one in played if abs(len(one.delivered) - n) == nearest]
    return fmean(one.paid / len(one.delivered) for one in some) * n


def _bids(details: RoundDetails) -> list[Json]:
    """Winners first, then, where bids may be seen, the others from the cheapest on."""
    winners = {line.client: line for line in details.winners}
    rows = [
        {
            "client": shown(line.client),
            **json_money(asked=line.asked, promised=line.promised, paid=line.paid),
            "became": shown(line.reason)
            if line.reason is not None
            else "training"
            if line.paid is None
            else "paid",
        }
        for line in details.winners
    ]
    others = sorted(
        (price, client) for client, price in (details.bids or {}).items() if client not in winners
    )
    rows += [
        {
            "client": shown(client),
            **json_money(asked=price, promised=None, paid=None),
            "became": "not chosen",
        }
        for price, client in others[: BIDS - len(rows)]
    ]
    return rows

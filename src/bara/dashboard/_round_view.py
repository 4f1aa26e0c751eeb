"""The content of one round as JSON: menu, offer, belief, plan, bids and outcomes."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from bara.dashboard._presentation import shown, thin
from bara.ledger.run_state import ClosedRound, RoundDetails
from bara.ledger.statements import Line
from bara.records import MAX_MONEY, Offer, decimal_money, json_money

Json = dict[str, Any]

BIDS = 200
"""The most bids that are listed."""

LONGEST = 2000
"""The most characters of a sentence that are shown."""

MENU = 120
"""The most points of a menu that are drawn."""


def round_json(
    details: RoundDetails, rounds: Sequence[ClosedRound], words: Sequence[str] = ()
) -> Json:
    """Return everything that a page shows about one round.

    Args:
        details: The round.
        rounds: The settled rounds of the run.
        words: The sentences that explain the round.
    """
    total, _, spent = details.purse
    menu = None
    if details.menu is not None:
        menu = _menu(details, details.menu)
    belief = None
    if details.belief is not None:
        belief = _belief(details.belief)
    return {
        "words": [shown(sentence, LONGEST) for sentence in words],
        "round": details.round,
        "settled": details.settled,
        "n": len(details.winners),
        **json_money(
            cost=sum(line.promised for line in details.winners),
            left=total - spent,
        ),
        "menu": menu,
        "belief": belief,
        "path": _path_ahead(details, rounds),
        "bids": _bids(details),
    }


def _menu(details: RoundDetails, costs: Sequence[int]) -> Json:
    """Return cost and cap for each number of clients; a cap that limits nothing is None."""
    limits = Offer(**details.offer).vector(len(costs)).tolist()
    positions = thin(costs, MENU)
    caps = []
    for i in positions:
        unlimited = limits[i] >= MAX_MONEY
        caps.append(None if unlimited else limits[i])
    return {
        "n": [int(i) + 1 for i in positions],
        **json_money(cost=[costs[i] for i in positions], cap=caps),
    }


def _belief(belief: Mapping[str, Any]) -> Json:
    plan = belief.get("plan")
    if plan is not None:
        plan = {**plan, **json_money(spend=plan["spend"])}
    return {
        "stage": shown(str(belief["stage"])),
        "arms": belief.get("arms", []),
        "mean": belief.get("mean", []),
        "deviation": belief.get("deviation", []),
        "estimate": belief.get("estimate"),
        "plan": plan,
    }


def _path_ahead(
    details: RoundDetails, rounds: Sequence[ClosedRound]
) -> dict[str, list[float]] | None:
    """Return the corners of a two-phase plan: rounds, and the money left after each.

    The plan's spend is divided between its phases in proportion to what rounds of their size cost.
    """
    plan = (details.belief or {}).get("plan")
    if plan is None:
        return None
    total, max_rounds, spent = details.purse
    past = [one for one in rounds if one.round < details.round]
    lengths = [plan["main_rounds"], plan["end_rounds"]]
    weights = [
        plan["main_rounds"] * _cost(plan["main_n"], past),
        plan["end_rounds"] * _cost(plan["end_n"], past),
    ]
    scale = plan["spend"] / sum(weights) if sum(weights) else 0.0
    at = float(details.round - 1)
    left = float(total - spent)
    path = {"round": [at], "left": [decimal_money(int(left))]}
    for length, weight in zip(lengths, weights, strict=True):
        at = min(at + length, float(max_rounds))
        left = max(left - scale * weight, 0.0)
        path["round"].append(at)
        path["left"].append(decimal_money(int(left)))
    return path


def _cost(n: int, past: Sequence[ClosedRound]) -> float:
    """Estimate the cost of n clients from recent rounds with the nearest number of deliveries."""
    played = [one for one in past if one.delivered][-100:]
    if not played:
        return float(n * n)  # the critical price grows about as the number of clients
    nearest = min(abs(len(one.delivered) - n) for one in played)
    similar = [one for one in played if abs(len(one.delivered) - n) == nearest]
    return fmean(one.paid / len(one.delivered) for one in similar) * n


def _bids(details: RoundDetails) -> list[Json]:
    """Return the winners, then the other bids from the cheapest, where bids may be shown."""
    rows = list(map(_winner, details.winners))
    winners = {line.client for line in details.winners}
    bids = details.bids or {}
    others = sorted((price, client) for client, price in bids.items() if client not in winners)
    for price, client in others[: BIDS - len(rows)]:
        amounts = json_money(asked=price, promised=None, paid=None)
        rows.append({"client": shown(client), **amounts, "became": "not chosen"})
    return rows


def _winner(line: Line) -> Json:
    if line.reason is not None:
        became = shown(line.reason)
    elif line.paid is None:
        became = "training"
    else:
        became = "earned"
    amounts = json_money(asked=line.asked, promised=line.promised, paid=line.paid)
    return {"client": shown(line.client), **amounts, "became": became}

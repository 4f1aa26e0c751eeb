"""One round as its page shows it: the menu and the offer, the choice, the belief, who won and what became of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from bara.dashboard._labels import shown
from bara.dashboard._planning import path_ahead
from bara.dashboard._thinning import thin
from bara.ledger.progress import ClosedRound, RoundDetails
from bara.records import MAX_MONEY, Offer, decimal_money

Tree = dict[str, Any]

BIDS = 200
"""Bids that are listed."""

MENU = 120
"""Points of a menu that are drawn."""


def round_json(details: RoundDetails, rounds: Sequence[ClosedRound]) -> Tree:
    """One round: the menu with the offer's caps, the choice, the belief, who won and what became of it."""
    return {
        "round": details.round,
        "settled": details.settled,
        "n": len(details.winners),
        "cost": decimal_money(sum(line.promised for line in details.winners)),
        "left": decimal_money(details.purse[0] - details.purse[2]),
        "menu": None if details.menu is None else _menu(details, details.menu),
        "belief": None if details.belief is None else _belief(details.belief),
        "path": path_ahead(details, rounds),
        "bids": _bids(details),
    }


def _menu(details: RoundDetails, costs: Sequence[int]) -> Tree:
    offer = Offer(**{**details.offer, "table": tuple(table) if (table := details.offer.get("table")) else None})
    caps = offer.vector(len(costs)).tolist()
    kept = thin(costs, MENU)
    return {
        "n": [int(i) + 1 for i in kept],
        "cost": [decimal_money(costs[i]) for i in kept],
        "cap": [None if caps[i] >= MAX_MONEY else decimal_money(caps[i]) for i in kept],
    }


def _belief(belief: Mapping[str, Any]) -> Tree:
    plan = belief.get("plan")
    return {
        "stage": shown(str(belief["stage"])),
        "arms": belief.get("arms", []),
        "mean": belief.get("mean", []),
        "deviation": belief.get("deviation", []),
        "estimate": belief.get("estimate"),
        "plan": None if plan is None else {**plan, "spend": decimal_money(plan["spend"])},
    }


def _bids(details: RoundDetails) -> list[Tree]:
    """Winners first, then, where bids may be seen, the others from the cheapest on."""
    winners = {line.client: line for line in details.winners}
    rows = [
        {
            "client": shown(line.client),
            "asked": None if line.asked is None else decimal_money(line.asked),
            "promised": decimal_money(line.promised),
            "paid": None if line.paid is None else decimal_money(line.paid),
            "became": "training" if line.paid is None else "paid" if line.reason is None else shown(line.reason),
        }
        for line in details.winners
    ]
    others = sorted((price, client) for client, price in (details.bids or {}).items() if client not in winners)
    rows += [
        {"client": shown(client), "asked": decimal_money(price), "promised": None, "paid": None, "became": "not chosen"}
        for price, client in others[: BIDS - len(rows)]
    ]
    return rows

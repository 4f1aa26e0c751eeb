"""What mechanisms that learn quality share: the drop they learn from, and an auction without the worthless."""

import math
from bisect import bisect_left
from collections.abc import Mapping

import numpy as np

from bara.mechanisms._critical import critical_menu
from bara.records import Bids, Evidence, FloatArray, Menu


def sizes(bids: Bids) -> FloatArray:
    """Each client's data size, as the server knows it; 1 each where it does not."""
    known = bids.columns.get("samples")
    return np.ones(len(bids)) if known is None else known


def by_client(bids: Bids, known: Mapping[str, float], otherwise: float) -> FloatArray:
    """What is known of each client, in the order of the bids; found by bisection where few are known among many."""
    if len(known) > len(bids) // 16:
        return np.array([known.get(client, otherwise) for client in bids.clients], float)
    values = np.full(len(bids), otherwise)
    for client, value in known.items():
        place = bisect_left(bids.clients, client)
        if place < len(bids) and bids.clients[place] == client:
            values[place] = value
    return values


def loss_drop(evidence: Evidence) -> float | None:
    """By how much a client's training lowered its loss, at least 0; None where it was not measured."""
    if evidence.loss_before is None or evidence.loss_after is None:
        return None
    drop = evidence.loss_before - evidence.loss_after
    return drop if math.isfinite(drop) and drop > 0 else 0.0


def learned_menu(bids: Bids, quality: FloatArray, least: float, reserve: int | None = None) -> Menu:
    """The critical-payment menu of those whose quality is at least this share of the mean (our choice).

    Without the floor a worthless first loser would set everybody's price: b / q with q near 0.
    Quality does not depend on this round's prices, so leaving clients out by it keeps the auction
    truthful. The menu weighs updates by quality.
    """
    floor = least * (float(quality.sum()) / len(bids)) if len(bids) else 0.0
    worthy = (quality > 0) & (quality >= floor)
    menu = critical_menu(bids, quality, reserve, worthy)

    def weigh(n: int) -> tuple[float, ...]:
        return tuple(quality[menu.order[:n]].tolist())

    return Menu(menu.bids, menu.order, menu.costs, menu.pay, menu.exact, weigh)

"""Helpers of the mechanisms that learn quality: measured contributions, and an auction on them."""

import math
from bisect import bisect_left
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bara.mechanisms._critical import critical_menu
from bara.records import Bids, Evidence, FloatArray, Menu


def sizes(bids: Bids) -> FloatArray:
    """Return each client's data size, as the server knows it; 1 each where it does not."""
    known = bids.columns.get("samples")
    if known is None:
        return np.ones(len(bids))
    return known


def by_client(bids: Bids, known: Mapping[str, float], otherwise: float) -> FloatArray:
    """Return what is known of each client, in the order of the bids.

    Few known clients among many bids are found by bisection.

    Args:
        bids: The opened bids.
        known: The values by client.
        otherwise: The value of a client that is not among them.
    """
    if len(known) > len(bids) // 16:
        return np.array([known.get(client, otherwise) for client in bids.clients], float)
    values = np.full(len(bids), otherwise)
    for client, value in known.items():
        place = bisect_left(bids.clients, client)
        if place < len(bids) and bids.clients[place] == client:
            values[place] = value
    return values


def loss_drop(evidence: Evidence) -> float | None:
    """Return by how much training lowered a client's loss, at least 0; None if not measured."""
    if evidence.loss_before is None or evidence.loss_after is None:
        return None
    drop = evidence.loss_before - evidence.loss_after
    return drop if math.isfinite(drop) and drop > 0 else 0.0


def worthy(quality: FloatArray, least: float) -> NDArray[np.bool_]:
    """Return True for each client whose quality is positive and at least `least` of the mean."""
    floor = 0.0
    if len(quality):
        floor = least * (float(quality.sum()) / len(quality))
    return np.asarray((quality > 0) & (quality >= floor))


def learned_menu(bids: Bids, quality: FloatArray, least: float, reserve: int | None = None) -> Menu:
    """Return the critical-payment menu without clients of little quality; it weighs by quality.

    Without that floor (our choice) a worthless first loser would set everybody's price: b / q with
    q near 0. Quality does not depend on this round's prices, so leaving clients out by quality
    keeps the auction truthful.

    Args:
        bids: The opened bids.
        quality: The quality of each client, in the order of the bids.
        least: The share of the mean quality that a client must have to take part.
        reserve: The most that is paid for a unit of quality.
    """
    menu = critical_menu(bids, quality, reserve, worthy(quality, least))

    def weigh(n: int) -> tuple[float, ...]:
        return tuple(quality[menu.order[:n]].tolist())

    return Menu(menu.bids, menu.order, menu.costs, menu.pay, menu.exact, weigh)

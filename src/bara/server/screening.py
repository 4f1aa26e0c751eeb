"""Screening of clients' updates: which ones are refused, and why."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

State = NDArray[np.float32]

FEWEST = 4
"""The fewest updates that can be compared; with fewer, no majority shows what is usual."""


def refusals(
    start: State, states: Sequence[State], outliers: float | None = None
) -> dict[int, str]:
    """Return the states to refuse, by position, each with the reason; their clients are void.

    Args:
        start: The model that the clients were sent.
        states: The model that each client sent back.
        outliers: Also refuse states that lie more than this many robust standard deviations farther
            from the others than is usual; None to refuse none for that.
    """
    refused: dict[int, str] = {}
    sound: list[int] = []
    for i, state in enumerate(states):
        reason = _fault(start, state)
        if reason:
            refused[i] = reason
        else:
            sound.append(i)
    if outliers is None or len(sound) < FEWEST:
        return refused
    scores = robust_scores(np.stack([states[i] for i in sound]))
    for i, score in zip(sound, scores.tolist(), strict=True):
        if score > outliers:
            refused[i] = f"its update is not ideal: {score:.3g} robust deviations away"
    return refused


def robust_scores(updates: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the robust z-score of each update's distance to the coordinate-wise median.

    This is our reading of FAIR's filter. The deviation is 1.4826 times the median absolute
    deviation, but at least a quarter of the median distance: where all are about equally far, no
    update is an outlier for being a little farther.
    """
    distances = np.linalg.norm(updates - np.median(updates, axis=0), axis=1).astype(np.float64)
    usual = float(np.median(distances))
    deviation = max(1.4826 * float(np.median(np.abs(distances - usual))), usual / 4)
    scores: NDArray[np.float64]
    if deviation:
        scores = (distances - usual) / deviation
    else:
        scores = np.where(distances > 0, np.inf, 0.0)
    return scores


def _fault(start: State, state: State) -> str:
    """Return why a state cannot be used at all; empty if it can."""
    if state.shape != start.shape:
        return f"its update has shape {state.shape}, the model has {start.shape}"
    if not np.isfinite(state).all():
        return "its update is not finite"
    return ""

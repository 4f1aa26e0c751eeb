"""Which updates are taken into the next model, and why the others are not."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

State = NDArray[np.float32]

FEWEST = 4
"""Updates that a comparison among them needs; with fewer, no majority says what is usual."""


def refusals(
    start: State, states: Sequence[State], outliers: float | None = None
) -> dict[int, str]:
    """Which of the clients' states are refused, by position, with the reason; their clients did not deliver.

    Args:
        start: The model they were sent.
        states: What each sent back.
        outliers: Also refuse what lies so many robust deviations farther from the others than is
            usual; None for not.
    """
    found = {i: _fault(start, state) for i, state in enumerate(states)}
    refused = {i: reason for i, reason in found.items() if reason}
    sound = [i for i in range(len(states)) if i not in refused]
    if outliers is not None and len(sound) >= FEWEST:
        scores = robust_scores(np.stack([states[i] for i in sound]))
        far = {i: float(score) for i, score in zip(sound, scores, strict=True) if score > outliers}
        refused |= {
            i: f"its update is not ideal: {score:.3g} robust deviations away"
            for i, score in far.items()
        }
    return refused


def robust_scores(updates: NDArray[np.float32]) -> NDArray[np.float64]:
    """The robust z-score of each update's distance to the coordinate-wise median (our reading of FAIR's filter).

    The deviation is 1.4826 times the median absolute deviation, but at least a quarter of the
    median distance: where all are nearly equally far, nobody is an outlier for being a little
    farther.
    """
    distances = np.linalg.norm(updates - np.median(updates, axis=0), axis=1).astype(np.float64)
    usual = float(np.median(distances))
    deviation = max(1.4826 * float(np.median(np.abs(distances - usual))), usual / 4)
    return (distances - usual) / deviation if deviation else np.where(distances > 0, np.inf, 0.0)


def _fault(start: State, state: State) -> str:
    if state.shape != start.shape:
        return f"its update has shape {state.shape}, the model has {start.shape}"
    return "" if np.isfinite(state).all() else "its update is not finite"

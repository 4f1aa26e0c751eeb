"""Aggregation of the clients' states into the next global state."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from bara.clients.conduct import State, Updates
from bara.errors import ConfigError
from bara.simulator._trainer import one_thread


def aggregate(updates: Updates, weights: Sequence[float]) -> State:
    """Return the weighted mean of the clients' whole states, summed in the clients' order.

    Batch-norm statistics are part of a state and are averaged with the same weights as the
    parameters. With FedSGD the mean of the clients' w - rate * gradient is w - rate * (the weighted
    mean gradient), Algorithm 1's server step.

    Args:
        updates: The updates of one round.
        weights: One weight for each client, in the updates' order: `updates.samples`, all equal, or
            a mechanism's own. They are divided by their sum. A client of weight 0 is left out,
            whatever its update holds; an update that is not finite must have weight 0
            (`bara.server.screening`).
    """
    _check_weights(updates, weights)
    total = math.fsum(weights)
    mean = torch.zeros(updates.states.shape[1])
    with one_thread():
        for state, weight in zip(torch.from_numpy(updates.states), weights, strict=True):
            if weight:
                mean.add_(state, alpha=weight / total)
    return mean.numpy()


def _check_weights(updates: Updates, weights: Sequence[float]) -> None:
    if len(weights) != len(updates.clients):
        raise ConfigError(
            f"aggregation needs one weight per client, got {len(weights)} "
            f"for {len(updates.clients)}"
        )
    if not np.isfinite(weights).all() or min(weights) < 0 or math.fsum(weights) <= 0:
        raise ConfigError(
            f"aggregation weights must be finite and at least 0, and not all 0, got {list(weights)}"
        )

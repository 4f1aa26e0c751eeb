"""The numbers of clients an allocator chooses from."""

import numpy as np

from bara.errors import ConfigError
from bara.randomness import stream
from bara.records import FloatArray, IntArray

MOST_ARMS = 256
"""The most arms there may be: the time of a decision grows with their square."""


def check_clients(allocator: str, clients: int) -> None:
    """Refuse a federation without clients."""
    if clients < 1:
        raise ConfigError(f"allocator {allocator!r} has clients = {clients}; it must be at least 1")


def arms_of(clients: int, most: int = MOST_ARMS) -> IntArray:
    """Return the numbers of clients to choose from: 1 .. N - 1, or an even grid where N is large.

    A lone client is the only arm.
    """
    top = max(clients - 1, 1)
    return np.unique(np.rint(np.linspace(1, top, min(top, most))).astype(np.int64))


def positions(arms: IntArray, clients: int) -> FloatArray:
    """Return each n on [0, 1]: x = (n - 1) / (N - 2); a single arm is at 0."""
    return (arms - 1) / max(clients - 2, 1)


def explored(arms: IntArray, seed: int, round: int) -> int:
    """Return the n that stage 1 of Algorithm 1 draws, which depends only on (seed, round)."""
    return int(arms[stream(seed, "exploration", round).integers(len(arms))])

"""The numbers of clients an allocator chooses from."""

import numpy as np

from bara.errors import ConfigError
from bara.randomness import stream
from bara.records import FloatArray, IntArray

MOST_ARMS = 256
"""Beyond as many clients the arms are a grid: a decision costs their square."""


def check_clients(allocator: str, clients: int) -> None:
    """Refuse a federation of nobody."""
    if clients < 1:
        raise ConfigError(f"allocator {allocator!r} has clients = {clients}; it must be at least 1")


def arms_of(clients: int, most: int = MOST_ARMS) -> IntArray:
    """N = 1 .. N - 1, or an even grid over it where N is large; a lone client is the only arm."""
    top = max(clients - 1, 1)
    return np.unique(np.rint(np.linspace(1, top, min(top, most))).astype(np.int64))


def positions(arms: IntArray, clients: int) -> FloatArray:
    """Each n on [0, 1]: x = (n - 1) / (N - 2); with one arm only, x = 0."""
    return (arms - 1) / max(clients - 2, 1)


def explored(arms: IntArray, seed: int, round: int) -> int:
    """The n that stage 1 of Algorithm 1 draws; it depends on nothing but (seed, round)."""
    return int(arms[stream(seed, "exploration", round).integers(len(arms))])

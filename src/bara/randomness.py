"""Random number streams: one for every purpose, all derived from a single seed per run."""

from zlib import crc32

import numpy as np

from bara.errors import ConfigError


def stream(seed: int, purpose: str, *keys: int) -> np.random.Generator:
    """Return a random generator for one purpose of a run.

    Without the purpose, a partition and a subsample with the same seed would draw the same numbers
    and so be correlated.

    Args:
        seed: The seed of the run.
        purpose: What the numbers are used for.
        *keys: Further numbers to tell streams apart, such as a round or a client.

    >>> stream(0, "shards").integers(100) == stream(0, "shards").integers(100)
    np.True_
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"seed must be a whole number of at least 0, got {seed!r}")
    return np.random.default_rng([int(seed), crc32(purpose.encode()), *keys])

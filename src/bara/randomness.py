"""Where randomness comes from: a stream of its own for every purpose, so that one seed serves a whole run."""

from zlib import crc32

import numpy as np

from bara.errors import ConfigError


def stream(seed: int, purpose: str, *keys: int) -> np.random.Generator:
    """A generator that depends on the seed, on what it is used for, and on further keys (a round, a client).

    Without the purpose, a partition and a subsample with the same seed would draw the same numbers
    and so be correlated.

    >>> stream(0, "shards").integers(100) == stream(0, "shards").integers(100)
    np.True_
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ConfigError(f"seed must be a whole number of at least 0, got {seed!r}")
    return np.random.default_rng([int(seed), crc32(purpose.encode()), *keys])

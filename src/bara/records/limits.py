"""Limits to what clients say of themselves: columns of their bids, weights of their updates.

A server often cannot check such numbers, and one absurd number can rule a whole round. So each has
a limit, which the operator declares or which follows from what the others say.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

import numpy as np

from bara.errors import ConfigError
from bara.records.bids import FloatArray

LEAST = 1e-9
"""The smallest number that counts, whatever is declared: sums and products stay exact enough."""

MOST = 1e12
"""The largest number that counts, whatever is declared: sums and products do not overflow."""

TIMES = 100.0
"""How many times the median a number may be, unless a limit is declared for it."""

FEWEST = 3
"""The fewest numbers with a median that one absurd number among them cannot set."""


@final
@dataclass(frozen=True)
class Limits:
    """The largest numbers that clients may say of themselves.

    Attributes:
        declared: The limits that the operator declares, by the number's name.
        times: How many times the median a number without a declared limit may be; None where the
            server itself knows the numbers, so that none of them can be a lie.

    >>> said = np.array([250.0, 300.0, 320.0, 1e6])
    >>> Limits().exceeded("samples", said)
    {3: 'its samples are 1e+06, more than 100 times the median, 310; see limits.samples'}
    >>> Limits({"samples": 310}).exceeded("samples", said)[2]
    'its samples are 320, above limits.samples = 310'
    """

    declared: Mapping[str, float] = field(default_factory=dict)
    times: float | None = TIMES

    def __post_init__(self) -> None:
        """Refuse a limit that is no positive number; take hyphens in names for underscores."""
        declared = {}
        for name, most in self.declared.items():
            is_number = isinstance(most, int | float) and not isinstance(most, bool)
            if not (is_number and LEAST <= most <= MOST):
                raise ConfigError(
                    f"limits.{name} must be a number from {LEAST:g} to {MOST:g}, got {most!r}"
                )
            declared[_key(name)] = float(most)
        object.__setattr__(self, "declared", MappingProxyType(declared))

    def exceeded(
        self, name: str, said: FloatArray, usual: FloatArray | None = None
    ) -> dict[int, str]:
        """Return the numbers that do not count, by position, each with the reason.

        Args:
            name: What the numbers are, like `samples`.
            said: The number that each client says; finite and positive.
            usual: The numbers whose median counts; None for `said` itself.
        """
        key = _key(name)
        most, source = self._most(key, said if usual is None else usual)
        reasons = {}
        for place in np.flatnonzero((said > most) | (said < LEAST)).tolist():
            number = float(said[place])
            if number < LEAST:
                reasons[place] = f"its {name} are {number:g}, below {LEAST:g}"
            else:
                reasons[place] = f"its {name} are {number:g}, {source}"
        return reasons

    def _most(self, key: str, usual: FloatArray) -> tuple[float, str]:
        """Return the largest number that counts, and where that limit comes from, in words."""
        if key in self.declared:
            return self.declared[key], f"above limits.{key} = {self.declared[key]:g}"
        possible = usual[(usual >= LEAST) & (usual <= MOST)]
        if self.times is None or len(possible) < FEWEST:
            return MOST, f"above {MOST:g}"
        median = float(np.median(possible))
        return min(self.times * median, MOST), (
            f"more than {self.times:g} times the median, {median:g}; see limits.{key}"
        )


def _key(name: str) -> str:
    """Return the name of a number as configurations write it."""
    return name.replace("-", "_")

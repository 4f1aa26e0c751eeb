"""Prices drawn from a distribution that a configuration names in a word: `uniform(0.5, 1.5)`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bara.errors import ConfigError
from bara.plugins import nearest, parse_call
from bara.records import FloatArray

_DRAWS: dict[str, tuple[int, Callable[..., FloatArray]]] = {
    "constant": (1, lambda _rng, size, value: np.full(size, value)),
    "uniform": (2, lambda rng, size, low, high: rng.uniform(low, high, size)),
    "lognormal": (2, lambda rng, size, mean, sigma: rng.lognormal(mean, sigma, size)),
    "normal": (2, lambda rng, size, mean, deviation: rng.normal(mean, deviation, size)),
    "exponential": (1, lambda rng, size, mean: rng.exponential(mean, size)),
}


@dataclass(frozen=True)
class Distribution:
    """A named distribution of positive prices.

    >>> Distribution.parse("uniform(0.5, 1.5)").draw(np.random.default_rng(0), 2).round(3).tolist()
    [1.137, 0.77]
    """

    name: str
    arguments: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> "Distribution":
        """Read `uniform(0.5, 1.5)`, `lognormal(0, 0.5)`, `normal(1, 0.2)`, `exponential(1)` or `constant(1)`."""
        name, arguments = parse_call(text, "a distribution")
        if name not in _DRAWS:
            raise ConfigError(f"no distribution is named {name!r}; {nearest(name, list(_DRAWS))}")
        if len(arguments) != _DRAWS[name][0]:
            raise ConfigError(f"{text!r} has {len(arguments)} numbers; {name} takes {_DRAWS[name][0]}")
        if not all(np.isfinite(arguments)) or (name == "uniform" and not 0 <= arguments[0] <= arguments[1]):
            raise ConfigError(f"{text!r} cannot be drawn from; required are finite numbers, low before high")
        if name in ("lognormal", "normal") and arguments[1] < 0:
            raise ConfigError(f"{text!r} has a negative spread; required is zero or more")
        if name in ("constant", "exponential") and arguments[0] <= 0:
            raise ConfigError(f"{text!r} is no price; required is more than zero")
        return cls(name, arguments)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """That many values; what falls to zero or below counts as the smallest price there is."""
        return np.maximum(_DRAWS[self.name][1](rng, size, *self.arguments), 1e-6)

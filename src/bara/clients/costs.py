"""What taking part costs clients: drawn from a distribution, `uniform(0.5, 1.5)`, or what their privacy is worth.

The valuations of privacy are those of FL-Market's bidders (Zheng et al. 2022).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bara.errors import ConfigError, InvalidBidError
from bara.plugins import import_path, nearest, parse_call
from bara.records import FloatArray
from bara.text import counted

_DRAWS: dict[str, tuple[int, Callable[..., FloatArray]]] = {
    "constant": (1, lambda _rng, size, value: np.full(size, value)),
    "uniform": (2, lambda rng, size, low, high: rng.uniform(low, high, size)),
    "lognormal": (2, lambda rng, size, mean, sigma: rng.lognormal(mean, sigma, size)),
    "normal": (2, lambda rng, size, mean, deviation: rng.normal(mean, deviation, size)),
    "exponential": (1, lambda rng, size, mean: rng.exponential(mean, size)),
}

Valuation = Callable[[float], float]
"""The share eps / eps_max of privacy given up -> what it costs, before a client's own factor."""

VALUATIONS: dict[str, Valuation] = {
    "square": lambda epsilon: epsilon**2,
    "root": lambda epsilon: 2 * math.sqrt(epsilon),
    "linear": lambda epsilon: 2 * epsilon,
    "exponential": math.expm1,
}
MIXED = "mixed"


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
            raise ConfigError(f"{name} takes {counted(_DRAWS[name][0], 'number')}, got {text!r}")
        if not all(np.isfinite(arguments)) or (
            name == "uniform" and not 0 <= arguments[0] <= arguments[1]
        ):
            raise ConfigError(
                f"a distribution must have finite numbers, and uniform 0 <= low <= high, got {text!r}"
            )
        if name in ("lognormal", "normal") and arguments[1] < 0:
            raise ConfigError(f"a distribution's spread must be zero or more, got {text!r}")
        if name in ("constant", "exponential") and arguments[0] <= 0:
            raise ConfigError(f"{name} must have a positive number, got {text!r}")
        return cls(name, arguments)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """That many values; what falls to zero or below counts as the smallest price there is."""
        return np.maximum(_DRAWS[self.name][1](rng, size, *self.arguments), 1e-6)


def valuations(name: str) -> tuple[Valuation, ...]:
    """The valuations a configuration names: one of ours, `mixed` for all four, or `package.module:function`."""
    if name == MIXED:
        return tuple(VALUATIONS.values())
    if ":" in name:
        own = import_path(name)
        if not callable(own):
            raise ConfigError(
                f"clients.valuation {name!r} must be a function of epsilon, got {own!r}"
            )
        return (own,)
    if name not in VALUATIONS:
        raise ConfigError(f"no valuation is named {name!r}; {nearest(name, [*VALUATIONS, MIXED])}")
    return (VALUATIONS[name],)


@dataclass(frozen=True, eq=False)
class PrivacyCosts:
    """Costs of each round: v_i = alpha_i c(eps_i), alpha ~ U(0.5, 1.5), c drawn among the valuations.

    A client's privacy budget is its own for the whole run; alpha and c are drawn every round, as
    the paper draws its bids (our choice). Budgets above 1 are divided by the largest first (our
    choice): e^100 - 1 is no price.

    Attributes:
        epsilons: Each client's privacy budget for one round.
        choices: The valuations c is drawn from; each must rise with epsilon.
    """

    epsilons: FloatArray
    choices: tuple[Valuation, ...]

    def __post_init__(self) -> None:
        """Refuse privacy budgets that are none and a valuation that gives privacy away."""
        bad = ~(np.isfinite(self.epsilons) & (self.epsilons > 0))
        if bad.any():
            client = int(np.argmax(bad))
            raise InvalidBidError(
                f"client {client} has a privacy budget of {self.epsilons[client]}; it must be finite and positive"
            )
        for choice in self.choices:
            _check_rises(choice)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """One round's costs, in units of the budget."""
        alpha = rng.uniform(0.5, 1.5, size)
        kinds = rng.integers(len(self.choices), size=size)
        shares = self.epsilons / max(1.0, float(self.epsilons.max()))
        costs = [
            self.choices[kind](float(share)) for kind, share in zip(kinds, shares, strict=True)
        ]
        return np.asarray(np.maximum(alpha * np.array(costs), 1e-6))


def _check_rises(valuation: Valuation) -> None:
    values = np.array([valuation(share) for share in np.linspace(0.01, 1, 100).tolist()])
    if not (np.isfinite(values).all() and values[0] > 0 and (np.diff(values) > 0).all()):
        raise ConfigError(
            f"the valuation {getattr(valuation, '__name__', valuation)!r} must be positive and rise with epsilon from "
            "0 to 1: giving up more privacy must cost more"
        )

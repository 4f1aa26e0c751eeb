"""The costs of taking part: drawn, read from a file, or the value of the privacy given up.

The valuations of privacy are those of FL-Market's bidders (Zheng et al. 2022).
"""

import csv
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy

from bara.errors import ConfigError, InvalidBidError
from bara.files import read_whole
from bara.plugins import import_path, parse_call
from bara.records import FloatArray, IntArray
from bara.records.money import PLAIN_NUMBER
from bara.text import counted, nearest

_DRAWS: dict[str, tuple[int, Callable[..., FloatArray]]] = {
    "constant": (1, lambda _rng, size, value: np.full(size, value)),
    "uniform": (2, lambda rng, size, low, high: rng.uniform(low, high, size)),
    "lognormal": (2, lambda rng, size, mean, sigma: rng.lognormal(mean, sigma, size)),
    "normal": (2, lambda rng, size, mean, deviation: rng.normal(mean, deviation, size)),
    "exponential": (1, lambda rng, size, mean: rng.exponential(mean, size)),
}
"""How many arguments each distribution takes, and the function that draws from it."""

_QUANTILES: dict[str, Callable[..., FloatArray]] = {
    "constant": lambda shares, value: np.full(len(shares), value),
    "uniform": lambda shares, low, high: low + (high - low) * shares,
    "lognormal": lambda shares, mean, sigma: np.exp(mean + sigma * scipy.special.ndtri(shares)),
    "normal": lambda shares, mean, deviation: mean + deviation * scipy.special.ndtri(shares),
    "exponential": lambda shares, mean: -mean * np.log1p(-shares),
}
"""Each distribution's price below which a given share of all prices lies."""

Valuation = Callable[[float], float]
"""A function from the share eps / eps_max of privacy given up to its cost, per unit of alpha."""

VALUATIONS: dict[str, Valuation] = {
    "square": lambda epsilon: epsilon**2,
    "root": lambda epsilon: 2 * math.sqrt(epsilon),
    "linear": lambda epsilon: 2 * epsilon,
    "exponential": math.expm1,
}
MIXED = "mixed"
"""The name that stands for all of `VALUATIONS`."""

_LEAST = 1e-6
"""The smallest price there is: one micro-unit."""


@dataclass(frozen=True)
class Distribution:
    """A named distribution of positive prices.

    Attributes:
        name: The name of the distribution, such as `uniform`.
        arguments: The numbers in its parentheses.

    >>> Distribution.parse("uniform(0.5, 1.5)").draw(np.random.default_rng(0), 2).round(3).tolist()
    [1.137, 0.77]
    """

    name: str
    arguments: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> "Distribution":
        """Parse a distribution, as in `uniform(0.5, 1.5)`, `lognormal(0, 0.5)` or `constant(1)`."""
        name, arguments = parse_call(text, "a distribution")
        if name not in _DRAWS:
            raise ConfigError(f"no distribution is named {name!r}; {nearest(name, list(_DRAWS))}")
        expected, _ = _DRAWS[name]
        if len(arguments) != expected:
            raise ConfigError(f"{name} takes {counted(expected, 'number')}, got {text!r}")
        finite = all(np.isfinite(arguments))
        unordered = name == "uniform" and not 0 <= arguments[0] <= arguments[1]
        if not finite or unordered:
            raise ConfigError(
                "a distribution must have finite numbers, and uniform 0 <= low <= high, "
                f"got {text!r}"
            )
        if name in ("lognormal", "normal") and arguments[1] < 0:
            raise ConfigError(f"a distribution's spread must be zero or more, got {text!r}")
        if name in ("constant", "exponential") and arguments[0] <= 0:
            raise ConfigError(f"{name} must have a positive number, got {text!r}")
        return cls(name, arguments)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw `size` prices; a value of zero or less becomes the smallest price there is."""
        _, draw = _DRAWS[self.name]
        return np.maximum(draw(rng, size, *self.arguments), _LEAST)

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Return the price below which each share of all prices lies.

        >>> Distribution.parse("uniform(0.5, 1.5)").quantiles(np.array([0.1, 0.5])).tolist()
        [0.6, 1.0]
        """
        return np.maximum(_QUANTILES[self.name](shares, *self.arguments), _LEAST)


def price_shares(own: FloatArray, redrawn: FloatArray, stability: float) -> FloatArray:
    """Return for each client the share of all prices that lie below its price of this round.

    Args:
        own: Each client's own standard normal score, which stays.
        redrawn: Each client's score of this round.
        stability: The part of a score's variance that is the client's own.
    """
    scores = math.sqrt(stability) * own + math.sqrt(1 - stability) * redrawn
    return np.asarray(scipy.special.ndtr(scores))


def valuations(name: str) -> tuple[Valuation, ...]:
    """Return the valuations that a configuration names.

    Args:
        name: One of `VALUATIONS`, `mixed` for all of them, or `package.module:function`.
    """
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
    """The clients' costs of giving up privacy: client i's cost in a round is alpha_i c(eps_i).

    Every round, alpha_i is drawn from U(0.5, 1.5) and c from the valuations, as the paper draws its
    bids (our choice); eps_i stays the same for the whole run. Where a budget exceeds 1, all are
    first divided by the largest (our choice), because e^100 - 1 is no price.

    Attributes:
        epsilons: Each client's privacy budget for one round.
        choices: The valuations that c is drawn from; each must rise with epsilon.
    """

    epsilons: FloatArray
    choices: tuple[Valuation, ...]

    def __post_init__(self) -> None:
        """Refuse a budget that is not finite and positive, and a valuation that does not rise."""
        bad = ~(np.isfinite(self.epsilons) & (self.epsilons > 0))
        if bad.any():
            client = int(np.argmax(bad))
            raise InvalidBidError(
                f"client {client} has a privacy budget of {self.epsilons[client]}; "
                "it must be finite and positive"
            )
        for choice in self.choices:
            _check_rises(choice)

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw each client's cost for one round, in units of the budget."""
        alpha = rng.uniform(0.5, 1.5, size)
        kinds = rng.integers(len(self.choices), size=size)
        return self._valued(alpha, kinds)

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Return each client's cost for a share of all alphas; every client keeps its valuation."""
        kinds = np.arange(len(shares)) % len(self.choices)
        return self._valued(0.5 + shares, kinds)

    def _valued(self, alpha: FloatArray, kinds: IntArray) -> FloatArray:
        """Return alpha times what each client's privacy is worth to it."""
        shares = self.epsilons / max(1.0, float(self.epsilons.max()))
        costs = []
        for kind, share in zip(kinds, shares, strict=True):
            valuation = self.choices[kind]
            costs.append(valuation(float(share)))
        return np.asarray(np.maximum(alpha * np.array(costs), _LEAST))


def _check_rises(valuation: Valuation) -> None:
    """Refuse a valuation that is not positive and rising, judged at 100 points."""
    values = np.array([valuation(share) for share in np.linspace(0.01, 1, 100).tolist()])
    finite = np.isfinite(values).all()
    if not (finite and values[0] > 0 and (np.diff(values) > 0).all()):
        name = getattr(valuation, "__name__", valuation)
        raise ConfigError(
            f"the valuation {name!r} must be positive and rise with epsilon from "
            "0 to 1: giving up more privacy must cost more"
        )


def read_amounts(path: Path, column: str, currency: str | None) -> dict[str, float]:
    """Read a positive amount for each client from a CSV file with a column `client`.

    Args:
        path: The file; further columns are ignored, except `currency`.
        column: The column that holds the amounts.
        currency: The currency of the budget, which a column `currency` must name.
    """
    try:
        text = read_whole(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    rows = csv.DictReader(text.removeprefix("\ufeff").splitlines())
    heads = list(rows.fieldnames or ())
    for name in ("client", column):
        if heads.count(name) != 1:
            raise ConfigError(
                f"{path} must have one column {name!r} in its first line, with commas between "
                f"columns, got {','.join(heads)!r}"
            )
    amounts: dict[str, float] = {}
    for row in rows:
        client = row["client"]
        where = f"{path}, line {rows.line_num}"
        if not client:
            raise ConfigError(f"{where}: client must be a name, got an empty cell")
        if None in row:  # an amount with a decimal comma, say
            raise ConfigError(f"{where}: {client!r} has more cells than the first line has columns")
        if client in amounts:
            raise ConfigError(f"{where}: client {client!r} must have one {column}, got a second")
        given = row.get("currency", currency) or None
        if given != currency:
            raise ConfigError(
                f"{where}: the {column} of {client!r} is in {given or 'no currency'}; it must be "
                f"in {currency or 'no currency'}, as budget.currency says"
            )
        amounts[client] = _amount(row[column], f"{where}: the {column} of {client!r}")
    return amounts


def check_costs(costs: Mapping[str, float], clients: tuple[str, ...]) -> None:
    """Refuse costs that miss a client of the federation, or name one that it does not have."""
    check_names("clients.costs", costs, clients)
    for client in clients:
        if client not in costs:
            raise ConfigError(f"clients.costs must have a cost for client {client!r}, got none")


def check_names(key: str, named: Iterable[str], clients: tuple[str, ...]) -> None:
    """Refuse a key of the configuration that names somebody who is not a client."""
    unknown = [client for client in named if client not in clients]
    if unknown:
        raise ConfigError(
            f"{key} names {unknown[0]!r}, which is not a client; "
            f"{nearest(unknown[0], list(clients))}"
        )


def _amount(text: str | None, what: str) -> float:
    """Read a positive number."""
    amount = math.nan
    if PLAIN_NUMBER.fullmatch(text or ""):
        amount = float(text or "")
    if not 0 < amount < math.inf:
        raise ConfigError(f"{what} must be a positive number, got {text!r}")
    return amount

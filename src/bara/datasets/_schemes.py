"""Partitions as a configuration writes them: ``"shards(2)"``, ``"iid"``, ``"dirichlet(0.3)"``, ``"quantity(1.0)"``."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bara.datasets._partitions import Parts, dirichlet, iid, quantity, shards
from bara.datasets._record import Labels
from bara.errors import ConfigError, UnknownNameError
from bara.plugins import nearest


@dataclass(frozen=True)
class Kind:
    """One way to partition: the function, and what its number in brackets may be (None: it takes none).

    Attributes:
        split: The function of ``bara.datasets._partitions``.
        rule: What the number must be, in words.
        default: The number when none is written; NaN where one must be.
        whole: Whether it must be a whole number.
        least: What it must not be below.
        open: Whether it must not be equal to that either.
    """

    split: Any
    rule: str = ""
    default: float = math.nan
    whole: bool = False
    least: float = 0.0
    open: bool = False


KINDS: Mapping[str, Kind] = {
    "iid": Kind(iid),
    "shards": Kind(shards, "a whole number of shards a client, 1 or more", 2, whole=True, least=1),
    "dirichlet": Kind(dirichlet, "alpha, a number above 0", open=True),
    "quantity": Kind(quantity, "the skew, a number of 0 or more", 1.0),
}
"""Every way to partition that a configuration can name."""


@dataclass(frozen=True)
class Scheme:
    """A partition that was asked for, understood and checked."""

    name: str
    number: float | None = None

    def __str__(self) -> str:
        """As a configuration writes it."""
        return self.name if self.number is None else f"{self.name}({self.number})"

    def split(self, labels: Labels, clients: int, seed: int = 0) -> Parts:
        """The sample indices of each client."""
        numbers = () if self.number is None else (self.number,)
        parts: Parts = KINDS[self.name].split(labels, clients, *numbers, seed=seed)
        return parts


def parse(text: str) -> Scheme:
    """Understands a partition as a configuration writes it.

    Raises:
        UnknownNameError: If there is no such way to partition; suggests the nearest.
        ConfigError: If the number in brackets is missing, not wanted or out of range.

    >>> parse("dirichlet(0.3)")
    Scheme(name='dirichlet', number=0.3)
    >>> parse("shards")
    Scheme(name='shards', number=2)
    """
    form = re.fullmatch(r"\s*([\w-]+)\s*(?:\(\s*([^()]*?)\s*\))?\s*", text)
    if form is None:
        raise ConfigError(f'partition {text!r} must be a name, or a name and a number, as in "shards(2)"')
    name, number = form.groups()
    if name not in KINDS:
        raise UnknownNameError(f"partition {text!r}: there is no {name!r}; {nearest(name.lower(), [*KINDS])}")
    return Scheme(name, _number(text, KINDS[name], number))


def partition(scheme: str, labels: Labels, clients: int, seed: int = 0) -> Parts:
    """Divides samples among clients as a configuration's word for it says.

    >>> import numpy as np
    >>> [part.tolist() for part in partition("shards(1)", np.array([1, 0, 1, 0]), clients=2)]
    [[0, 2], [1, 3]]
    """
    return parse(scheme).split(labels, clients, seed)


def _number(text: str, kind: Kind, written: str | None) -> float | None:
    if not kind.rule:
        if written:
            raise ConfigError(f"partition {text!r} takes no number")
        return None
    try:
        value = float(written) if written else kind.default
    except ValueError:
        value = math.nan
    if not _allowed(kind, value):
        raise ConfigError(f"partition {text!r}: in the brackets goes {kind.rule}")
    return int(value) if kind.whole else value


def _allowed(kind: Kind, value: float) -> bool:
    above = value > kind.least if kind.open else value >= kind.least
    return math.isfinite(value) and above and not (kind.whole and value != int(value))

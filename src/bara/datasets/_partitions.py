"""Who holds which training samples, as a configuration words it (``"shards(2)"``), and whose labels are wrong.

A partition is one sorted array of sample indices per client. Each sample is given to exactly one
client, and no client is left without: how is said at each function. The same seed gives the same
partition.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Labels
from bara.errors import ConfigError, DatasetError, UnfitDatasetError, UnknownNameError
from bara.plugins import Within, nearest, parse_call
from bara.randomness import stream
from bara.text import counted

Parts = list[NDArray[np.int64]]


def iid(labels: Labels, clients: int, *, seed: int = 0) -> Parts:
    """Deals the samples out at random; sizes differ by one at most, so nobody is empty.

    >>> [len(part) for part in iid(np.zeros(7, np.int64), 3)]
    [3, 2, 2]
    """
    _check(labels, clients)
    order = stream(seed, "iid").permutation(len(labels))
    return [np.sort(part) for part in np.array_split(order, clients)]


def shards(labels: Labels, clients: int, per_client: int = 2, *, seed: int = 0) -> Parts:
    """Label shards, as in the paper: most clients see few of the labels.

    1. Sort the samples by label. 2. Cut them into ``clients * per_client`` shards of equal size.
       Where the number does not divide, the first shards are larger by one: nothing is dropped.
    3. Give each client ``per_client`` shards at random. Every shard holds a sample, so nobody is
    empty.

    Yang et al. 2023, Section 5.1; McMahan et al. 2017, Section 3.

    Raises:
        UnfitDatasetError: If there are fewer samples than shards.
    """
    _check(labels, clients)
    _check_whole("the number of shards per client", per_client)
    if len(labels) < clients * per_client:
        raise UnfitDatasetError(
            f"{counted(clients, 'client')} with {counted(per_client, 'shard')} each need at least "
            f"{counted(clients * per_client, 'sample')}, got {len(labels)}"
        )
    pieces = np.array_split(np.argsort(labels, kind="stable"), clients * per_client)
    dealt = stream(seed, "shards").permutation(len(pieces)).reshape(clients, per_client)
    return [np.sort(np.concatenate([pieces[shard] for shard in hand])) for hand in dealt]


def dirichlet(labels: Labels, clients: int, alpha: float, *, seed: int = 0) -> Parts:
    """Divides each class among the clients in shares drawn from a Dirichlet distribution.

    A small alpha gives nearly every sample of a class to one client, a large one is nearly IID
    (Yurochkin et al. 2019). A client that the draw leaves empty gets one sample from the client
    that has most, until nobody is empty.
    """
    _check(labels, clients)
    if not (np.isfinite(alpha) and alpha > 0):
        raise ConfigError(f"dirichlet's alpha must be a number above 0, got {alpha}")
    rng = stream(seed, "dirichlet")
    owner = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        mine = rng.permutation(np.flatnonzero(labels == label))
        owner[mine] = _cut(len(mine), rng.dirichlet(np.full(clients, alpha)))
    return _parts(_fill(owner, clients), clients)


def quantity(labels: Labels, clients: int, skew: float = 1.0, *, seed: int = 0) -> Parts:
    """Clients with different amounts of alike data: sizes follow a power law.

    Each client gets one sample, so nobody is empty; the rest is divided in proportion to 1,
    2^-skew, 3^-skew, ...; who is large is drawn at random, and so is what each holds. A skew of 0
    makes all sizes equal.

    >>> sorted(len(part) for part in quantity(np.zeros(18, np.int64), 3, 1.0))
    [4, 5, 9]
    """
    _check(labels, clients)
    if not (np.isfinite(skew) and skew >= 0):
        raise ConfigError(f"quantity's skew must be a number of at least 0, got {skew}")
    rng = stream(seed, "quantity")
    weights = np.arange(1, clients + 1, dtype=float) ** -skew
    sizes = rng.permutation(1 + _apportion(len(labels) - clients, weights / weights.sum()))
    order = rng.permutation(len(labels))
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


FROM_1 = Within(at_least=1)


@dataclass(frozen=True)
class Kind:
    """One way to partition: the function, and what its number in brackets may be.

    Attributes:
        split: The function; None where it takes more than labels (`divide`).
        rule: What the number must be, in words; empty where there is none.
        range: The same as a range.
        whole: Whether it must be a whole number.
        default: The number when none is written; NaN where one must be, None where it may be left
            out.
    """

    split: Callable[..., Parts] | None
    rule: str = ""
    range: Within = FROM_1
    whole: bool = False
    default: float | None = math.nan

    def allows(self, number: float) -> bool:
        """Whether the number may stand in the brackets."""
        return (
            math.isfinite(number)
            and number in self.range
            and not (self.whole and number != int(number))
        )


KINDS: Mapping[str, Kind] = {
    "iid": Kind(iid, default=None),
    "shards": Kind(
        shards, "a whole number of shards per client, 1 or more", FROM_1, whole=True, default=2
    ),
    "dirichlet": Kind(dirichlet, "alpha, a number above 0", Within(above=0)),
    "quantity": Kind(quantity, "the skew, a number of 0 or more", Within(at_least=0), default=1.0),
    "natural": Kind(None, "a whole number of clients, 1 or more", FROM_1, whole=True, default=None),
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
        split = KINDS[self.name].split if self.name in KINDS else None
        if split is None:
            raise ConfigError(
                f"partition {str(self)!r} needs a whole dataset, not labels alone; use divide"
            )
        numbers = () if self.number is None else (self.number,)
        return split(labels, clients, *numbers, seed=seed)


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
    if ":" in text:
        return Scheme(text.strip())  # a function of a user's own, imported when it is called
    name = text.partition("(")[0].strip()
    if name not in KINDS:
        raise UnknownNameError(
            f"partition {text!r}: there is no {name!r}; {nearest(name.lower(), [*KINDS])}"
        )
    kind, numbers = KINDS[name], _numbers(text)
    if numbers and not kind.rule:
        raise ConfigError(f"partition {text!r}: {name} takes no number; expected {name!r}")
    if not numbers and kind.default is None:
        return Scheme(name)
    number, *others = numbers or (kind.default or math.nan,)
    if others or not kind.allows(number):
        raise ConfigError(f"partition {text!r}: the brackets must hold {kind.rule}")
    return Scheme(name, int(number) if kind.whole else number)


def partition(scheme: str, labels: Labels, clients: int, seed: int = 0) -> Parts:
    """Divides samples among clients as a configuration's word for it says.

    >>> import numpy as np
    >>> [part.tolist() for part in partition("shards(1)", np.array([1, 0, 1, 0]), clients=2)]
    [[0, 2], [1, 3]]
    """
    return parse(scheme).split(labels, clients, seed)


def flip_labels(
    labels: Labels, indices: NDArray[np.int64], fraction: float, classes: int, seed: int = 0
) -> Labels:
    """A copy of the labels in which a fraction of those at the indices is wrong.

    Which are flipped is drawn at random; each becomes any of the other classes, all equally likely.

    Args:
        labels: Every label; left as it is.
        indices: Whose labels may be flipped, a client's part say; each once.
        fraction: How many of them, from 0 to 1, rounded to the nearest whole number.
        classes: How many labels there are.
        seed: Decides which, and what they become.

    >>> flip_labels(np.zeros(6, np.int64), np.arange(3), 1.0, classes=2)
    array([1, 1, 1, 0, 0, 0])
    """
    indices = np.asarray(indices, np.int64)
    rng = stream(seed, "label noise")
    flipped = rng.choice(indices, size=round(fraction * len(indices)), replace=False)
    noisy = np.array(labels, np.int64)
    noisy[flipped] = (noisy[flipped] + rng.integers(1, classes, size=len(flipped))) % classes
    return noisy


def _numbers(text: str) -> tuple[float, ...]:
    """What stands in the brackets; what cannot be read as numbers is no number."""
    try:
        return parse_call(text, "the partition")[1]
    except ConfigError:
        return (math.nan,)


def _check(labels: Labels, clients: int) -> None:
    _check_whole("the number of clients", clients)
    if np.ndim(labels) != 1:
        raise DatasetError(
            f"labels must be a list with one label per sample, got shape {np.shape(labels)}"
        )
    if len(labels) < clients:
        raise UnfitDatasetError(
            f"there are more clients ({clients}) than samples ({len(labels)}): each needs at least one"
        )


def _check_whole(what: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ConfigError(f"{what} must be a whole number of at least 1, got {number!r}")


def _cut(samples: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whose each of so many samples is, when cut at the shares' running sums."""
    ends = np.floor(np.cumsum(shares) * samples)
    owner = np.searchsorted(ends, np.arange(samples), side="right")
    return np.minimum(owner, len(shares) - 1)


def _apportion(samples: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers that add up to the samples, nearest to the shares (largest remainders)."""
    wish = shares * samples
    sizes = np.floor(wish).astype(np.int64)
    sizes[np.argsort(sizes - wish, kind="stable")[: samples - sizes.sum()]] += 1
    return sizes


def _fill(owner: NDArray[np.int64], clients: int) -> NDArray[np.int64]:
    """Gives every client without a sample one of the client that has most."""
    sizes = np.bincount(owner, minlength=clients)
    for client in np.flatnonzero(sizes == 0):
        giver = int(np.argmax(sizes))
        owner[np.flatnonzero(owner == giver)[-1]] = client
        sizes[giver] -= 1
        sizes[client] += 1
    return owner


def _parts(owner: NDArray[np.int64], clients: int) -> Parts:
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.searchsorted(owner[order], np.arange(1, clients)))

"""Partitions of training samples among clients, such as ``"shards(2)"``, and wrong labels.

A partition is one sorted array of sample indices per client. Each sample is given to exactly one
client, and every client gets a sample; each function says how. All functions take the label of each
sample, the number of clients and a seed; the same seed gives the same partition.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Labels
from bara.errors import ConfigError, DatasetError, UnfitDatasetError, UnknownNameError
from bara.options import Within
from bara.plugins import parse_call
from bara.randomness import stream
from bara.text import counted, nearest

Parts = list[NDArray[np.int64]]
"""The sample indices of each client."""


def iid(labels: Labels, clients: int, *, seed: int = 0) -> Parts:
    """Deal the samples out at random, so that clients' sizes differ by one at most.

    >>> [len(part) for part in iid(np.zeros(7, np.int64), 3)]
    [3, 2, 2]
    """
    _check(labels, clients)
    order = stream(seed, "iid").permutation(len(labels))
    return [np.sort(indices) for indices in np.array_split(order, clients)]


def shards(labels: Labels, clients: int, per_client: int = 2, *, seed: int = 0) -> Parts:
    """Deal out label shards, as in the paper: most clients see few of the labels.

    1. Sort the samples by label.
    2. Cut them into ``clients * per_client`` shards of equal size. Where the number does not
       divide, the first shards are larger by one: nothing is dropped.
    3. Give each client ``per_client`` shards at random. Every shard holds a sample, so no client
       is empty.

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
    samples = []
    for hand in dealt:
        mine = np.concatenate([pieces[shard] for shard in hand])
        samples.append(np.sort(mine))
    return samples


def dirichlet(labels: Labels, clients: int, alpha: float, *, seed: int = 0) -> Parts:
    """Divide each class among the clients in shares drawn from a Dirichlet distribution.

    A small alpha gives nearly every sample of a class to one client, a large one is nearly IID
    (Yurochkin et al. 2019). Each client that the draw leaves empty gets one sample from the client
    that has most.
    """
    _check(labels, clients)
    if not (np.isfinite(alpha) and alpha > 0):
        raise ConfigError(f"dirichlet's alpha must be a number above 0, got {alpha}")
    rng = stream(seed, "dirichlet")
    owner = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        mine = rng.permutation(np.flatnonzero(labels == label))
        owner[mine] = _cut(len(mine), rng.dirichlet(np.full(clients, alpha)))
    return _samples_by_owner(_fill(owner, clients), clients)


def quantity(labels: Labels, clients: int, skew: float = 1.0, *, seed: int = 0) -> Parts:
    """Give clients different amounts of alike data, by a power law.

    Each client gets one sample, so that no client is empty. The rest is divided in proportion to
    1, 2^-skew, 3^-skew, ...; which client is large is drawn at random, and so are its samples. A
    skew of 0 makes all sizes equal.

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
    return [np.sort(indices) for indices in np.split(order, np.cumsum(sizes)[:-1])]


FROM_1 = Within(at_least=1)


@dataclass(frozen=True)
class Kind:
    """A way to partition: its function, and which number may stand in its brackets.

    Attributes:
        split: The function; None if it needs more than labels (`divide`).
        rule: What the number must be, in words; empty if the way takes no number.
        range: The range that the number must be in.
        whole: True if the number must be whole.
        default: The number when none is written; NaN if one is required, None if it may be left
            out.
    """

    split: Callable[..., Parts] | None
    rule: str = ""
    range: Within = FROM_1
    whole: bool = False
    default: float | None = math.nan

    def allows(self, number: float) -> bool:
        """Return True if the number may stand in the brackets."""
        if not math.isfinite(number) or number not in self.range:
            return False
        return not self.whole or number == int(number)


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
    """A checked request for a partition: its name, and the number in its brackets, if any."""

    name: str
    number: float | None = None

    def __str__(self) -> str:
        """Return the scheme as a configuration writes it."""
        return self.name if self.number is None else f"{self.name}({self.number})"

    def split(self, labels: Labels, clients: int, seed: int = 0) -> Parts:
        """Return the sample indices of each client."""
        split = KINDS[self.name].split if self.name in KINDS else None
        if split is None:
            raise ConfigError(
                f"partition {str(self)!r} needs a whole dataset, not labels alone; use divide"
            )
        if self.number is None:
            return split(labels, clients, seed=seed)
        return split(labels, clients, self.number, seed=seed)


def parse(text: str) -> Scheme:
    """Parse a partition as a configuration writes it.

    Args:
        text: A name, perhaps with a number in brackets, or the import path of a function.

    Raises:
        UnknownNameError: If there is no such way to partition; the message suggests the nearest.
        ConfigError: If the number in brackets is missing, not wanted or out of range.

    >>> parse("dirichlet(0.3)")
    Scheme(name='dirichlet', number=0.3)
    >>> parse("shards")
    Scheme(name='shards', number=2)
    """
    if ":" in text:
        return Scheme(text.strip())  # a user's function, imported when it is called
    name = text.partition("(")[0].strip()
    if name not in KINDS:
        raise UnknownNameError(
            f"partition {text!r}: there is no {name!r}; {nearest(name.lower(), [*KINDS])}"
        )
    kind = KINDS[name]
    numbers = _numbers(text)
    if numbers and not kind.rule:
        raise ConfigError(f"partition {text!r}: {name} takes no number; expected {name!r}")
    if not numbers:
        if kind.default is None:
            return Scheme(name)
        numbers = (kind.default,)
    if len(numbers) > 1 or not kind.allows(numbers[0]):
        raise ConfigError(f"partition {text!r}: the brackets must hold {kind.rule}")
    return Scheme(name, int(numbers[0]) if kind.whole else numbers[0])


def partition(scheme: str, labels: Labels, clients: int, seed: int = 0) -> Parts:
    """Divide samples among clients by a scheme.

    Args:
        scheme: The scheme as a configuration writes it, such as ``"shards(2)"``.
        labels: The label of each sample.
        clients: How many clients there are.
        seed: The seed of the draws.

    >>> import numpy as np
    >>> [part.tolist() for part in partition("shards(1)", np.array([1, 0, 1, 0]), clients=2)]
    [[0, 2], [1, 3]]
    """
    return parse(scheme).split(labels, clients, seed)


def flip_labels(
    labels: Labels, indices: NDArray[np.int64], fraction: float, classes: int, seed: int = 0
) -> Labels:
    """Return a copy of the labels in which a fraction of those at the indices is wrong.

    The flipped labels are drawn at random; each becomes any of the other classes, all equally
    likely.

    Args:
        labels: Every label; not changed.
        indices: The samples whose labels may be flipped, such as a client's; each once.
        fraction: The fraction to flip, from 0 to 1; their number is rounded to the nearest.
        classes: How many labels there are.
        seed: The seed of the draws.

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
    """Return the numbers in the brackets; a single NaN if they cannot be read."""
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
            f"there are more clients ({clients}) than samples ({len(labels)}): "
            "each needs at least one"
        )


def _check_whole(what: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ConfigError(f"{what} must be a whole number of at least 1, got {number!r}")


def _cut(samples: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the owner of each of so many samples, cut at the running sums of the shares."""
    ends = np.floor(np.cumsum(shares) * samples)
    owner = np.searchsorted(ends, np.arange(samples), side="right")
    return np.minimum(owner, len(shares) - 1)


def _apportion(samples: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return whole numbers nearest to the shares that add up to the samples.

    Largest remainders are rounded up.
    """
    wish = shares * samples
    sizes = np.floor(wish).astype(np.int64)
    sizes[np.argsort(sizes - wish, kind="stable")[: samples - sizes.sum()]] += 1
    return sizes


def _fill(owner: NDArray[np.int64], clients: int) -> NDArray[np.int64]:
    """Give every client without a sample one of the client that has most."""
    sizes = np.bincount(owner, minlength=clients)
    for client in np.flatnonzero(sizes == 0):
        giver = int(np.argmax(sizes))
        owner[np.flatnonzero(owner == giver)[-1]] = client
        sizes[giver] -= 1
        sizes[client] += 1
    return owner


def _samples_by_owner(owner: NDArray[np.int64], clients: int) -> Parts:
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.searchsorted(owner[order], np.arange(1, clients)))

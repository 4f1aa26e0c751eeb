"""Who holds which training samples.

Every function returns one sorted array of sample indices a client. Each sample is given to exactly one client, and
no client is left without: how is said at each function. The same seed gives the same partition.
"""

import numpy as np
from numpy.typing import NDArray

from bara.datasets._record import Labels
from bara.errors import ConfigError, DatasetError, UnfitDatasetError
from bara.randomness import stream

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

    1. Sort the samples by label.
    2. Cut them into ``clients * per_client`` shards of equal size. Where the number does not divide, the
       first shards are larger by one: nothing is dropped.
    3. Give each client ``per_client`` shards at random. Every shard holds a sample, so nobody is empty.

    Yang et al. 2023, Section 5.1; McMahan et al. 2017, Section 3.

    Raises:
        UnfitDatasetError: If there are fewer samples than shards.
    """
    _check(labels, clients)
    _check_whole("the number of shards a client", per_client)
    if len(labels) < clients * per_client:
        raise UnfitDatasetError(
            f"{clients} clients with {per_client} shards each need {clients * per_client} samples "
            f"or more; there are {len(labels)}"
        )
    pieces = np.array_split(np.argsort(labels, kind="stable"), clients * per_client)
    dealt = stream(seed, "shards").permutation(len(pieces)).reshape(clients, per_client)
    return [np.sort(np.concatenate([pieces[shard] for shard in hand])) for hand in dealt]


def dirichlet(labels: Labels, clients: int, alpha: float, *, seed: int = 0) -> Parts:
    """Divides each class among the clients in shares drawn from a Dirichlet distribution.

    A small alpha gives nearly every sample of a class to one client, a large one is nearly IID (Yurochkin et al. 2019).
    A client that the draw leaves empty gets one sample from the client that has most, until nobody is empty.
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

    Each client gets one sample, so nobody is empty; the rest is divided in proportion to 1, 2^-skew, 3^-skew, ...;
    who is large is drawn at random, and so is what each holds. A skew of 0 makes all sizes equal.

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


def _check(labels: Labels, clients: int) -> None:
    _check_whole("the number of clients", clients)
    if np.ndim(labels) != 1:
        raise DatasetError(f"labels must be a list with one label a sample, got shape {np.shape(labels)}")
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

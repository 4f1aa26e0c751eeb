"""The data of a run: loaded once, and divided among its clients or, where they are known, silos."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bara.clients.bidding import client_names
from bara.clients.costs import read_amounts
from bara.datasets import (
    Dataset,
    Division,
    digest,
    divide,
    is_own,
    is_table,
    load,
    locate,
    names,
    parse,
    places,
    silos,
    subset,
    whole_path,
)
from bara.errors import ConfigError, DatasetError
from bara.records import FloatArray, IntArray

if TYPE_CHECKING:
    from bara.runs.config import Config
    from bara.runs.config_sections import ClientsSection, DataSection

    AnyConfig = TypeVar("AnyConfig", bound=Config)


def with_what_data_say(config: "AnyConfig") -> "AnyConfig":
    """Set the keys that only the data can tell: what a table holds, and how many clients there are.

    Where data have silos and no other partition is asked for, every silo is a client.
    """
    if not config.engine.has_data:
        return config
    if is_table(config.data.name) and config.data.sha256 is None:
        config = config.model_copy(update={"data": _pinned(config.data)})
    if config.data.path is None and _is_archive(config.data):
        folder = locate(config.data.name).path.parent.absolute()
        data = config.data.model_copy(update={"path": str(folder)})
        config = config.model_copy(update={"data": data})
    if not _must_look(config):
        return config
    clients = _counted(config)
    clients.check()
    return config.model_copy(update={"clients": clients})


def with_amounts(config: "AnyConfig") -> "AnyConfig":
    """Set clients' costs and agreed fees as numbers, if files say them; costs are asked as is.

    Without data, whoever has a cost is a client.
    """
    clients = config.clients
    mechanism = config.mechanism
    currency = config.budget.currency
    fees = mechanism.options.get("fees")
    if mechanism.name == "tariff" and isinstance(fees, str):
        read = {"fees": read_amounts(Path(fees), "fee", currency)}
        config = config.model_copy(update={"mechanism": mechanism.model_copy(update=read)})
    if clients.costs is None:
        return config
    found: dict[str, Any] = {}
    if isinstance(clients.costs, str):
        found["costs"] = read_amounts(Path(clients.costs), "cost", currency)
    if "bids" not in clients.model_fields_set:
        found["bids"] = "constant(1)"
    named = config.engine.has_clients and not config.engine.has_data
    if named and "count" not in clients.model_fields_set:
        found["count"] = len(found.get("costs", clients.costs))
    clients = clients.model_copy(update=found)
    if named:
        clients.check()
    return config.model_copy(update={"clients": clients})


def _pinned(data: "DataSection") -> "DataSection":
    """Name a table by its whole path, and by the digest of what it holds now."""
    place = whole_path(data.name, data.path)
    found = {
        "name": place.name,
        "path": str(place.parent),
        "sha256": digest(data.name, data.path),
    }
    return data.model_copy(update=found)


def _is_archive(data: "DataSection") -> bool:
    """True for a user's own `<name>.npz`."""
    is_known = data.name.removesuffix(".npz") in names() or data.part is not None
    return not (is_known or is_table(data.name) or is_own(data.name))


def _counted(config: "Config") -> "ClientsSection":
    """Set partition and number of clients, unless they are given, by the silos of the data."""
    data = config.data
    clients = config.clients
    has_known_silos = data.name in silos() and data.client is None and data.train_samples is None
    whole = None if has_known_silos else load_data(data)
    if "partition" not in clients.model_fields_set and (whole is None or whole.silos):
        clients = clients.model_copy(update={"partition": "natural"})
    if "count" in clients.model_fields_set or not _is_counted(clients.partition):
        return clients
    if whole is None and clients.partition == "natural":  # needs no look at the data
        count = silos()[data.name]
    else:
        division = divide(whole or load_data(data), clients.partition, clients.count, config.seed)
        count = len(division.parts)
    return clients.model_copy(update={"count": count})


def _must_look(config: "Config") -> bool:
    """True where data may have silos, or the partition counts the clients."""
    given = config.clients.model_fields_set
    name = config.data.name
    if "partition" in given:
        return "count" not in given and _is_counted(config.clients.partition)
    if config.data.part is not None:
        return True
    return is_table(name) or name in silos() or (name not in names() and is_own(name))


def _is_counted(partition: str) -> bool:
    """True where the partition itself says how many clients there are."""
    return parse(partition).name == "natural" or ":" in partition


def load_data(data: "DataSection") -> Dataset:
    """Load what a run learns from; the tables that were asked for last are read once."""
    if data.sha256 is not None and digest(data.name, data.path) != data.sha256:
        place = whole_path(data.name, data.path)
        raise DatasetError(f"{place} has changed since the run was configured")
    if data.sha256 is not None or data.name in silos():
        return _cached(data, places(data.path))
    return _loaded(data)


@lru_cache(maxsize=2)
def _cached(data: "DataSection", _places: object) -> Dataset:
    return _loaded(data)


def _loaded(data: "DataSection") -> Dataset:
    """Load a dataset by its name, or take the one that was handed over or that a function makes."""
    part = data.part
    if part is None:
        whole = load(data.name, data.path, verify=data.verify, columns=data.columns)
    elif callable(part) and not isinstance(part, Dataset):
        whole = part()
    else:
        whole = part
    if not isinstance(whole, Dataset):
        raise ConfigError(
            f"data is {whole!r}; it must be a bara.datasets.Dataset, or a function that returns one"
        )
    return subset(whole, data.train_samples)


def division(config: "Config", whole: Dataset) -> Division:
    """Divide the training samples among the clients; silos have names where these are known."""
    made = divide(whole, config.clients.partition, config.clients.count, config.seed)
    if len(made.parts) != config.clients.count:
        raise ConfigError(
            f"clients.count is {config.clients.count}, but clients.partition "
            f"{config.clients.partition!r} makes {len(made.parts)} clients; leave clients.count out"
        )
    return made


@dataclass(frozen=True)
class Holdings:
    """Who the clients of a federation are, and what they hold.

    Attributes:
        names: Their names.
        sizes: How many training samples each of them has.
        rarity: How rare each one's labels are; None where the target is a number.
    """

    names: Sequence[str]
    sizes: Sequence[int]
    rarity: Sequence[float] | None


def holdings(config: "Config", whole: Dataset, made: Division) -> Holdings:
    """Say who the clients are among whom the data were divided, and what they hold."""
    rarity = None
    if whole.task != "regression":
        rarity = label_rarity(whole.y_train, made.parts).tolist()
    names = made.names or client_names(config.clients.count)
    return Holdings(names, [len(own) for own in made.parts], rarity)


def label_rarity(labels: NDArray[Any], samples: Sequence[IntArray]) -> FloatArray:
    """Return how rare each client's labels are: the mean rank of its samples' labels.

    The label that the most clients hold has rank 0; of labels that equally many hold, the lower
    one comes first.

    Args:
        labels: The label of every training sample.
        samples: The samples of each client, as positions in `labels`.

    >>> label_rarity(np.array([0, 0, 1, 1, 2]), [np.array([0, 2]), np.array([1, 3]), np.array([4])])
    array([0.5, 0.5, 2. ])
    """
    known, numbered = np.unique(labels, return_inverse=True)
    holders = np.zeros(len(known), np.int64)
    for own in samples:
        holders[np.unique(numbered[own])] += 1
    ranks = np.empty(len(known))
    ranks[np.argsort(-holders, kind="stable")] = np.arange(len(known))
    return np.array([ranks[numbered[own]].mean() for own in samples])

"""A configuration's data: loaded once, divided among clients, who are the silos themselves where they are known."""

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from bara.datasets import (
    Dataset,
    Division,
    digest,
    divide,
    is_own,
    is_table,
    load,
    names,
    parse,
    places,
    silos,
    subset,
    whole_path,
)
from bara.errors import ConfigError, DatasetError

if TYPE_CHECKING:
    from bara.runs.config import Config
    from bara.runs.sections import DataSection

    AnyConfig = TypeVar("AnyConfig", bound=Config)


def settled(config: "AnyConfig") -> "AnyConfig":
    """The configuration with what only its data can say: how many clients there are, and what the table held.

    Where data have silos and nothing else is asked for, every silo is a client. Asked twice, the
    same comes back.
    """
    if config.federation.engine not in {"simulator", "flower"}:
        return config
    data, clients = config.data, config.clients
    if is_table(data.name) and data.sha256 is None:
        place = whole_path(data.name, data.path)
        update = {
            "name": place.name,
            "path": str(place.parent),
            "sha256": digest(data.name, data.path),
        }
        config = config.model_copy(update={"data": data.model_copy(update=update)})
    if not _says_whose(config):
        return config
    whole = None if _is_known(data) else load_data(config.data)
    if "partition" not in clients.model_fields_set and (whole is None or whole.silos):
        clients = clients.model_copy(update={"partition": "natural"})
    if "count" not in clients.model_fields_set and _is_counted(clients.partition):
        if whole is None and clients.partition == "natural":  # needs no look at the data
            found = silos()[data.name]
        else:
            found = len(
                divide(
                    whole or load_data(data), clients.partition, clients.count, config.seed
                ).parts
            )
        clients = clients.model_copy(update={"count": found})
        clients.check()
    return config.model_copy(update={"clients": clients})


def load_data(data: "DataSection") -> Dataset:
    """What a configuration learns from; a table is read once for as long as it is the last that was asked for."""
    if data.sha256 is not None and digest(data.name, data.path) != data.sha256:
        raise DatasetError(
            f"{whole_path(data.name, data.path)} has changed since the run was configured"
        )
    known = data.sha256 is not None or data.name in silos()
    return _kept(data, places(data.path)) if known else _loaded(data)


def division(config: "Config", whole: Dataset) -> Division:
    """Who holds which training samples; the names of silos where they are known."""
    made = divide(whole, config.clients.partition, config.clients.count, config.seed)
    if len(made.parts) != config.clients.count:
        raise ConfigError(
            f"clients.count is {config.clients.count}, but clients.partition {config.clients.partition!r} makes "
            f"{len(made.parts)} clients; leave clients.count out"
        )
    return made


@lru_cache(maxsize=2)
def _kept(data: "DataSection", _places: object) -> Dataset:
    return _loaded(data)


def _loaded(data: "DataSection") -> Dataset:
    """The dataset by its name; or the one that was handed over, or that a function makes."""
    part = data.part
    if part is None:
        whole = load(data.name, data.path, verify=data.verify, columns=data.columns)
    else:
        whole = part if isinstance(part, Dataset) or not callable(part) else part()
    if not isinstance(whole, Dataset):
        raise ConfigError(
            f"data is {whole!r}; it must be a bara.datasets.Dataset, or a function that returns one"
        )
    return subset(whole, data.train_samples)


def _says_whose(config: "Config") -> bool:
    """Whether the data have to be looked at: they may have silos, or the partition counts them."""
    given, name = config.clients.model_fields_set, config.data.name
    if "partition" in given:
        return "count" not in given and _is_counted(config.clients.partition)
    if config.data.part is not None:
        return True
    return is_table(name) or name in silos() or (name not in names() and is_own(name))


def _is_known(data: "DataSection") -> bool:
    """Whether the silos are those that everybody knows of."""
    return data.name in silos() and data.client is None and data.train_samples is None


def _is_counted(partition: str) -> bool:
    """Whether the partition itself says how many clients there are."""
    return parse(partition).name == "natural" or ":" in partition

"""Clusters on which a grid can run: joblib's backends for Dask and Ray."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from bara.errors import ConfigError, MissingExtraError
from bara.text import nearest

_CLUSTERS = {"dask": "distributed", "ray": "ray"}
"""The package that each kind of cluster needs."""


@contextmanager
def cluster_backend(where: str | None) -> Iterator[str | None]:
    """Connect to a cluster; yield the name of its joblib backend, or None for this machine.

    Args:
        where: The cluster: `dask:tcp://host:8786`, `ray:host:6379` or `ray:auto`; None to stay on
            this machine.
    """
    if where is None:
        yield None
        return
    engine, _, address = where.partition(":")
    if engine not in _CLUSTERS or not address:
        raise ConfigError(
            f"--cluster {where!r} must be ENGINE:ADDRESS; {nearest(engine, list(_CLUSTERS))}"
        )
    package = _import(engine)
    try:
        if engine == "dask":
            client = package.Client(address, timeout=10)
        else:
            client = _ray(package, address)
    except (OSError, ConnectionError, ValueError) as error:
        raise ConfigError(f"--cluster {where!r} does not answer: {error}") from None
    # Dask and Ray print notes, which must not mix with the output that was asked for.
    with client, redirect_stdout(sys.stderr):
        yield engine


def _ray(package: Any, address: str) -> Any:
    """Register Ray's joblib backend and connect to the cluster."""
    importlib.import_module("ray.util.joblib").register_ray()
    return package.init(address=address)


def _import(engine: str) -> Any:
    """Import the package that a kind of cluster needs."""
    try:
        return importlib.import_module(_CLUSTERS[engine])
    except ModuleNotFoundError:
        raise MissingExtraError(
            f"{engine} is not installed: pip install '{_CLUSTERS[engine]}'"
        ) from None

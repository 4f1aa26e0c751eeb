"""Other machines to run a grid on: joblib's backends for Dask and Ray."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from bara.errors import ConfigError, MissingExtraError
from bara.plugins import nearest

_CLUSTERS = {"dask": "distributed", "ray": "ray"}
"""Which package each kind of cluster needs."""


@contextmanager
def connected(where: str | None) -> Iterator[str | None]:
    """Connect to a cluster and give joblib's name for it; None stays on this machine.

    Args:
        where: `dask:tcp://host:8786`, `ray:host:6379`, `ray:auto`, or None.
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
        client = package.Client(address, timeout=10) if engine == "dask" else _ray(package, address)
    except (OSError, ConnectionError, ValueError) as error:
        raise ConfigError(f"--cluster {where!r} does not answer: {error}") from None
    with client, redirect_stdout(sys.stderr):  # engines print notes; what is asked for stands alone
        yield engine


def _ray(package: Any, address: str) -> Any:
    importlib.import_module("ray.util.joblib").register_ray()
    return package.init(address=address)


def _import(engine: str) -> Any:
    try:
        return importlib.import_module(_CLUSTERS[engine])
    except ModuleNotFoundError:
        raise MissingExtraError(
            f"{engine} is not installed: pip install '{_CLUSTERS[engine]}'"
        ) from None

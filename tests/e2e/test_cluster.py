"""The same grid on a real cluster of two worker processes on this machine."""

import json

import pytest
import ray
from distributed import LocalCluster
from programs import bara
from refusals import refused

from bara.errors import ConfigError
from bara.studies.cluster import cluster_backend

SMALL = ["budget.total=40", "budget.max_rounds=8", "clients.count=6", "federation.engine=synthetic"]


def compare(*where):
    return json.loads(
        bara(
            "compare",
            "--json",
            "--allocators",
            "even,random",
            "--seeds",
            "3",
            *where,
            changes=SMALL,
        ).stdout
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_two_dask_workers_give_what_this_machine_gives():
    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        address = f"dask:{cluster.scheduler_address}"
        away = compare("--cluster", address)
    here = compare("--jobs", "1")
    assert away == here


@pytest.mark.xdist_group("flower")  # which has ray, too; the two share a machine badly
@pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)
def test_two_ray_workers_give_what_this_machine_gives():
    ray.init(
        num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", logging_level="ERROR"
    )
    try:
        address = f"ray:{ray.get_runtime_context().gcs_address}"
        away = compare("--cluster", address)
    finally:
        ray.shutdown()
    here = compare("--jobs", "1")
    assert away == here


@pytest.mark.parametrize(
    ("where", "facts"),
    [
        ("dusk:tcp://127.0.0.1:1", ["'dask'"]),
        ("dask", ["ENGINE:ADDRESS"]),
        ("dask:tcp://127.0.0.1:1", ["to tcp://127.0.0.1:1"]),  # as Dask says whom it asked
    ],
)
def test_a_cluster_that_is_not_there_is_named(where, facts):
    with refused(ConfigError, "--cluster", repr(where), *facts), cluster_backend(where):
        pass

"""The same grid on a real cluster of two worker processes on this machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import ray
from distributed import LocalCluster

from bara.errors import ConfigError
from bara.experiments.clusters import connected

COMPARE = [
    Path(sys.executable).parent / "bara", "compare", "--json", "--allocators", "even,random", "--seeds", "3",
    "--set", "budget.total=40", "--set", "budget.max_rounds=8", "--set", "clients.count=6",
    "--set", "federation.engine=synthetic",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_two_dask_workers_give_what_this_machine_gives():
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster:
        address = f"dask:{cluster.scheduler_address}"
        away = subprocess.run([*COMPARE, "--cluster", address], capture_output=True, text=True, check=True)
    here = subprocess.run([*COMPARE, "--jobs", "1"], capture_output=True, text=True, check=True)
    assert json.loads(away.stdout) == json.loads(here.stdout)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_two_ray_workers_give_what_this_machine_gives():
    ray.init(num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1", logging_level="ERROR")
    try:
        address = f"ray:{ray.get_runtime_context().gcs_address}"
        away = subprocess.run([*COMPARE, "--cluster", address], capture_output=True, text=True, check=False)
    finally:
        ray.shutdown()
    assert away.returncode == 0, away.stderr
    here = subprocess.run([*COMPARE, "--jobs", "1"], capture_output=True, text=True, check=True)
    assert json.loads(away.stdout) == json.loads(here.stdout)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("dusk:tcp://127.0.0.1:1", "did you mean 'dask'"),
        ("dask", "ENGINE:ADDRESS"),
        ("dask:tcp://127.0.0.1:1", "does not answer"),
    ],
)
def test_a_cluster_that_is_not_there_is_named(where, message):
    with pytest.raises(ConfigError, match=message), connected(where):
        pass

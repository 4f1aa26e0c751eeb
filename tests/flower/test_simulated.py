"""The same configuration on the simulator and on Flower comes to the same."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from bara.errors import ConfigError, MissingExtraError
from bara.flower import check_version
from bara.records import AwardedRound
from bara.runs.config import Config
from bara.runs.factory import assemble, build_federation
from bara.runs.play import play_run
from bara.testing import FEDERATION_CHECKS

pytestmark = pytest.mark.full  # the engine for tests

FLOWER = "ray_engine:simulated"
ENGINES = ("simulator", FLOWER)
SMALL = [
    "clients.count=5",
    "data.train_samples=300",
    "budget.max_rounds=6",
    "budget.total=60",
    "training.learning_rate=0.5",
    "training.memory=extrapolated",  # an engine by import path has no memory unless it is set
]


def played(engine, *changes):
    """Everything that was awarded, and the federation's final model."""
    config = Config.load(None, [*SMALL, f"federation.engine={engine}", *changes])
    awarded = []
    session = assemble(config)
    result = play_run(
        config,
        lambda step: awarded.append(step) if isinstance(step, AwardedRound) else None,
        session=session,
    )
    federation = session.federation
    model = federation.model if engine == "simulator" else federation.model["state"].numpy()
    return result, awarded, model


def assert_the_same(*changes):
    """Menus, awards and payments exactly; the model to float tolerance."""
    simulator, flower = played("simulator", *changes), played(FLOWER, *changes)
    assert len(simulator[1]) == len(flower[1]) > 2
    for one, two in zip(simulator[1], flower[1], strict=True):
        assert one.bids.clients == two.bids.clients
        assert one.bids.prices.tolist() == two.bids.prices.tolist()
        assert one.costs.tolist() == two.costs.tolist()
        assert one.award == two.award
    assert simulator[0].payments == flower[0].payments
    assert (simulator[0].spent, simulator[0].ended) == (flower[0].spent, flower[0].ended)
    assert np.allclose(simulator[2], flower[2], rtol=1e-4, atol=1e-5)
    assert simulator[0].accuracy_final == pytest.approx(flower[0].accuracy_final, abs=0.02)
    assert simulator[0].accuracy_kept == pytest.approx(flower[0].accuracy_kept, abs=0.02)


@pytest.mark.parametrize("allocator", ["even", "increasing", "decreasing", "random", "fixed"])
@pytest.mark.usefixtures("without_ray")
def test_menus_awards_payments_and_model_are_those_of_the_simulator(allocator):
    options = ["allocator.n=3"] if allocator == "fixed" else []
    assert_the_same(f"allocator.name={allocator}", *options)


@pytest.mark.parametrize(
    "changes",
    [
        ["clients.failure_rate=0.3", "clients.late_rate=0.1"],
        ["clients.absence_rate=0.3", "clients.drift=0.1", "clients.cost_by=samples"],
        [
            "clients.strategic=2",
            "clients.strategy=overbid(0.3)",
            "clients.poisoners=1",
            "clients.free_riders=1",
        ],
        ["clients.free_riding=random", "clients.free_riders=2"],
        [
            "training.algorithm=fedavg",
            "training.local_epochs=2",
            "training.aggregation=equal",
            "clients.noisy=1",
        ],
        ["mechanism.name=fl-market", "clients.epsilon=uniform(10, 100)"],
        ["mechanism.name=quality", "mechanism.quality=samples", "clients.partition=quantity(1.0)"],
        ["data.held_out=same", "training.memory=off", "training.outliers=6"],
        ["training.memory=plain", "clients.failure_rate=0.3", "budget.total=20"],
        [
            "training.memory=extrapolated",
            "clients.absence_rate=0.3",
            "training.forget_after=2",
            "budget.total=20",
        ],
        ["training.learning_rate=4", "training.memory=extrapolated", "budget.total=20"],
        ["mechanism.name=fl-market", "clients.epsilon=uniform(10, 100)", "training.memory=plain"],
        [
            "data.name=rand-hie",
            "clients.partition=natural",
            "clients.count=6",
            "data.evaluation_samples=200",
            "training.metric=auc",
        ],
    ],
    ids=lambda changes: changes[0] + changes[-1],
)
@pytest.mark.usefixtures("without_ray")
def test_so_they_are_with_clients_of_all_kinds_and_with_other_mechanisms(changes):
    assert_the_same("allocator.name=even", *changes)


@pytest.mark.usefixtures("without_ray")
def test_with_quality_learned_from_losses_they_differ_by_rounding_only():
    simulator, flower = (
        played(engine, "allocator.name=even", "mechanism.name=fair") for engine in ENGINES
    )
    for one, two in zip(simulator[1], flower[1], strict=True):
        assert one.award.clients == two.award.clients
        assert np.allclose(one.costs, two.costs, rtol=1e-4)
    assert np.allclose(simulator[2], flower[2], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("check", FEDERATION_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.usefixtures("without_ray")
def test_the_contract_of_every_federation(check):
    changes = [
        f"federation.engine={FLOWER}",
        "clients.count=6",
        "data.train_samples=200",
        "training.memory=extrapolated",
    ]
    check(lambda seed: build_federation(Config.load(None, [*changes, f"seed={seed}"])))


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        (
            ["federation.strategy=FedMedian", "mechanism.name=fair"],
            ("Fair", "weights", "FedMedian", "FedAvg"),
        ),
    ],
)
@pytest.mark.usefixtures("without_ray")
def test_what_cannot_be_honoured_is_refused_before_the_run(changes, facts):
    with refused(ConfigError, *facts):
        assemble(Config.load(None, [f"federation.engine={FLOWER}", *changes]))


@pytest.mark.parametrize("strategy", ["FedAdam", "FedAvgM", "FedProx", "FedMedian"])
@pytest.mark.usefixtures("without_ray")
def test_any_of_flowers_strategies_can_be_named(strategy):
    result, _, _ = played(FLOWER, "allocator.name=even", f"federation.strategy={strategy}")
    assert result.rounds == 6


@pytest.mark.parametrize("found", [None, "1.37.9", "2.0.0", "1.43.0.dev1"])
def test_another_version_of_flower_is_refused_with_the_supported_one_named(found):
    is_there = found or "not installed"
    with refused(MissingExtraError, is_there, "1.38", "1.42", "pip install 'bara-fl[flower]'"):
        check_version(found)


def test_the_engine_for_tests_tells_nobody_that_it_runs():
    code = "import ray_engine, flwr.supercore.telemetry as t; print(t.FLWR_TELEMETRY_ENABLED)"
    unset = {name: value for name, value in os.environ.items() if not name.startswith("FLWR_")}
    folders = [os.environ.get("PYTHONPATH", ""), str(Path(__file__).parent)]
    unset["PYTHONPATH"] = os.pathsep.join(folders)
    done = subprocess.run(
        [sys.executable, "-c", code], env=unset, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().splitlines()[-1] == "0"

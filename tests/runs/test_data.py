"""From a table to a federation: silos are clients, by their names, and everything repeats."""

import csv
import shutil

import numpy as np
import pytest
from refusals import refused

from bara.errors import ConfigError, DatasetError
from bara.runs.config import Config
from bara.runs.factory import build_federation
from bara.runs.folder import RunFolder
from bara.runs.play import play_run
from bara.studies.suites import settings
from bara.testing import FEDERATION_CHECKS

SILOS = ("Ålesund", "east", "north", "south 2")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Four clinics of unequal size; what to learn is two numbers away."""
    path = tmp_path_factory.mktemp("tables") / "clinics.csv"
    rng = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["clinic", "a", "b", "kind", "days", "ill"])
        for silo, rows in zip(SILOS, (120, 60, 30, 15), strict=True):
            for a, b in rng.normal(size=(rows, 2)):
                late = rng.normal(0, 0.3)
                writer.writerow(
                    [
                        silo,
                        a,
                        b,
                        rng.choice(["x", "y"]),
                        5 + 2 * a - b + late,
                        int(a + b + late > 0),
                    ]
                )
    return path


def changes(table, *more):
    own = [f"data.name={table}", "data.client=clinic", "data.target=ill", "training.model=linear"]
    return [*own, "budget.total=30", "budget.max_rounds=8", "federation.engine=simulator", *more]


REGRESSION = ("data.target=days", 'data.features=["a", "b"]', "training.metric=r2")


def test_silos_are_clients_by_their_names_everywhere(table, tmp_path):
    config = Config.load(None, changes(table))
    assert (config.clients.count, config.clients.partition, config.dataset) == (
        4,
        "natural",
        "clinics",
    )
    with RunFolder.new(tmp_path / "run", config) as folder:
        result = play_run(config, folder=folder)
        assert set(result.payments) <= set(SILOS)
        assert set(folder.claim_books().history().__next__().awarded.bids.clients) <= set(SILOS)
    assert result.accuracy_kept > 0.7


def test_another_number_of_clients_is_refused_and_silos_can_be_merged(table):
    with refused(ConfigError, "clients.count", "20", "clients.partition", "'natural'", "4"):
        play_run(Config.load(None, changes(table, "clients.count=20")))
    merged = Config.load(None, changes(table, "clients.partition=natural(2)"))
    assert merged.clients.count == 2
    dealt = Config.load(None, changes(table, "clients.partition=iid", "clients.count=5"))
    assert play_run(dealt).clients == 5


@pytest.mark.path
@pytest.mark.parametrize("more", [("training.metric=auc", "training.model=mlp"), REGRESSION])
def test_same_seed_same_result_and_one_worker_is_two(table, more):
    one = play_run(Config.load(None, changes(table, *more, "federation.workers=1")))
    two = play_run(Config.load(None, changes(table, *more, "federation.workers=2")))
    assert one == two
    assert 0.5 < one.accuracy_kept <= 1


@pytest.mark.parametrize("more", [("training.metric=auc",), REGRESSION])
def test_a_run_resumes_bit_for_bit_from_another_place(table, tmp_path, monkeypatch, more):
    whole = play_run(config := Config.load(None, changes(table, *more)))

    class Stopped(Exception):  # noqa: N818
        pass

    def stop(step):
        if getattr(step, "round", 0) == 4:
            raise Stopped

    with RunFolder.new(tmp_path / "run", config) as folder, pytest.raises(Stopped):
        play_run(config, stop, folder=folder)
    monkeypatch.chdir(tmp_path)
    with RunFolder.find(tmp_path / "run") as folder:
        assert play_run(folder.config, folder=folder) == whole


def test_a_table_that_changed_is_not_trained_on_again(table, tmp_path):
    copy = tmp_path / "clinics.csv"
    shutil.copy(table, copy)
    config = Config.load(None, changes(copy))
    copy.write_text(copy.read_text(encoding="utf-8").replace("north", "nord"), encoding="utf-8")
    with refused(DatasetError, copy, "changed"):
        play_run(config)


def test_a_metric_that_does_not_fit_is_refused_before_money_moves(table):
    with refused(ConfigError, "training.metric", "'accuracy'", "r2", "rmse"):
        play_run(Config.load(None, changes(table, "data.target=days")))


CITIES = (
    "data.name=rand-hie",
    "data.client=site",
    "data.target=mdvis > 0",
    "data.train_samples=600",
)


@pytest.mark.parametrize("check", FEDERATION_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "more", [("training.metric=auc",), REGRESSION, CITIES], ids=["binary", "regression", "cities"]
)
def test_a_table_keeps_every_federations_contract(table, more, check):
    check(lambda seed: build_federation(Config.load(None, changes(table, *more, f"seed={seed}"))))


def test_a_dataset_of_ones_own_with_silos_is_divided_by_them(tmp_path, monkeypatch):
    (tmp_path / "own_silos.py").write_text(
        "import numpy as np\nfrom bara.datasets import Dataset\n"
        "def make():\n"
        "    rng = np.random.default_rng(0)\n"
        "    frame = {'who': ['a'] * 30 + ['b'] * 30, 'x': rng.normal(size=60), 'y': [0, 1] * 30}\n"
        "    return Dataset.from_frame(frame, target='y', client='who')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = Config.load(None, ["data.name=own_silos:make", "federation.engine=simulator"])
    assert (config.clients.count, config.clients.partition) == (2, "natural")


def test_the_suites_still_read():
    assert settings("report")
